//! Triggers that end users make in their sessions.

use std::time::Duration;

use http::Method;
use kernel::{Permission, Role};
use serde_json::{Value, json};

use crate::reserved::workflow;
use crate::support::{Database, Fake, Reply, Test, on_both, until};
use crate::triggers::{change_a_thing, settled};

async fn connect_for(test: &Test, fake: &Fake, end_user: &str) {
    let data = json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": format!("sk-{end_user}-123456")}});
    let connection = json!({"provider_key": "native", "integration_key": "fake", "end_user": end_user, "data": data});
    test.post("/tools/connections", json!({"connection": connection})).await.expect(200);
}

struct Session {
    id: String,
    token: String,
}

async fn open(test: &Test, end_user: &str, more: Value) -> Session {
    let mut new = json!({"end_user": end_user, "apps": ["fake"]});
    new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = test.post("/sessions", json!({"session": new})).await.expect(200)["session"].take();
    Session { id: made["id"].as_str().unwrap().to_owned(), token: made["token"].as_str().unwrap().to_owned() }
}

impl Session {
    async fn ask(&self, test: &Test, method: Method, path: &str, body: Option<Value>) -> Reply {
        test.request(method, &format!("/sessions/{}{path}", self.id), Some(format!("Bearer {}", self.token)), body).await
    }

    async fn watch(&self, test: &Test, event: &str, config: Value) -> Reply {
        let body = json!({"trigger": {"integration": "fake", "event": event, "config": config}});
        self.ask(test, Method::POST, "/triggers", Some(body)).await
    }
}

