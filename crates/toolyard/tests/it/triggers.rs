//! Subscriptions, schedules, ingress and deliveries.

use std::time::Duration;

use axum::body::Body;
use hmac::{Hmac, KeyInit, Mac};
use http::{Method, Request};
use kernel::Role;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::reserved::workflow;
use crate::support::{Database, Fake, Reply, Test, on_both, until};

/// Posts to a subscription's address, as a sender would.
pub(crate) async fn send(test: &Test, url: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    send_with(Method::POST, test, url, headers, body).await
}

async fn send_with(method: Method, test: &Test, url: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let path = url.split_once("/triggers/").map(|(_, rest)| format!("/triggers/{rest}")).unwrap();
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    test.send(request.body(Body::from(body.to_owned())).unwrap()).await
}

async fn subscribe(test: &Test, body: Value) -> Value {
    test.post("/triggers/subscriptions/", json!({"subscription": body})).await.expect(200)
}

async fn put(test: &Test, path: &str, body: Value) -> Reply {
    test.request(Method::PUT, path, Some(format!("ApiKey {}", test.owner)), Some(body)).await
}

/// A plain webhook that runs a workflow.
pub(crate) async fn webhook(test: &Test, slug: &str, extra: Value) -> Value {
    let mut data = json!({"event_key": "WEBHOOK_RECEIVED", "references": {"workflow": {"slug": slug}}});
    data.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    subscribe(test, json!({"name": slug, "data": data})).await["subscription"].take()
}

pub(crate) async fn deliveries(test: &Test, filter: Value) -> Vec<Value> {
    let answer = test.post("/triggers/deliveries/query", json!({"delivery": filter})).await.expect(200);
    answer["deliveries"].as_array().unwrap().clone()
}

