//! What uses a connection hears what becomes of it.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::reserved::{commit, workflow};
use crate::support::{Database, Fake, Test, on_both, until};
use crate::triggers::send;

/// Watches a box of the fake service.
async fn watch(test: &Test, connection: &Value, in_box: &str) -> Value {
    let data = json!({"event_key": "THING_CHANGED", "trigger_config": {"box": in_box}, "references": {"workflow": {"slug": "echo"}}});
    let body = json!({"subscription": {"connection_id": connection["id"], "data": data}});
    test.post("/triggers/subscriptions/", body).await.expect(200)["subscription"].take()
}

async fn subscription(test: &Test, made: &Value) -> Value {
    test.get(&format!("/triggers/subscriptions/{}", made["id"].as_str().unwrap())).await.expect(200)["subscription"].take()
}

async fn is_active(test: &Test, made: &Value) -> bool {
    subscription(test, made).await["flags"]["is_active"] == true
}

/// Connects an account anew, as a person does at the page.
async fn reconnect(test: &Test, fake: &Fake, connection: &Value, key: &str) {
    let path = format!("/tools/connections/{}/refresh?force=true", connection["id"].as_str().unwrap());
    let again = test.post(&path, json!({})).await.expect(200);
    let page: url::Url = again["connection"]["data"]["redirect_url"].as_str().unwrap().parse().unwrap();
    let form = Body::from(format!("base={}&api_key={key}", fake.url));
    let request = Request::post(page.path()).header("content-type", "application/x-www-form-urlencoded");
    test.send(request.body(form).unwrap()).await.expect_page(200);
}

/// The requests about webhooks, each with the key that it was made with.
fn hooks(fake: &Fake) -> Vec<(String, String)> {
    let line = |seen: Value| format!("{} {}", seen["method"].as_str().unwrap(), seen["path"].as_str().unwrap());
    fake.seen_at("/hooks").into_iter().map(|seen| (seen["headers"]["x-api-key"].as_str().unwrap().to_owned(), line(seen))).collect()
}

