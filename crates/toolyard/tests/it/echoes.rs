//! A service that repeats what it was sent: no credential gets into results, runs or kept answers.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use store::args;

use crate::mcp_servers::node;
use crate::support::{Database, Fake, Test, call_body, fake_connection, on_both};

/// With characters that URLs, forms and JSON write in another way.
const KEY: &str = "sk/fake +\"12\"&3456";

/// Whatever the database holds of a table, as text.
async fn table(test: &Test, sql: &'static str) -> String {
    let rows = test.yard.db.all(sql, args![]).await.unwrap();
    rows.iter().map(|row| row.get::<Option<String>>("text").unwrap().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn hides(text: &str, what: &str) {
    for secret in [KEY, "sk%2Ffake", "sk/fake", "sk\\/fake", "c2svZmFrZSA", "pass-word-123", "YW5uOnBhc3M", "cGFzcy13b3Jk"] {
        assert!(!text.contains(secret), "{what} has `{secret}`: {text}");
    }
}

on_both! {
    async fn credentials_that_a_service_repeats_stay_out_of_results(test: &Test) {
        let fake = Fake::start().await;
        let key = json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": KEY}});
        test.post("/tools/connections/", fake_connection("key", &key)).await.expect(200);
        let basic = json!({"auth_scheme": "basic", "credentials": {"base": fake.url, "username": "ann", "password": "pass-word-123"}});
        test.post("/tools/connections/", fake_connection("basic", &basic)).await.expect(200);
        for slug in ["key", "basic"] {
            // The caller repeats it too, where it would stand in a body.
            let arguments = json!({"title": format!("{KEY} and pass-word-123"), "note": KEY});
            let name = format!("tools.native.fake.MAKE_A_THING.{slug}");
            let call = Request::post("/tools/call").header("authorization", format!("ApiKey {}", test.owner)).header("idempotency-key", slug);
            let call = call.header("content-type", "application/json").body(Body::from(call_body(&name, &json!({"title": "T"})).to_string()));
            let first = test.send(call.unwrap()).await.text;
            hides(&first, slug);
            assert!(first.contains('…') && first.contains("x-always"), "the rest is there: {first}");
            let sent = fake.seen().last().unwrap()["headers"].to_string();
            assert!(sent.contains("sk/fake") || sent.contains("YW5uOnBhc3M"), "the service did get it: {sent}");
            let echoed = test.call(&name, arguments).await.text;
            let own = if slug == "key" { "sk/fake" } else { "pass-word-123" };
            assert!(!echoed.contains(own), "{echoed}");
        }
        hides(&table(test, "select reply as text from tool_idempotency").await, "a kept answer");
        let refused = test.call("tools.native.fake.FAIL_A_THING.key", json!({"code": 404})).await.text;
        hides(&refused, "a refusal");

        let steps = json!([{"name": "make", "call": "tools.native.fake.MAKE_A_THING.key", "arguments": {"title": "T"}}]);
        let workflow = json!({"workflow": {"slug": "echo", "data": {"steps": steps}}});
        test.post("/simple/workflows", workflow).await.expect(200);
        let run = test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "echo"}}, "data": {"inputs": {}}})).await;
        assert_eq!(run.status.as_u16(), 200, "{}", run.text);
        hides(&run.text, "a run");
        let runs = test.get("/workflows/runs").await.expect(200);
        let id = runs["runs"][0]["id"].as_str().unwrap().to_owned();
        let kept = test.get(&format!("/workflows/runs/{id}")).await.text;
        assert!(kept.contains("x-always"), "{kept}");
        hides(&kept, "a kept run");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_mcp_server_was_given_stays_out_of_results() {
    let test = Test::with(Database::Sqlite, |config| config.mcp_commands = "node".to_owned()).await;
    let mut import = node("server-everything", &[]);
    import["key"] = "everything".into();
    import["env"] = json!({"SERVICE_KEY": KEY, "SITE": "https://example.com/here"});
    test.post("/tools/imports/mcp", json!({"import": import})).await.expect(200);
    let answer = test.call("tools.mcp.everything.get-env.everything-main", json!({})).await;
    let content: Value = Test::content(answer);
    hides(&content.to_string(), "a result");
    assert_eq!((&content["data"]["SERVICE_KEY"], &content["data"]["SITE"]), (&json!("…"), &json!("https://example.com/here")), "{content}");
}