/// Waits until there are this many deliveries and none of them is under way.
pub(crate) async fn settled(test: &Test, filter: Value, count: usize) -> Vec<Value> {
    for _ in 0..400 {
        let found = deliveries(test, filter.clone()).await;
        if found.len() == count && found.iter().all(|delivery| matches!(delivery["state"].as_str(), Some("done" | "dead" | "waiting"))) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never settled: {:#?}", deliveries(test, filter).await);
}

fn sign(secret: &str, content: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(content.as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends an event, a while after the hook of this number was made at the fake.
pub(crate) async fn change_a_thing(test: &Test, fake: &Fake, hook: usize, after: Duration) {
    let hook = loop {
        if let Some(hook) = fake.seen_at("/hooks").into_iter().filter(|seen| seen["method"] == "POST").nth(hook) {
            break hook;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    tokio::time::sleep(after).await;
    let body = json!({"action": "changed"}).to_string();
    let signature = format!("sha256={}", sign(hook["body"]["secret"].as_str().unwrap(), &body));
    let headers = [("x-fake-event", "thing"), ("x-fake-delivery", "t-1"), ("x-fake-signature", signature.as_str())];
    send(test, hook["body"]["url"].as_str().unwrap(), &headers, &body).await.expect(202);
}

pub(crate) async fn http_target(test: &Test, fake: &Fake, slug: &str) {
    workflow(test, slug, json!({"kind": "http", "url": format!("{}/target", fake.url)})).await;
}

on_both! {
    async fn an_event_runs_a_workflow_once(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let fields = json!({"title": "$.event.attributes.issue.title", "text": "new: {{ event.attributes.issue.title }}", "gone": "/event/attributes/nope"});
        let hook = webhook(test, "echo", json!({"inputs_fields": fields})).await;
        let url = hook["url"].as_str().unwrap();
        let body = json!({"issue": {"title": "Broken"}}).to_string();
        for _ in 0..3 {
            send(test, url, &[("webhook-id", "evt-1")], &body).await.expect(202);
        }
        let done = settled(test, json!({"subscription_id": hook["id"]}), 1).await;
        assert_eq!((&done[0]["status"]["code"], &done[0]["attempts_count"]), (&json!("200"), &json!(1)), "{done:#?}");
        assert_eq!(done[0]["data"]["inputs"], json!({"title": "Broken", "text": "new: Broken", "gone": null}));
        assert_eq!(done[0]["data"]["missed"][0]["selector"], "/event/attributes/nope");
        assert_eq!(done[0]["data"]["result"]["outputs"]["title"], "Broken");
        let event = test.get(&format!("/triggers/events/{}", done[0]["event_row_id"].as_str().unwrap())).await.expect(200);
        assert_eq!((&event["event"]["body"], &event["event"]["event_id"]), (&json!(body), &json!("evt-1")));
        let one = test.get(&format!("/triggers/deliveries/{}", done[0]["id"].as_str().unwrap())).await.expect(200);
        assert_eq!((&one["delivery"]["attempts"][0]["number"], &one["delivery"]["attempts"][0]["code"]), (&json!(1), &json!("200")));
    }

    async fn what_no_sender_calls_the_same_is_not_the_same(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let twice = async |config: Value, first: (&str, &str, &str), second: (&str, &str, &str)| {
            let hook = webhook(test, "echo", json!({"trigger_config": config})).await;
            for (name, value, body) in [first, second] {
                send(test, hook["url"].as_str().unwrap(), &[(name, value)], body).await.expect(202);
            }
            deliveries(test, json!({"subscription_id": hook["id"]})).await.len()
        };
        // Ids of requests are not ids of events, and equal bodies are not one event.
        assert_eq!(twice(json!({}), ("x-request-id", "r", "{}"), ("x-request-id", "r", "{}")).await, 2);
        assert_eq!(twice(json!({}), ("accept", "*/*", "ping"), ("accept", "*/*", "ping")).await, 2);
        for name in ["webhook-id", "x-github-delivery", "idempotency-key", "svix-id"] {
            assert_eq!(twice(json!({}), (name, "e", r#"{"n": 1}"#), (name, "e", r#"{"n": 2}"#)).await, 1, "{name}");
        }
        let long = "i".repeat(4000);
        assert_eq!(twice(json!({}), ("webhook-id", &long, "{}"), ("webhook-id", &long, "{}")).await, 1);
        // What the owner configured goes first; a digest counts only where it is asked for.
        let header = json!({"id_header": "X-Order"});
        assert_eq!(twice(header.clone(), ("x-order", "7", r#"{"n": 1}"#), ("x-order", "7", r#"{"n": 2}"#)).await, 1);
        assert_eq!(twice(header, ("x-order", "7", "{}"), ("x-order", "8", "{}")).await, 2);
        let path = json!({"id_path": "$.order.id"});
        let (same, other) = (r#"{"order": {"id": 7}, "n": 1}"#, r#"{"order": {"id": 7}, "n": 2}"#);
        assert_eq!(twice(path.clone(), ("accept", "*/*", same), ("accept", "*/*", other)).await, 1);
        assert_eq!(twice(path, ("accept", "*/*", "{}"), ("accept", "*/*", "{}")).await, 2);
        let digest = json!({"id_digest": true});
        assert_eq!(twice(digest.clone(), ("accept", "*/*", "ping"), ("accept", "*/*", "ping")).await, 1);
        assert_eq!(twice(digest, ("accept", "*/*", "ping"), ("accept", "*/*", "pong")).await, 2);
        for (config, word) in [
            (json!({"id_heder": "x"}), "Did you mean `id_header`?"),
            (json!({"id_header": "a b"}), "name of a header"),
            (json!({"id_path": "order.id"}), "JSONPath"),
            (json!({"id_digest": "yes"}), "true or false"),
        ] {
            let data = json!({"event_key": "WEBHOOK_RECEIVED", "trigger_config": config});
            let said = test.post("/triggers/subscriptions/", json!({"subscription": {"data": data}})).await.detail(422);
            assert!(said.contains(word), "{said}");
        }
    }

    async fn a_scheme_without_a_secret_is_refused(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let data = |scheme: &str| json!({"event_key": "WEBHOOK_RECEIVED", "trigger_config": {"scheme": scheme}, "references": {"workflow": {"slug": "echo"}}});
        for scheme in ["token", "hmac_sha256", "standard_webhooks"] {
            let body = json!({"subscription": {"data": data(scheme)}});
            for path in ["/triggers/subscriptions/", "/triggers/subscriptions/test?wait=0"] {
                let said = test.post(path, body.clone()).await.detail(422);
                assert!(said.contains("data.secret"), "{said}");
            }
        }
        let mut odd = data("standard_webhooks");
        odd["secret"] = json!("whsec_?");
        test.post("/triggers/subscriptions/", json!({"subscription": {"data": odd}})).await.expect(422);

        // A secret that is known stays in force when the rest is saved again.
        let hook = webhook(test, "echo", json!({"trigger_config": {"scheme": "token"}, "secret": "s3cret"})).await;
        let (url, id) = (hook["url"].as_str().unwrap(), hook["id"].as_str().unwrap());
        let path = format!("/triggers/subscriptions/{id}");
        let edited = json!({"subscription": {"id": id, "data": data("hmac_sha256")}});
        put(test, &path, edited).await.expect(200);
        assert_eq!(send(test, url, &[("x-webhook-token", "s3cret")], "{}").await.status, 401);
        send(test, url, &[("x-hub-signature-256", &sign("s3cret", "{}"))], "{}").await.expect(202);

        // Rows of older versions take nothing, and say why.
        test.yard.db.execute("update trigger_subscriptions set secret = null where 1 = 1", store::args![]).await.unwrap();
        let refused = send(test, url, &[("x-hub-signature-256", &sign("", "{}"))], "{}").await.expect(401);
        assert!(refused["detail"].as_str().unwrap().contains("no secret"), "{refused}");
        assert_eq!(send(test, url, &[], "{}").await.status, 401);
        let row = test.get(&path).await.expect(200)["subscription"].take();
        assert!(row["reason"].as_str().unwrap().contains("Save the subscription again with `data.secret`"), "{row}");
        assert_eq!(deliveries(test, json!({"subscription_id": id})).await.len(), 1);
    }

    async fn what_is_deleted_keeps_its_flags(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let hook = webhook(test, "echo", json!({})).await;
        let data = json!({"event_key": "tick", "schedule": "*/5 * * * *", "references": {"workflow": {"slug": "echo"}}});
        let clock = test.post("/triggers/schedules/", json!({"schedule": {"data": data}})).await.expect(200)["schedule"].take();
        for (kind, row) in [("subscription", &hook), ("schedule", &clock)] {
            let path = format!("/triggers/{kind}s/{}", row["id"].as_str().unwrap());
            test.delete(&path).await.expect(204);
            let gone = test.get(&path).await.expect(200)[kind].take();
            assert_eq!((&gone["flags"], gone["deleted_at"].is_string()), (&row["flags"], true), "{gone}");
        }
        test.clock.advance(Duration::from_hours(1));
        assert_eq!(test.yard.triggers.fire_due(test.clock.now()).await.unwrap(), 0);
        assert_eq!(send(test, hook["url"].as_str().unwrap(), &[], "{}").await.status, 404);
    }

    async fn what_is_not_proven_is_not_taken(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let hook = webhook(test, "echo", json!({"secret": secret})).await;
        assert!(!hook.to_string().contains("MfKQ9r8"), "a secret is never shown");
        let url = hook["url"].as_str().unwrap();
        let stamp = |seconds: i64| (1_800_000_000 + seconds).to_string();
        let signed = |id: &str, time: &str, body: &str| {
            use base64::Engine as _;
            let engine = base64::engine::general_purpose::STANDARD;
            let mut mac = Hmac::<Sha256>::new_from_slice(&engine.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()).unwrap();
            mac.update(format!("{id}.{time}.{body}").as_bytes());
            format!("v1,{}", engine.encode(mac.finalize().into_bytes()))
        };
        let (now, later, old) = (stamp(0), stamp(10), stamp(-600));
        let first = signed("m1", &now, "{}");
        fn headers<'a>(id: &'a str, time: &'a str, signature: &'a str) -> [(&'static str, &'a str); 3] {
            [("webhook-id", id), ("webhook-timestamp", time), ("webhook-signature", signature)]
        }
        let (again, stale, other) = (signed("m1", &later, "{}"), signed("m2", &old, "{}"), signed("m2", &now, "{}"));
        send(test, url, &headers("m1", &now, &first), "{}").await.expect(202);
        assert_eq!(send(test, url, &headers("m1", &now, &first), "{}").await.status, 401, "an exact replay");
        send(test, url, &headers("m1", &later, &again), "{}").await.expect(202);
        for (headers, body) in [
            (headers("m2", &now, &first), "{}"),
            (headers("m2", &old, &stale), "{}"),
            (headers("m2", &now, &other), "{\"a\": 1}"),
            (headers("m2", &now, "v1,????"), "{}"),
        ] {
            assert_eq!(send(test, url, &headers, body).await.status, 401);
        }
        assert_eq!(send(test, url, &[], "{}").await.status, 401);
        assert_eq!(deliveries(test, json!({"subscription_id": hook["id"]})).await.len(), 1);
        assert_eq!(send(test, &format!("{url}x"), &[], "{}").await.status, 404);
        for _ in 0..130 {
            send(test, url, &[], "{}").await;
        }
        assert_eq!(send(test, url, &[], "{}").await.status, 429);
    }

    async fn events_are_posted_and_only_handshakes_are_asked_for(test: &Test) {
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await["id"].clone();
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let plain = webhook(test, "echo", json!({})).await;
        let data = json!({"event_key": "THING_CHANGED", "trigger_config": {"box": "a"}, "references": {"workflow": {"slug": "echo"}}});
        let signed = subscribe(test, json!({"connection_id": connection, "data": data})).await["subscription"].take();
        let body = json!({"action": "changed"}).to_string();
        let secret = fake.seen_at("/hooks").pop().unwrap()["body"]["secret"].clone();
        let signature = format!("sha256={}", sign(secret.as_str().unwrap(), &body));
        let headers = [("webhook-id", "e-1"), ("x-fake-event", "thing"), ("x-fake-delivery", "e-1"), ("x-fake-signature", signature.as_str())];
        for hook in [&plain, &signed] {
            let url = hook["url"].as_str().unwrap();
            let refused = send_with(Method::GET, test, url, &headers, &body).await;
            assert_eq!((refused.status.as_u16(), refused.headers["allow"].to_str().unwrap()), (405, "POST"), "{}", refused.text);
            let looked = send_with(Method::HEAD, test, url, &headers, &body).await;
            assert_eq!((looked.status.as_u16(), looked.text.as_str()), (200, ""));
            assert_eq!(deliveries(test, json!({"subscription_id": hook["id"]})).await.len(), 0);
            // Nothing was kept either: the same event is new when it is posted.
            assert_eq!(send(test, url, &headers, &body).await.expect(202)["detail"], Value::Null);
            assert_eq!(deliveries(test, json!({"subscription_id": hook["id"]})).await.len(), 1);
        }
        let asked = format!("{}?challenge=c-1", signed["url"].as_str().unwrap());
        let answered = send_with(Method::GET, test, &asked, &[], "").await;
        assert_eq!((answered.status.as_u16(), answered.text.as_str()), (200, "c-1"));
        assert_eq!(send_with(Method::GET, test, signed["url"].as_str().unwrap(), &[], "").await.status, 401);
    }

    async fn a_provider_is_told_where_to_send_and_when_to_stop(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await["id"].clone();
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let wanted = |config: Value| json!({"connection_id": connection, "data": {"event_key": "THING_CHANGED", "trigger_config": config, "references": {"workflow": {"slug": "echo"}}}});
        let made = subscribe(test, wanted(json!({"box": "a"}))).await["subscription"].take();
        let hook = fake.seen_at("/hooks").pop().unwrap();
        assert_eq!((&hook["body"]["kind"], &hook["body"]["box"], &hook["body"]["url"]), (&json!("thing"), &json!("a"), &made["url"]));
        let secret = hook["body"]["secret"].as_str().unwrap();
        assert!(!made.to_string().contains(secret));
        assert_eq!(made["trigger_id"], "hook-1");

        // The same is watched once; another box is another subscription.
        let conflict = test.post("/triggers/subscriptions/", json!({"subscription": wanted(json!({"box": "a"}))})).await.expect(409);
        assert_eq!(conflict["detail"]["conflict"]["subscription_id"], made["id"]);
        subscribe(test, wanted(json!({"box": "b"}))).await;
        for bad in [json!({}), json!({"box": 7}), json!({"box": "a", "more": 1})] {
            test.post("/triggers/subscriptions/", json!({"subscription": wanted(bad)})).await.expect(422);
        }

        let url = made["url"].as_str().unwrap();
        let body = json!({"action": "changed", "id": 5}).to_string();
        let signature = format!("sha256={}", sign(secret, &body));
        let headers = [("x-fake-event", "thing"), ("x-fake-delivery", "d-1"), ("x-fake-signature", signature.as_str())];
        send(test, url, &headers, &body).await.expect(202);
        send(test, url, &headers, &body).await.expect(202);
        let other = json!({"action": "moved"}).to_string();
        let moved = format!("sha256={}", sign(secret, &other));
        send(test, url, &[("x-fake-event", "thing"), ("x-fake-delivery", "d-2"), ("x-fake-signature", &moved)], &other).await.expect(202);
        let filter = json!({"subscription_id": made["id"]});
        assert_eq!(settled(test, filter.clone(), 1).await[0]["data"]["result"]["outputs"]["event"]["attributes"]["id"], 5);

        let path = format!("/triggers/subscriptions/{}", made["id"].as_str().unwrap());
        test.post(&format!("{path}/stop"), json!({})).await.expect(200);
        assert_eq!(fake.seen_at("/hooks/hook-1").len(), 1, "the provider is told to stop");
        send(test, url, &[("x-fake-event", "thing"), ("x-fake-delivery", "d-3"), ("x-fake-signature", &signature)], &body).await.expect(202);
        fake.answer_hooks(503);
        test.post(&format!("{path}/start"), json!({})).await.expect(502);
        assert_eq!(test.get(&path).await.expect(200)["subscription"]["flags"]["is_active"], false);
        fake.answer_hooks(404);
        test.post(&format!("{path}/start"), json!({})).await.expect(424);
        fake.answer_hooks(0);
        assert_eq!(test.post(&format!("{path}/start"), json!({})).await.expect(200)["subscription"]["flags"]["is_active"], true);
        assert_eq!(deliveries(test, filter.clone()).await.len(), 1, "nothing runs while it is paused");

        // A connection that is revoked pauses its subscriptions and keeps their history.
        test.post(&format!("/tools/connections/{}/revoke", connection.as_str().unwrap()), json!({})).await.expect(200);
        let paused = test.get(&path).await.expect(200);
        assert_eq!((&paused["subscription"]["flags"]["is_active"], &paused["subscription"]["reason"]), (&json!(false), &json!("The connection was revoked.")));
        test.post(&format!("{path}/start"), json!({})).await.expect(400);
        assert_eq!(test.delete(&path).await.status, 204);
        assert_eq!(test.delete(&path).await.status, 404);
        assert_eq!(deliveries(test, filter).await.len(), 1);
        assert!(test.get(&path).await.expect(200)["subscription"]["deleted_at"].is_string());
        assert_eq!(send(test, url, &headers, &body).await.status, 404);
    }

    async fn polling_finds_what_is_new_and_nothing_twice(test: &Test) {
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await["id"].clone();
        workflow(test, "echo", json!({"kind": "echo"})).await;
        fake.add_thing("old");
        let body = json!({"connection_id": connection, "data": {"event_key": "THING_MADE", "references": {"workflow": {"slug": "echo"}}}});
        let made = subscribe(test, body.clone()).await["subscription"].take();
        let filter = json!({"subscription_id": made["id"]});
        test.yard.triggers.poll_due().await.unwrap();
        assert_eq!(deliveries(test, filter.clone()).await.len(), 0, "history is not replayed");
        fake.add_thing("new-1");
        fake.add_thing("new-2");
        test.clock.advance(Duration::from_mins(2));
        test.yard.triggers.poll_due().await.unwrap();
        assert_eq!(deliveries(test, filter.clone()).await.len(), 2);
        // An edit of other things keeps the place.
        let mut edited = body;
        edited["id"] = made["id"].clone();
        edited["name"] = json!("renamed");
        let path = format!("/triggers/subscriptions/{}", made["id"].as_str().unwrap());
        put(test, &path, json!({"subscription": edited})).await.expect(200);
        fake.add_thing("new-3");
        test.clock.advance(Duration::from_mins(2));
        test.yard.triggers.poll_due().await.unwrap();
        test.clock.advance(Duration::from_mins(2));
        test.yard.triggers.poll_due().await.unwrap();
        assert_eq!(deliveries(test, filter).await.len(), 3);
    }

    async fn failures_are_tried_again_under_the_same_key(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        http_target(test, &fake, "target").await;
        let hook = webhook(test, "target", json!({})).await;
        let (url, filter) = (hook["url"].as_str().unwrap(), json!({"subscription_id": hook["id"]}));
        fake.answer_target(&[503, 500]);
        send(test, url, &[("webhook-id", "a")], "{}").await.expect(202);
        for tries in 1..=3 {
            for _ in 0..400 {
                if fake.seen_at("/target").len() == tries && deliveries(test, filter.clone()).await[0]["state"] != "leased" {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
            test.clock.advance(Duration::from_mins(2));
        }
        let done = settled(test, filter.clone(), 1).await;
        assert_eq!((&done[0]["status"]["code"], &done[0]["attempts_count"]), (&json!("200"), &json!(3)), "{done:#?}");
        let keys: Vec<Value> = fake.seen_at("/target").iter().map(|seen| seen["headers"]["idempotency-key"].clone()).collect();
        assert_eq!(keys, vec![done[0]["id"].clone(); 3]);
        let attempts = test.get(&format!("/triggers/deliveries/{}", done[0]["id"].as_str().unwrap())).await.expect(200);
        let codes: Vec<&str> = attempts["delivery"]["attempts"].as_array().unwrap().iter().map(|attempt| attempt["code"].as_str().unwrap()).collect();
        assert_eq!(codes, ["503", "500", "200"]);

        // What cannot pass by itself ends at once, is kept, and is run again on request.
        fake.answer_target(&[422]);
        send(test, url, &[("webhook-id", "b")], "{}").await.expect(202);
        let dead = settled(test, json!({"subscription_id": hook["id"], "event_id": "b"}), 1).await;
        assert_eq!((&dead[0]["state"], &dead[0]["status"]["code"]), (&json!("dead"), &json!("422")));
        let path = format!("/triggers/deliveries/{}", dead[0]["id"].as_str().unwrap());
        test.post(&format!("{path}/retry"), json!({})).await.expect(200);
        assert_eq!(settled(test, json!({"event_id": "b"}), 1).await[0]["status"]["code"], "200");
        fake.answer_target(&[422, 422]);
        for id in ["c", "d"] {
            send(test, url, &[("webhook-id", id)], "{}").await.expect(202);
        }
        settled(test, filter.clone(), 4).await;
        assert_eq!(test.post("/triggers/deliveries/replay", json!({"delivery": filter})).await.expect(200)["count"], 2);
        let all = settled(test, filter, 4).await;
        assert!(all.iter().all(|delivery| delivery["status"]["code"] == "200"), "{all:#?}");
    }

    async fn a_retry_makes_again_what_failed_and_not_what_succeeded(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        http_target(test, &fake, "target").await;
        workflow(test, "two", json!({"steps": [
            {"name": "made", "call": "tools.native.fake.MAKE_A_THING.main", "arguments": {"title": "x"}},
            {"name": "told", "call": "workflow.variant.target"},
        ]})).await;
        let hook = webhook(test, "two", json!({})).await;
        fake.answer_target(&[503]);
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        for _ in 0..400 {
            if deliveries(test, json!({})).await[0]["status"]["code"] == "503" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        test.clock.advance(Duration::from_mins(2));
        let done = settled(test, json!({}), 1).await;
        assert_eq!((&done[0]["status"]["code"], &done[0]["attempts_count"]), (&json!("200"), &json!(2)), "{done:#?}");
        assert_eq!((fake.seen_at("/echo/things").len(), fake.seen_at("/target").len()), (1, 2));
    }

    async fn a_call_of_unknown_outcome_is_not_repeated_where_the_author_says_so(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let slow = |more: Value| {
            let mut step = json!({"name": "pay", "call": "tools.native.fake.SLOWLY.main", "arguments": {"ms": 20_000}, "on_error": "continue"});
            step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"timeout_ms": 300, "steps": [step]})
        };
        let mut whole = slow(json!({}));
        whole["on_uncertain"] = json!("stop");
        for (slug, data, calls) in [("step", slow(json!({"on_uncertain": "stop"})), 1), ("whole", whole, 2), ("again", slow(json!({})), 4)] {
            workflow(test, slug, data).await;
            let hook = webhook(test, slug, json!({})).await;
            let filter = json!({"subscription_id": hook["id"]});
            send(test, hook["url"].as_str().unwrap(), &[], &json!({"slug": slug}).to_string()).await.expect(202);
            let is_late = async || deliveries(test, filter.clone()).await.first().is_some_and(|delivery| delivery["status"]["code"] == "504");
            until("the first try takes too long", is_late).await;
            test.clock.advance(Duration::from_mins(2));
            if slug == "again" {
                until("it is tried again", async || fake.seen_at("/slow").len() == calls).await;
                continue;
            }
            let dead = settled(test, filter, 1).await;
            assert_eq!((&dead[0]["state"], &dead[0]["status"]["code"]), (&json!("dead"), &json!("409")), "{dead:#?}");
            assert!(dead[0]["status"]["message"].as_str().unwrap().contains("step `pay`: its outcome is unknown"), "{dead:#?}");
            assert_eq!(fake.seen_at("/slow").len(), calls);
            let run = test.get(&format!("/workflows/runs/{}", dead[0]["data"]["result"]["run_id"].as_str().unwrap())).await.expect(200);
            assert_eq!(run["run"]["steps"][0]["state"], "unknown");
        }
    }

    async fn a_dispatched_run_ends_later(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        http_target(test, &fake, "target").await;
        let hook = webhook(test, "target", json!({})).await;
        fake.answer_target(&[202]);
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        let waits = settled(test, json!({}), 1).await;
        assert_eq!((&waits[0]["state"], &waits[0]["status"]["code"]), (&json!("waiting"), &json!("202")));
        let path = format!("/triggers/deliveries/{}/complete", waits[0]["id"].as_str().unwrap());
        test.post(&path, json!({"status": {"code": 7}})).await.expect(422);
        let done = test.post(&path, json!({"status": {"code": 200}, "outputs": {"a": 1}})).await.expect(200);
        assert_eq!((&done["delivery"]["state"], &done["delivery"]["data"]["result"]["outputs"]["a"]), (&json!("done"), &json!(1)));
        test.post(&path, json!({"status": {"code": 200}})).await.expect(409);
    }

    async fn ordered_events_wait_for_each_other(test: &Test) {
        let fake = Fake::start().await;
        workflow(test, "slow", json!({"kind": "http", "url": format!("{}/slow", fake.url)})).await;
        let hook = webhook(test, "slow", json!({"ordered": true, "inputs_fields": {"n": "$.event.attributes.n", "ms": "$.event.attributes.ms"}})).await;
        for n in 0..6 {
            let body = json!({"n": n, "ms": if n % 2 == 0 { 120 } else { 0 }}).to_string();
            send(test, hook["url"].as_str().unwrap(), &[], &body).await.expect(202);
        }
        test.yard.triggers.start().await.unwrap();
        settled(test, json!({}), 6).await;
        let order: Vec<i64> = fake.seen_at("/slow").iter().map(|seen| seen["body"]["data"]["inputs"]["n"].as_i64().unwrap()).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    }

    async fn runs_act_with_what_their_author_may_do_now(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let editor = test.key("default", Role::Editor, None).await;
        let body = json!({"subscription": {"data": {"event_key": "WEBHOOK_RECEIVED", "references": {"workflow": {"slug": "echo"}}}}});
        let hook = test.post_as(&editor, "/triggers/subscriptions/", body).await.expect(200)["subscription"].take();
        let keys = test.yard.accounts.list_keys(None).await.unwrap();
        test.yard.accounts.revoke_key(keys.last().unwrap().id).await.unwrap();
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        let refused = settled(test, json!({}), 1).await;
        assert_eq!((&refused[0]["status"]["code"], &refused[0]["state"]), (&json!("403"), &json!("dead")), "{refused:#?}");
    }

    async fn targets_are_checked_when_they_are_saved(test: &Test) {
        let post = |references: Value| json!({"subscription": {"data": {"event_key": "WEBHOOK_RECEIVED", "references": references}}});
        for references in [
            json!({"workflow": {"slug": "nope"}}),
            json!({"workflow_revision": {"version": "1"}}),
            json!({"environment": {"slug": "staging"}, "workflow": {"slug": "nope"}}),
            json!({"workflow": {"slug": "a"}, "application": {"slug": "a"}}),
        ] {
            let reply = test.post("/triggers/subscriptions/", post(references.clone())).await;
            assert_eq!(reply.status, 422, "{references}: {}", reply.text);
        }
        for data in [
            json!({"event_key": "WEBHOOK_RECEIVED", "inputs_fields": {"a": "$[?"}}),
            json!({"event_key": "WEBHOOK_RECEIVED", "inputs_fields": []}),
            json!({"event_key": "WEBHOOK_RECEIVED", "trigger_config": {"scheme": "magic"}}),
            json!({"event_key": "NOPE"}),
            json!({"event_key": "WEBHOOK_RECEIVED", "input_fields": {}}),
            json!({}),
        ] {
            let reply = test.post("/triggers/subscriptions/", json!({"subscription": {"data": data}})).await;
            assert_eq!(reply.status, 422, "{data}: {}", reply.text);
        }
        // What a workflow requires must be given, and what is given must be there.
        let inputs = json!({"type": "object", "properties": {"title": {"type": "string"}, "n": {"type": "integer"}}, "required": ["title"], "additionalProperties": false});
        workflow(test, "strict", json!({"kind": "echo", "schemas": {"inputs": inputs}})).await;
        let aimed = |fields: Value| json!({"event_key": "WEBHOOK_RECEIVED", "references": {"workflow": {"slug": "strict"}}, "inputs_fields": fields});
        let ticking = |fields: Value| json!({"event_key": "tick", "schedule": "0 9 * * *", "references": {"workflow": {"slug": "strict"}}, "inputs_fields": fields});
        for (fields, words) in [
            (Value::Null, "requires `title`, and the mapping gives event, subscription, scope"),
            (json!({}), "requires `title`, and the mapping gives nothing"),
            (json!({"titel": "$.event.event_type"}), "requires `title`"),
            (json!({"title": "$.event.event_type", "m": 1}), "takes no `m`"),
            (json!({"title": "$.evnt.event_type"}), "Did you mean `event`?"),
            (json!({"title": "/event/event_tpye"}), "Did you mean `event_type`?"),
            (json!({"title": ["$['subscription']['nam']"]}), "inputs_fields/title/0"),
            (json!({"title": "{{ evnt.event_type }}"}), "Did you mean `event`?"),
            (json!({"title": "for {{ event.event_tipe | upper }}"}), "inputs_fields/title: `{{ event.event_tipe }}` selects nothing"),
        ] {
            for (path, one, data) in [("/triggers/subscriptions/", "subscription", aimed(fields.clone())), ("/triggers/schedules/", "schedule", ticking(fields.clone()))] {
                let said = test.post(path, json!({one: {"data": data}})).await.detail(422);
                assert!(said.contains(words), "{path} {fields}: {said}");
            }
        }
        // Only the sender knows what an event holds; what a schedule's holds is known.
        let unknown = json!({"title": "$.event.attributes.whatever"});
        test.post("/triggers/schedules/", json!({"schedule": {"data": ticking(unknown.clone())}})).await.expect(422);
        test.post("/triggers/schedules/", json!({"schedule": {"data": ticking(json!({"title": "$.event.attributes.timestamp"}))}})).await.expect(200);
        let saved = subscribe(test, json!({"data": aimed(unknown)})).await["subscription"].take();
        subscribe(test, json!({"data": aimed(json!("$.event.attributes"))})).await;
        test.post("/triggers/subscriptions/test?wait=0", json!({"subscription": {"data": aimed(json!({"a": "$.evnt"}))}})).await.expect(422);
        let mut edited = json!({"id": saved["id"], "data": aimed(json!({"n": 1}))});
        let path = format!("/triggers/subscriptions/{}", saved["id"].as_str().unwrap());
        put(test, &path, json!({"subscription": edited.clone()})).await.expect(422);
        edited["data"]["inputs_fields"]["title"] = json!("{{ event.event_type }}");
        put(test, &path, json!({"subscription": edited})).await.expect(200);
    }

    async fn the_rest_of_what_is_saved_is_checked_too(test: &Test) {
        let missing = json!({"subscription": {"connection_id": uuid::Uuid::now_v7(), "data": {"event_key": "X"}}});
        test.post("/triggers/subscriptions/", missing).await.expect(404);
        assert_eq!(test.get("/triggers/subscriptions/").await.expect(200)["count"], 0);
        let preview = test.post("/triggers/preview", json!({"inputs_fields": {"a": "$.event.attributes.x", "b": "{{ event.attributes.y }}"}, "event": {"y": 2}})).await.expect(200);
        assert_eq!((&preview["inputs"]["b"], &preview["missed"][0]["place"]), (&json!(2), &json!("/a")));
        test.post("/triggers/preview", json!({})).await.expect(400);
    }

    async fn lists_are_read_page_by_page_in_both_directions(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        for name in ["one", "tw_o", "three"] {
            let data = json!({"event_key": "WEBHOOK_RECEIVED", "references": {"workflow": {"slug": "echo"}}});
            subscribe(test, json!({"name": name, "data": data})).await;
            let data = json!({"event_key": "tick", "schedule": "0 0 1 1 *", "references": {"workflow": {"slug": "echo"}}});
            test.post("/triggers/schedules/", json!({"schedule": {"name": name, "data": data}})).await.expect(200);
        }
        for (one, many) in [("subscription", "subscriptions"), ("schedule", "schedules")] {
            let list = async |filter: Value, window: Value| {
                let mut page = test.post(&format!("/triggers/{many}/query"), json!({one: filter, "windowing": window})).await.expect(200);
                let names: Vec<String> = page[many].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect();
                (names, page["cursor"].take())
            };
            for (order, names) in [("descending", ["three", "tw_o", "one"]), ("ascending", ["one", "tw_o", "three"])] {
                let (first, cursor) = list(json!({}), json!({"order": order, "limit": 2})).await;
                assert_eq!(first, names[..2], "{many} {order}");
                assert_eq!(list(json!({}), json!({"order": order, "limit": 2, "next": cursor})).await, (vec![names[2].to_owned()], Value::Null));
                assert_eq!(list(json!({}), json!({"order": order, "limit": 3})).await.1, Value::Null, "a full page is not more");
            }
            assert_eq!(list(json!({"name": "W_"}), json!({})).await.0, ["tw_o"], "an underscore stands for itself");
            assert_eq!(list(json!({"name": "%"}), json!({})).await.0.len(), 0);
        }
    }

    async fn schedules_fire_each_slot_once(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let schedule = |data: Value| {
            let mut whole = json!({"event_key": "tick", "schedule": "*/5 * * * *", "references": {"workflow": {"slug": "echo"}}});
            whole.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
            json!({"schedule": {"name": "s", "data": whole}})
        };
        let made = test.post("/triggers/schedules/", schedule(json!({}))).await.expect(200)["schedule"].take();
        assert_eq!(made["next_fire_at"], "2027-01-15T08:05:00Z");
        let path = format!("/triggers/schedules/{}", made["id"].as_str().unwrap());
        let now = || test.clock.now();
        test.yard.triggers.fire_due(now()).await.unwrap();
        assert_eq!(deliveries(test, json!({})).await.len(), 0);
        test.clock.advance(Duration::from_mins(5));
        for _ in 0..3 {
            test.yard.triggers.fire_due(now()).await.unwrap();
            let tick = "/admin/triggers/schedules/refresh?trigger_interval=1&trigger_datetime=2027-01-15T08:06:00Z";
            assert_eq!(test.admin(Method::POST, tick, None).await.expect(200)["status"], "success");
        }
        let fired = deliveries(test, json!({"schedule_id": made["id"]})).await;
        assert_eq!(fired.len(), 1);
        assert_eq!(fired[0]["event_id"], json!(format!("{}:2027-01-15T08:05:00+00:00", made["id"].as_str().unwrap())));
        test.yard.triggers.start().await.unwrap();
        let done = settled(test, json!({"schedule_id": made["id"]}), 1).await;
        assert_eq!(done[0]["data"]["inputs"]["event"]["attributes"]["timestamp"], "2027-01-15T08:05:00+00:00");

        test.post(&format!("{path}/run"), json!({})).await.expect(200);
        settled(test, json!({"schedule_id": made["id"]}), 2).await;
        test.post(&format!("{path}/stop"), json!({})).await.expect(200);
        test.clock.advance(Duration::from_mins(30));
        test.yard.triggers.fire_due(now()).await.unwrap();
        assert_eq!(deliveries(test, json!({"schedule_id": made["id"]})).await.len(), 2);
        assert!(test.post(&format!("{path}/start"), json!({})).await.expect(200)["schedule"]["next_fire_at"].is_string());

        for data in [
            json!({"schedule": "* * * * * *"}), json!({"schedule": "@daily"}), json!({"schedule": "*/0 * * * *"}), json!({"schedule": 5}),
            json!({"timezone": "Mars/Base"}), json!({"start_time": "2027-01-02T00:00:00Z", "end_time": "2027-01-01T00:00:00Z"}),
            json!({"misfire": "sometimes"}), json!({"jitter_seconds": -1}), json!({"references": {"workflow": {"slug": "gone"}}}), json!({"event_key": ""}),
        ] {
            let reply = test.post("/triggers/schedules/", schedule(data.clone())).await;
            assert_eq!(reply.status, 422, "{data}: {}", reply.text);
        }
        let times = test.post("/triggers/schedules/preview", schedule(json!({"schedule": "0 9 * * mon-fri", "timezone": "Europe/Berlin"}))).await.expect(200);
        assert_eq!((&times["count"], &times["times"][0]), (&json!(10), &json!("2027-01-18T08:00:00Z")));
        put(test, &path, schedule(json!({}))).await.expect(400);
    }

    async fn missed_slots_follow_their_policy(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let mut ids = Vec::new();
        for misfire in [json!("skip"), json!("fire_once"), json!({"policy": "catch_up", "limit": 3}), json!({"policy": "catch_up", "limit": 100})] {
            let data = json!({"event_key": "tick", "schedule": "*/10 * * * *", "misfire": misfire, "references": {"workflow": {"slug": "echo"}}});
            let made = test.post("/triggers/schedules/", json!({"schedule": {"data": data}})).await.expect(200);
            ids.push(made["schedule"]["id"].clone());
        }
        test.clock.advance(Duration::from_mins(125));
        test.yard.triggers.fire_due(test.clock.now()).await.unwrap();
        let mut counts = Vec::new();
        for id in ids {
            counts.push(deliveries(test, json!({"schedule_id": id})).await.len());
        }
        assert_eq!(counts, [0, 1, 3, 12]);
    }

    async fn a_test_waits_shows_and_leaves_nothing(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        let connection = test.connect_fake(&fake, "main").await["id"].clone();
        let body = json!({"subscription": {"connection_id": connection, "data": {"event_key": "THING_CHANGED", "trigger_config": {"box": "a"}}}});
        assert_eq!(test.post("/triggers/subscriptions/test?wait=1", body.clone()).await.expect(200), json!({"count": 0}));
        let waiting = test.post("/triggers/subscriptions/test?wait=20", body);
        let (found, ()) = tokio::join!(waiting, change_a_thing(test, &fake, 1, Duration::from_millis(100)));
        let found = found.expect(200);
        assert_eq!((&found["count"], &found["delivery"]["data"]["is_test"]), (&json!(1), &json!(true)), "{found}");
        for _ in 0..100 {
            if fake.seen_at("/hooks/").len() == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(fake.seen_at("/hooks/").len(), 2, "every hook is removed again");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(test.get("/triggers/subscriptions/").await.expect(200)["count"], 0);
        assert_eq!(deliveries(test, json!({})).await.len(), 0);
    }
}
