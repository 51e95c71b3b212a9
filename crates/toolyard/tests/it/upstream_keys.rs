//! The key by which a service knows a call that is made again.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Reply, Test, call_body, on_both};

async fn send(test: &Test, key: &str, path: &str, body: &Value) -> Reply {
    let request = Request::post(path).header("authorization", format!("ApiKey {}", test.owner)).header("idempotency-key", key);
    test.send(request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()).await
}

/// The keys of the requests to a path, in order.
fn keys(fake: &Fake, path: &str) -> Vec<Value> {
    fake.seen_at(path).iter().map(|seen| seen["headers"]["idempotency-key"].clone()).collect()
}

/// An API whose one operation demands a key and answers with the status that it is asked for.
async fn import_api(test: &Test, fake: &Fake) {
    let code = json!({"in": "path", "name": "code", "required": true, "schema": {"type": "integer"}});
    let key = json!({"in": "header", "name": "Idempotency-Key", "required": true, "schema": {"type": "string", "maxLength": 64}});
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Pay", "version": "1"},
        "servers": [{"url": fake.url}],
        "paths": {"/status/{code}": {"post": {"operationId": "pay", "parameters": [code, key]}}}
    });
    test.post("/tools/imports/openapi", json!({"import": {"document": document}})).await.expect(200);
    let connection = json!({"slug": "main", "provider_key": "openapi", "integration_key": "pay", "data": {"auth_scheme": "none"}});
    test.post("/tools/connections", json!({"connection": connection})).await.expect(200);
}

const PAY: &str = "tools.openapi.pay.pay.main";

on_both! {
    async fn a_native_call_brings_a_key_to_a_service_that_takes_one(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let make = "tools.native.fake.MAKE_A_THING.main";
        for _ in 0..2 {
            test.call(make, json!({"title": "x"})).await.expect(200);
        }
        let body = call_body(make, &json!({"title": "x"}));
        for key in ["k1", "k2", "k1"] {
            send(test, key, "/tools/call", &body).await.expect(200);
            // Toolyard itself has forgotten the call by then.
            test.clock.advance(Duration::from_hours(25));
        }
        let sent = keys(&fake, "/echo/things");
        assert_eq!(sent.len(), 5);
        assert_eq!(sent[2], sent[4], "the same call again");
        for (index, key) in sent[..4].iter().enumerate() {
            assert_eq!(key.as_str().unwrap().len(), 36, "{key}");
            assert!(!sent[..index].contains(key), "{sent:?}");
        }
        test.call("tools.native.fake.GET_A_THING.main", json!({"owner": "a", "path": "b"})).await.expect(200);
        assert_eq!(keys(&fake, "/echo/a/files/b"), [Value::Null], "what only reads needs none");
    }

    async fn an_imported_operation_that_declares_a_key_gets_one(test: &Test) {
        let fake = Fake::start().await;
        import_api(test, &fake).await;
        test.call(PAY, json!({"code": 200})).await.expect(200);
        test.call(PAY, json!({"code": 200, "Idempotency_Key": "mine"})).await.expect(200);
        let sent = keys(&fake, "/status/200");
        assert_eq!((sent[0].as_str().map(str::len), &sent[1]), (Some(36), &json!("mine")));

        test.call(PAY, json!({"code": 503})).await.expect(502);
        let tries = keys(&fake, "/status/503");
        assert_eq!(tries.len(), 3, "with a key, a POST is tried again");
        assert!(tries.iter().all(|key| key.is_string() && *key == tries[0]), "{tries:?}");
    }

    async fn a_run_that_is_made_again_brings_the_same_keys(test: &Test) {
        let fake = Fake::start().await;
        import_api(test, &fake).await;
        let step = |name: &str| json!({"name": name, "call": PAY, "arguments": {"code": 422}, "on_error": "continue"});
        let workflow = json!({"slug": "pay", "data": {"steps": [step("first"), step("second")]}});
        test.post("/simple/workflows/", json!({"workflow": workflow})).await.expect(200);
        let body = json!({"references": {"workflow": {"slug": "pay"}}, "data": {"inputs": {}}});
        for run in ["r1", "r1", "r2"] {
            send(test, run, "/workflows/invoke", &body).await.expect(200);
        }
        let sent = keys(&fake, "/status/422");
        assert_eq!(sent.len(), 6);
        assert_eq!(sent[..2], sent[2..4]);
        assert_ne!(sent[0], sent[1], "each step has a key of its own");
        assert!(!sent[..4].contains(&sent[4]), "another run");
    }
}