on_both! {
    async fn whoever_would_miss_a_connection_is_named(test: &Test) {
        let fake = Fake::start().await;
        let (main, other) = (test.connect_fake(&fake, "main").await, test.connect_fake(&fake, "other").await);
        let step = |slug: &str| json!({"name": "get", "call": format!("tools.native.fake.GET_A_THING.{slug}"), "arguments": {"owner": "o", "path": "p"}});
        let steps = |slug: &str| json!({"kind": "steps", "steps": [step(slug)]});
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let made = async |slug: &str, data: Value| {
            let body = json!({"workflow": {"slug": slug, "data": data}});
            test.post("/simple/workflows", body).await.expect(200)["workflow"].take()
        };
        let calls = made("calls", steps("main")).await;
        made("talks", json!({"kind": "echo", "parameters": {"of": "tools.native.fake.GET_A_THING.main"}})).await;
        let moved = made("moved", steps("main")).await;
        commit(test, moved["variant_id"].as_str().unwrap(), steps("other")).await;
        let gone = made("gone", steps("main")).await;
        test.post(&format!("/workflows/{}/archive", gone["id"].as_str().unwrap()), json!({})).await.expect(200);
        let watched = watch(test, &main, "a").await;
        let agent = |name: &str, config: Value| json!({"name": name, "agent_type": "custom", "tool_ids": [{"id": "fake", "config": config}]});
        let any = test.post("/agents", agent("any", json!({}))).await.expect(200);
        test.post("/agents", agent("only other", json!({"connection": "other"}))).await.expect(200);

        let path = |root: &str, row: &Value| format!("/{root}/connections/{}/consumers", row["id"].as_str().unwrap());
        let listed = test.get(&path("tools", &main)).await.expect(200);
        let user = |kind: &str, id: &Value, name: &str| json!({"kind": kind, "id": id, "name": name});
        let expected = [
            user("workflow", &calls["id"], "calls"),
            user("subscription", &watched["id"], "THING_CHANGED"),
            user("agent", &any["public_id"], "any"),
        ];
        assert_eq!((&listed["count"], &listed["consumers"]), (&json!(3), &json!(expected)));
        assert_eq!(test.get(&path("triggers", &main)).await.expect(200), listed);
        let others = test.get(&path("tools", &other)).await.expect(200);
        let names: Vec<&str> = others["consumers"].as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["moved", "any", "only other"]);

        // Who uses every app uses this one, unless something is said about it.
        test.post("/agents", json!({"name": "every", "agent_type": "custom", "tool_mode": "inherit"})).await.expect(200);
        let told = json!({"name": "told", "agent_type": "custom", "tool_mode": "inherit", "tool_ids": [{"id": "fake", "config": {"connection": "other"}}]});
        test.post("/agents", told).await.expect(200);
        let agents = async |row: &Value| {
            let listed = test.get(&path("tools", row)).await.expect(200)["consumers"].take();
            let agents = listed.as_array().unwrap().iter().filter(|user| user["kind"] == "agent");
            agents.map(|user| user["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(agents(&main).await, ["any", "every"]);
        assert_eq!(agents(&other).await, ["any", "only other", "every", "told"]);
        let usage = test.get(&format!("/tools/connections/{}/usage", main["id"].as_str().unwrap())).await.expect(200);
        assert!(usage.to_string().contains("\"agents\":2"), "{usage}");
        test.get(&format!("/tools/connections/{}/consumers", uuid::Uuid::now_v7())).await.expect(404);
    }

    async fn what_stopped_with_its_connection_starts_again_with_it(test: &Test) {
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await;
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let (watched, stopped) = (watch(test, &connection, "a").await, watch(test, &connection, "b").await);
        let stop = format!("/triggers/subscriptions/{}/stop", stopped["id"].as_str().unwrap());
        test.post(&stop, json!({})).await.expect(200);
        test.post(&format!("/tools/connections/{}/revoke", connection["id"].as_str().unwrap()), json!({})).await.expect(200);
        let paused = subscription(test, &watched).await;
        assert_eq!((&paused["flags"]["is_active"], &paused["reason"]), (&json!(false), &json!("The connection was revoked.")));

        fake.answer_hooks(503);
        reconnect(test, &fake, &connection, "sk-fake-2").await;
        until("it says why it does not start", async || subscription(test, &watched).await["reason"].as_str().is_some_and(|why| why.contains("503"))).await;
        assert!(!is_active(test, &watched).await);
        fake.answer_hooks(0);
        reconnect(test, &fake, &connection, "sk-fake-3").await;
        until("it starts again", async || is_active(test, &watched).await).await;
        let back = subscription(test, &watched).await;
        assert_eq!((&back["reason"], &back["url"]), (&Value::Null, &watched["url"]), "the same account, the same address");
        assert!(!is_active(test, &stopped).await, "a person stopped it");
        let with_new: Vec<(String, String)> = hooks(&fake).into_iter().filter(|(key, _)| key == "sk-fake-3").collect();
        assert_eq!(with_new.len(), 2, "the webhook that was left is removed, and another made: {with_new:?}");
    }

    async fn webhooks_move_to_another_account(test: &Test) {
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await;
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let watched = watch(test, &connection, "a").await;
        reconnect(test, &fake, &connection, "sk-fake-9").await;
        reconnect(test, &fake, &connection, "sk-other-1").await;
        until("it moves", async || subscription(test, &watched).await["url"] != watched["url"]).await;
        let key = |key: &str, line: &str| (key.to_owned(), line.to_owned());
        let expected = [key("sk-fake-123456", "POST /hooks"), key("sk-fake-9", "DELETE /hooks/hook-1"), key("sk-other-1", "POST /hooks")];
        assert_eq!(hooks(&fake), expected, "the same account changes nothing; each account is told with its own key");
        let moved = subscription(test, &watched).await;
        assert_eq!((&moved["flags"], &moved["trigger_id"]), (&json!({"is_active": true, "is_valid": true, "is_test": false}), &json!("hook-2")));
        assert_eq!(send(test, watched["url"].as_str().unwrap(), &[], "{}").await.status, 404, "the old account is not listened to");
    }

    async fn a_caller_who_hangs_up_stops_no_telling(test: &Test) {
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await;
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let watched = watch(test, &connection, "a").await;
        let scope = test.yard.accounts.authenticator().authenticate(&test.owner).await.unwrap().unwrap();
        let id = connection["id"].as_str().unwrap().parse().unwrap();
        let mut revoking = Box::pin(test.yard.connections.revoke(scope, id, "for a test"));
        let _ = futures_util::poll!(&mut revoking);
        drop(revoking);
        until("the subscription hears it", async || subscription(test, &watched).await["reason"] == "for a test").await;
        assert!(!is_active(test, &watched).await);
    }
}