on_both! {
    async fn an_end_user_watches_their_account_and_the_projects_workflow_runs(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        workflow(test, "echo", json!({"kind": "echo"})).await;
        connect_for(test, &fake, "alice").await;
        let start = json!({"references": {"workflow": {"slug": "echo"}}, "inputs_fields": {"what": "$.event.attributes.action"}});
        let session = open(test, "alice", json!({"triggers": start})).await;
        let shown = session.ask(test, Method::GET, "", None).await.expect(200);
        assert_eq!(shown["session"]["may_trigger"], true);
        let events = session.ask(test, Method::GET, "/events", None).await.expect(200);
        let keys: Vec<&str> = events["events"].as_array().unwrap().iter().map(|event| event["event_key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["THING_CHANGED", "THING_MADE"]);
        let made = session.watch(test, "THING_CHANGED", json!({"box": "a"})).await.expect(200)["trigger"].take();
        assert_eq!((&made["event_key"], &made["is_active"], &made["config"]), (&json!("THING_CHANGED"), &json!(true), &json!({"box": "a"})));
        session.watch(test, "THING_CHANGED", json!({"box": "a"})).await.expect(409);
        change_a_thing(test, &fake, 0, Duration::ZERO).await;
        let done = settled(test, json!({}), 1).await;
        assert_eq!((&done[0]["status"]["code"], &done[0]["data"]["inputs"]), (&json!("200"), &json!({"what": "changed"})), "{done:#?}");
        let runs = test.get("/workflows/runs?end_user=alice").await.expect(200);
        assert_eq!(runs["count"], 1, "it ran for this end user: {runs}");

        // It stays when the session ends; another session of the same user lists and removes it.
        test.delete(&format!("/sessions/{}", session.id)).await.expect(200);
        session.ask(test, Method::GET, "/triggers", None).await.expect(401);
        let later = open(test, "alice", json!({"triggers": {"webhook": true}})).await;
        let listed = later.ask(test, Method::GET, "/triggers", None).await.expect(200);
        assert_eq!(listed["triggers"][0]["id"], made["id"]);
        let path = format!("/triggers/{}", made["id"].as_str().unwrap());
        later.ask(test, Method::DELETE, &path, None).await.expect(204);
        later.ask(test, Method::DELETE, &path, None).await.expect(404);
        assert_eq!(later.ask(test, Method::GET, "/triggers", None).await.expect(200)["count"], 0);
    }

    async fn events_can_go_to_the_projects_webhook(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        connect_for(test, &fake, "alice").await;
        let hook = json!({"webhook_url": format!("{}/target", fake.url), "enabled_events": ["composio.trigger.message"]});
        crate::composio_api::ask(test, Method::POST, "/webhook_subscriptions", Some(hook)).await.expect(201);
        let session = open(test, "alice", json!({"triggers": {"webhook": true}})).await;
        let made = session.watch(test, "THING_CHANGED", json!({"box": "a"})).await.expect(200)["trigger"]["id"].take();
        assert_eq!(session.watch(test, "THING_CHANGED", json!({"box": "a"})).await.expect(200)["trigger"]["id"], made, "the same is one");
        change_a_thing(test, &fake, 0, Duration::ZERO).await;
        until("it is told", async || fake.seen_at("/target").len() == 1).await;
        assert_eq!(fake.seen_at("/target")[0]["body"]["metadata"]["user_id"], "alice");
    }

    async fn a_session_makes_no_more_triggers_than_it_was_given(test: &Test) {
        let fake = Fake::start().await;
        connect_for(test, &fake, "alice").await;
        connect_for(test, &fake, "bob").await;
        let start = json!({"triggers": {"webhook": true}});
        // Without a word about triggers there are none.
        let plain = open(test, "alice", json!({})).await;
        for (method, path) in [(Method::GET, "/events"), (Method::GET, "/triggers")] {
            plain.ask(test, method, path, None).await.expect(403);
        }
        plain.watch(test, "THING_CHANGED", json!({"box": "a"})).await.expect(403);
        let (alice, bob) = (open(test, "alice", start.clone()).await, open(test, "bob", start.clone()).await);
        let made = alice.watch(test, "THING_CHANGED", json!({"box": "a"})).await.expect(200)["trigger"].take();
        let path = format!("/triggers/{}", made["id"].as_str().unwrap());
        bob.ask(test, Method::DELETE, &path, None).await.expect(404);
        assert_eq!(bob.ask(test, Method::GET, "/triggers", None).await.expect(200)["count"], 0);
        // An account of somebody else cannot be named.
        let account = json!({"trigger": {"integration": "fake", "event": "THING_CHANGED", "account": made["connection_id"], "config": {"box": "b"}}});
        bob.ask(test, Method::POST, "/triggers", Some(account)).await.expect(404);
        alice.watch(test, "THING_CHANGED", json!({"box": 7})).await.expect(422);
        alice.watch(test, "NOTHING", json!({})).await.expect(404);
        let outside = json!({"trigger": {"integration": "github", "event": "ISSUE_OPENED", "config": {"owner": "o", "repo": "r"}}});
        alice.ask(test, Method::POST, "/triggers", Some(outside)).await.expect(404);
        // What the project made for the user is not theirs to remove.
        let own = json!({"event_key": "THING_CHANGED", "trigger_config": {"box": "z"}});
        let native = test.post("/triggers/subscriptions", json!({"subscription": {"connection_id": made["connection_id"], "data": own}})).await;
        let native = native.expect(200)["subscription"]["id"].as_str().unwrap().to_owned();
        alice.ask(test, Method::DELETE, &format!("/triggers/{native}"), None).await.expect(404);
        // Nobody without an account watches; they are told where to connect one.
        let carol = open(test, "carol", start.clone()).await;
        let missing = carol.watch(test, "THING_CHANGED", json!({"box": "a"})).await.expect(409);
        assert_eq!(missing["code"], "account_missing");
        assert!(missing["detail"]["conflict"]["redirect_url"].is_string(), "{missing}");

        // Whoever makes the session must be allowed to make triggers, then and later.
        let runs_tools = Some(vec![Permission::ViewTools, Permission::RunTools]);
        let key = test.key("default", Role::Owner, runs_tools).await;
        let session = json!({"session": {"end_user": "alice", "triggers": {"webhook": true}}});
        test.post_as(&key, "/sessions", session).await.expect(403);
        for (bad, word) in [
            (json!({}), "references"),
            (json!({"webhook": false}), "must be true"),
            (json!({"refs": {}}), "references"),
            (json!({"references": {"workflow": {"slug": "nothing"}}}), "nothing"),
        ] {
            let said = test.post("/sessions", json!({"session": {"end_user": "alice", "triggers": bad}})).await;
            assert!((400..500).contains(&said.status.as_u16()) && said.text.contains(word), "{} {}", said.status, said.text);
        }
        // Forgotten with their triggers.
        test.delete("/end-users/alice").await.expect(200);
        assert_eq!(test.get("/triggers/subscriptions").await.expect(200)["count"], 0);
    }
}
