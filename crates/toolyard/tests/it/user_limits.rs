//! How many calls an end user may make, where a project says so.

use std::time::Duration;

use http::Method;
use kernel::Role;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Reply, Test, call_body, on_both};

async fn limit(test: &Test, limits: Value) -> Reply {
    test.request(Method::PUT, "/project/user-limits", Some(format!("ApiKey {}", test.owner)), Some(limits)).await
}

async fn connect_for(test: &Test, fake: &Fake, end_user: &str) {
    let data = json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": "sk-fake-123456"}});
    let connection = json!({"provider_key": "native", "integration_key": "fake", "end_user": end_user, "data": data});
    test.post("/tools/connections", json!({"connection": connection})).await.expect(200);
}

async fn call_for(test: &Test, end_user: &str) -> Reply {
    let mut body = call_body("tools.native.fake.GET_A_THING.auto", &json!({"owner": "o", "path": "p"}));
    body["end_user"] = json!(end_user);
    test.post("/tools/call", body).await
}

on_both! {
    async fn each_end_user_has_a_share_of_their_own(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        for user in ["alice", "bob"] {
            connect_for(test, &fake, user).await;
        }
        assert_eq!(test.get("/project/user-limits").await.expect(200), json!({"limits": {}}));
        limit(test, json!({"calls_per_minute": 2, "calls_per_day": 3})).await.expect(200);
        for _ in 0..2 {
            call_for(test, "alice").await.expect(200);
        }
        let before = fake.seen().len();
        let refused = call_for(test, "alice").await.expect(429);
        assert_eq!(refused["code"], "end_user_limit");
        assert!(refused["detail"].as_str().unwrap().contains("2 calls in a minute"), "{refused}");
        assert_eq!(fake.seen().len(), before, "nothing went out");
        // Others, and the project itself, are not held up by it.
        call_for(test, "bob").await.expect(200);
        for _ in 0..4 {
            test.call("tools.native.fake.GET_A_THING.main", json!({"owner": "o", "path": "p"})).await.expect(200);
        }
        test.clock.advance(Duration::from_mins(1));
        call_for(test, "alice").await.expect(200);
        assert!(call_for(test, "alice").await.detail(429).contains("3 calls in a day"));
        // It is the same in a session, and in Composio's API, where a model reads it.
        let session = json!({"session": {"end_user": "alice", "apps": ["fake"]}});
        let session = test.post("/sessions", session).await.expect(200)["session"].take();
        let body = call_body("tools.native.fake.GET_A_THING.auto", &json!({"owner": "o", "path": "p"}));
        let path = format!("/sessions/{}/call", session["id"].as_str().unwrap());
        let token = format!("Bearer {}", session["token"].as_str().unwrap());
        assert_eq!(test.request(Method::POST, &path, Some(token), Some(body)).await.status, 429);
        let body = json!({"user_id": "alice", "arguments": {"owner": "o", "path": "p"}});
        let executed = crate::composio_api::ask(test, Method::POST, "/tools/execute/FAKE_GET_A_THING", Some(body)).await.expect(200);
        assert_eq!(executed["successful"], false);
        assert!(executed["error"].as_str().unwrap().contains("3 calls in a day"), "{executed}");
        // What was refused is on record.
        let calls = test.get("/tools/calls?end_user=alice").await.expect(200);
        assert!(calls["calls"].as_array().unwrap().iter().any(|call| call["message"].as_str().is_some_and(|why| why.contains("in a day"))), "{calls}");
        test.clock.advance(Duration::from_hours(24));
        call_for(test, "alice").await.expect(200);
        limit(test, json!({})).await.expect(200);
        for _ in 0..4 {
            call_for(test, "alice").await.expect(200);
        }
    }

    async fn calls_at_once_are_counted_until_they_end(test: &Test) {
        let fake = Fake::start().await;
        connect_for(test, &fake, "alice").await;
        limit(test, json!({"calls_at_once": 1})).await.expect(200);
        let slow = |ms: u64| {
            let mut body = call_body("tools.native.fake.SLOWLY.auto", &json!({"ms": ms}));
            body["end_user"] = json!("alice");
            test.post("/tools/call", body)
        };
        let (one, other) = tokio::join!(slow(600), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            call_for(test, "alice").await
        });
        one.expect(200);
        assert!(other.detail(429).contains("1 calls at once"));
        call_for(test, "alice").await.expect(200);
    }

    async fn only_whoever_leads_the_project_limits_its_users(test: &Test) {
        for bad in [json!({"calls_at_once": 0}), json!({"calls_per_day": 2_000_000}), json!({"calls_per_minute": "x"}), json!({"calls": 1})] {
            limit(test, bad).await.expect(422);
        }
        let editor = test.key("default", Role::Editor, None).await;
        let reply = test.request(Method::PUT, "/project/user-limits", Some(format!("ApiKey {editor}")), Some(json!({}))).await;
        assert_eq!(reply.status, 403);
        limit(test, json!({"calls_per_day": 5})).await.expect(200);
        let other = test.key("other", Role::Owner, None).await;
        assert_eq!(test.get_as(&other, "/project/user-limits").await.expect(200), json!({"limits": {}}));
        assert_eq!(test.get_as(&editor, "/project/user-limits").await.expect(200), json!({"limits": {"calls_per_day": 5}}));
    }
}
