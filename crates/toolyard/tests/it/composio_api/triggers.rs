//! Trigger types, trigger instances, and what the webhook of a project is told.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::Method;
use kernel::Role;
use serde_json::{Value, json};
use sha2::Sha256;

use super::{ask, ask_as, read, refused};
use crate::support::{Database, Fake, Test, on_both, until};
use crate::triggers::{change_a_thing, deliveries, send, settled};

/// Every kind of message.
const EVENTS: [&str; 3] = ["composio.trigger.message", "composio.connected_account.expired", "composio.trigger.disabled"];

/// An account of the fake service; the id as Composio writes it.
async fn account(test: &Test, fake: &Fake, user: &str) -> Value {
    let data = json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": format!("sk-{user}-123456")}});
    let connection = json!({"provider_key": "native", "integration_key": "fake", "end_user": user, "data": data});
    test.post("/tools/connections", json!({"connection": connection})).await.expect(200)["connection"].take()
}

async fn upsert(test: &Test, slug: &str, body: Value) -> crate::support::Reply {
    ask(test, Method::POST, &format!("/trigger_instances/{slug}/upsert"), Some(body)).await
}

async fn made(test: &Test, slug: &str, body: Value) -> String {
    let answer = upsert(test, slug, body).await.expect(200);
    answer["trigger_id"].as_str().unwrap().to_owned()
}

async fn webhook(test: &Test, fake: &Fake, version: &str, events: &[&str]) -> Value {
    let body = json!({"webhook_url": format!("{}/target", fake.url), "enabled_events": events, "version": version});
    ask(test, Method::POST, "/webhook_subscriptions", Some(body)).await.expect(201)
}

async fn listed(test: &Test, query: &str) -> Vec<Value> {
    read(test, &format!("/trigger_instances/active?{query}")).await["items"].as_array().unwrap().clone()
}

/// What Composio's SDKs compute: the secret's text is the key.
fn signature(secret: &str, post: &Value) -> String {
    let header = |name: &str| post["headers"][name].as_str().unwrap().to_owned();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{}.{}.{}", header("webhook-id"), header("webhook-timestamp"), post["body"]).as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn posts(fake: &Fake) -> Vec<Value> {
    fake.seen_at("/target")
}

on_both! {
    async fn trigger_types_are_listed_and_read(test: &Test) {
        let page = read(test, "/triggers_types?toolkit_slugs=FAKE").await;
        assert_eq!((&page["total_items"], &page["next_cursor"]), (&json!(2), &Value::Null), "{page}");
        let kinds: Vec<(&str, &str)> =
            page["items"].as_array().unwrap().iter().map(|kind| (kind["slug"].as_str().unwrap(), kind["type"].as_str().unwrap())).collect();
        assert_eq!(kinds, [("FAKE_THING_CHANGED", "webhook"), ("FAKE_THING_MADE", "poll")]);
        let kind = read(test, "/triggers_types/fake_thing_changed?toolkit_versions=latest").await;
        assert_eq!((&kind["toolkit"]["slug"], &kind["config"]["required"]), (&json!("fake"), &json!(["box"])), "{kind}");
        assert!(kind["payload"].is_object() && kind["instructions"].is_string() && kind["toolkit"]["logo"].is_string(), "{kind}");
        let slugs = read(test, "/triggers_types/list/enum").await;
        for slug in ["FAKE_THING_MADE", "GITHUB_ISSUE_OPENED", "WEBHOOK_RECEIVED"] {
            assert!(slugs.as_array().unwrap().contains(&json!(slug)), "{slug}");
        }
        // All of them, page by page, each once.
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = read(test, &format!("/triggers_types?limit=9999&cursor={cursor}")).await;
            assert!(page["items"].as_array().unwrap().len() <= 50);
            seen.extend(page["items"].as_array().unwrap().iter().map(|kind| kind["slug"].clone()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(json!(seen), slugs);
        let plain = read(test, "/triggers_types/webhook_received").await;
        assert_eq!((&plain["toolkit"]["slug"], &plain["requires_webhook_endpoint_setup"]), (&json!("webhook"), &json!(true)));
        let unknown = refused(ask(test, Method::GET, "/triggers_types/FAKE_THING_MAD", None).await, 404);
        assert!(unknown["message"].as_str().unwrap().contains("Did you mean `FAKE_THING_MADE`?"), "{unknown}");
        for path in ["/triggers_types?toolkit_slugs=nothing", "/triggers_types/FAKE_THING_MADE?toolkit_versions=19990101_00"] {
            refused(ask(test, Method::GET, path, None).await, 404);
        }
    }

    async fn an_event_of_a_user_reaches_the_webhook_signed(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        let alice = account(test, &fake, "alice").await;
        let hook = webhook(test, &fake, "V3", &EVENTS).await;
        let secret = hook["secret"].as_str().unwrap();
        let id = made(test, "FAKE_THING_CHANGED", json!({"user_id": "alice", "trigger_config": {"box": "a"}})).await;
        // The receiver fails first, in a way that a workflow's target would be given up for.
        fake.answer_target(&[404]);
        change_a_thing(test, &fake, 0, Duration::ZERO).await;
        until("the first try", async || posts(&fake).len() == 1).await;
        until("its end", async || deliveries(test, json!({})).await[0]["status"]["code"] == "404").await;
        let waiting = deliveries(test, json!({})).await.remove(0);
        assert_eq!((&waiting["state"], &waiting["data"]["webhook"]["status"]), (&json!("ready"), &json!(404)), "{waiting:#}");
        test.clock.advance(Duration::from_secs(11));
        let done = settled(test, json!({}), 1).await;
        assert_eq!((&done[0]["state"], &done[0]["attempts_count"]), (&json!("done"), &json!(2)), "{done:#?}");

        let tries = posts(&fake);
        assert_eq!(tries.len(), 2);
        for (number, post) in tries.iter().enumerate() {
            assert_eq!(post["headers"]["x-composio-delivery-attempt"], (number + 1).to_string());
            assert_eq!(post["headers"]["webhook-signature"], signature(secret, post), "{post:#}");
        }
        assert_eq!(tries[0]["body"], tries[1]["body"]);
        assert_eq!(tries[0]["headers"]["webhook-id"], tries[1]["headers"]["webhook-id"]);
        assert_ne!(tries[0]["headers"]["webhook-timestamp"], tries[1]["headers"]["webhook-timestamp"]);
        let body = &tries[0]["body"];
        assert_eq!((&body["type"], &body["id"]), (&json!("composio.trigger.message"), &tries[0]["headers"]["webhook-id"]));
        assert_eq!(body["data"], json!({"action": "changed"}));
        let metadata = body["metadata"].as_object().unwrap();
        assert_eq!((metadata.len(), metadata.values().all(Value::is_string)), (6, true), "{body:#}");
        assert_eq!((&body["metadata"]["trigger_id"], &body["metadata"]["user_id"]), (&json!(id), &json!("alice")));
        assert_eq!(body["metadata"]["trigger_slug"], "FAKE_THING_CHANGED");
        let row = listed(test, "user_ids=alice").await.remove(0);
        assert_eq!(row["connected_account_id"], body["metadata"]["connected_account_id"]);
        assert_eq!((&row["connected_account_uuid"], &row["state"]), (&alice["id"], &json!({})), "{row:#}");
        // In the native API it is one of the user's triggers.
        let native = test.get("/triggers/subscriptions").await.expect(200);
        assert_eq!((&native["subscriptions"][0]["target"], &native["subscriptions"][0]["id"]), (&json!("webhook"), &row["uuid"]));
    }

    async fn without_a_webhook_events_wait_to_be_replayed(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        made(test, "WEBHOOK_RECEIVED", json!({"user_id": "alice"})).await;
        let url = listed(test, "").await[0]["state"]["url"].as_str().unwrap().to_owned();
        send(test, &url, &[("webhook-id", "e-1")], r#"{"n": 1}"#).await.expect(202);
        let dead = settled(test, json!({}), 1).await;
        assert_eq!((&dead[0]["state"], &dead[0]["status"]["code"]), (&json!("dead"), &json!("404")), "{dead:#?}");
        assert!(dead[0]["status"]["message"].as_str().unwrap().contains("webhook_subscriptions"), "{dead:#?}");
        let hook = webhook(test, &fake, "V3", &EVENTS[1..]).await;
        test.post("/triggers/deliveries/replay", json!({})).await.expect(200);
        until("it is not wanted", async || deliveries(test, json!({})).await[0]["state"] == "done").await;
        assert!(posts(&fake).is_empty(), "the webhook takes no events of triggers");
        let path = format!("/webhook_subscriptions/{}", hook["id"].as_str().unwrap());
        ask(test, Method::PATCH, &path, Some(json!({"enabled_events": EVENTS}))).await.expect(200);
        test.post(&format!("/triggers/deliveries/{}/retry", dead[0]["id"].as_str().unwrap()), json!({})).await.expect(200);
        until("it is sent", async || posts(&fake).len() == 1).await;
        assert_eq!(posts(&fake)[0]["body"]["data"], json!({"n": 1}));
        assert_eq!(posts(&fake)[0]["body"]["metadata"]["connected_account_id"], "");
        // One that says that it is gone is not asked again.
        fake.answer_target(&[410]);
        send(test, &url, &[("webhook-id", "e-2")], "{}").await.expect(202);
        until("it is given up", async || deliveries(test, json!({"event_id": "e-2"})).await.first().is_some_and(|one| one["state"] == "dead")).await;
    }

    async fn older_versions_are_written_as_they_were(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        let hook = webhook(test, &fake, "V1", &EVENTS[..1]).await;
        let path = format!("/webhook_subscriptions/{}", hook["id"].as_str().unwrap());
        let id = made(test, "webhook_received", json!({"user_id": "alice"})).await;
        let url = listed(test, "").await[0]["state"]["url"].as_str().unwrap().to_owned();
        send(test, &url, &[("webhook-id", "e-1")], r#"{"n": 1}"#).await.expect(202);
        until("V1", async || posts(&fake).len() == 1).await;
        let body = posts(&fake)[0]["body"].clone();
        assert_eq!((&body["trigger_name"], &body["trigger_id"], &body["payload"]), (&json!("WEBHOOK_RECEIVED"), &json!(id), &json!({"n": 1})));
        ask(test, Method::PATCH, &path, Some(json!({"version": "V2"}))).await.expect(200);
        send(test, &url, &[("webhook-id", "e-2")], r#"{"n": 2}"#).await.expect(202);
        until("V2", async || posts(&fake).len() == 2).await;
        let post = posts(&fake)[1].clone();
        assert_eq!(post["headers"]["x-composio-webhook-version"], "V2");
        assert_eq!((&post["body"]["type"], &post["body"]["data"]["n"]), (&json!("webhook_received"), &json!(2)));
        assert_eq!((&post["body"]["data"]["trigger_nano_id"], &post["body"]["data"]["user_id"]), (&json!(id), &json!("alice")));
        // What exists in V3 alone is not promised in an older version.
        let error = refused(ask(test, Method::PATCH, &path, Some(json!({"enabled_events": EVENTS}))).await, 400);
        assert!(error["message"].as_str().unwrap().contains("V3 only"), "{error}");
    }

    async fn the_same_is_watched_once_for_each_user(test: &Test) {
        let fake = Fake::start().await;
        account(test, &fake, "alice").await;
        account(test, &fake, "bob").await;
        let config = |letter: &str| json!({"box": letter});
        let one = made(test, "FAKE_THING_CHANGED", json!({"user_id": "alice", "trigger_config": config("a")})).await;
        assert_eq!(made(test, "fake_thing_changed", json!({"user_id": "alice", "triggerConfig": config("a")})).await, one);
        let others = [
            made(test, "FAKE_THING_CHANGED", json!({"user_id": "bob", "trigger_config": config("a")})).await,
            made(test, "FAKE_THING_CHANGED", json!({"user_id": "alice", "trigger_config": config("b")})).await,
            made(test, "WEBHOOK_RECEIVED", json!({"user_id": "alice"})).await,
            made(test, "WEBHOOK_RECEIVED", json!({"user_id": "bob"})).await,
            made(test, "WEBHOOK_RECEIVED", json!({"user_id": "default"})).await,
        ];
        assert_eq!(made(test, "WEBHOOK_RECEIVED", json!({"user_id": "bob"})).await, others[3]);
        assert!(!others.contains(&one));
        assert_eq!(fake.seen_at("/hooks").len(), 3, "the service was told once for each");

        // Disabled, it is not listed; made again, it is enabled.
        let path = format!("/trigger_instances/manage/{one}");
        let status = ask(test, Method::PATCH, &path, Some(json!({"status": "disable"}))).await.expect(200);
        assert_eq!(status, json!({"status": "success"}));
        assert_eq!(listed(test, "user_ids=alice").await.len(), 2);
        let all = listed(test, "user_ids=alice&show_disabled=true").await;
        let row = all.iter().find(|row| row["id"] == json!(one)).unwrap();
        assert!(row["disabled_at"].is_string() && row["disabledAt"] == row["disabled_at"], "{row}");
        assert_eq!(made(test, "FAKE_THING_CHANGED", json!({"user_id": "alice", "trigger_config": config("a")})).await, one);
        assert_eq!(listed(test, "user_ids=alice").await.len(), 3);
        ask(test, Method::PATCH, &path, Some(json!({"status": "disable"}))).await.expect(200);
        ask(test, Method::PATCH, &path, Some(json!({"status": "enable"}))).await.expect(200);
        for body in [json!({}), json!({"status": "paused"}), json!({"status": "enable", "egress_url": "https://example.com/"})] {
            refused(ask(test, Method::PATCH, &path, Some(body)).await, 400);
        }

        // Each filter alone, and all together.
        let account_of_bob = listed(test, "user_ids=bob&trigger_names=FAKE_THING_CHANGED").await[0]["connected_account_id"].clone();
        let account_of_bob = account_of_bob.as_str().unwrap();
        for (query, count) in [
            (String::new(), 6),
            ("user_ids=alice,bob".to_owned(), 5),
            ("user_ids=default".to_owned(), 1),
            ("user_ids=nobody".to_owned(), 0),
            ("trigger_names=webhook_received".to_owned(), 3),
            ("triggerNames=WEBHOOK_RECEIVED,FAKE_THING_CHANGED".to_owned(), 6),
            ("trigger_names=NOTHING".to_owned(), 0),
            (format!("trigger_ids={one},{}", others[0]), 2),
            ("trigger_ids=ti_x".to_owned(), 0),
            (format!("connected_account_ids={account_of_bob}"), 1),
            (format!("connected_account_ids={account_of_bob}&user_ids=alice,bob&trigger_names=FAKE_THING_CHANGED"), 1),
            (format!("connected_account_ids={account_of_bob}&user_ids=alice"), 0),
            ("auth_config_ids=ac_0000000000000000000000".to_owned(), 0),
        ] {
            assert_eq!(listed(test, &query).await.len(), count, "{query}");
        }
        let (first, last) = (read(test, "/trigger_instances/active?limit=4").await, read(test, "/trigger_instances/active?limit=4&cursor=from-4").await);
        assert_eq!((&first["total_items"], &first["next_cursor"], last["items"].as_array().unwrap().len()), (&json!(6), &json!("from-4"), 2));

        let gone = ask(test, Method::DELETE, &path, None).await.expect(200);
        assert_eq!(gone, json!({"trigger_id": one}));
        refused(ask(test, Method::DELETE, &path, None).await, 404);
        refused(ask(test, Method::PATCH, &path, Some(json!({"status": "enable"}))).await, 404);
    }

    async fn what_cannot_be_watched_is_refused(test: &Test) {
        let fake = Fake::start().await;
        account(test, &fake, "alice").await;
        let alice = made(test, "FAKE_THING_CHANGED", json!({"user_id": "alice", "trigger_config": {"box": "a"}})).await;
        let of_alice = listed(test, "").await[0]["connected_account_id"].clone();
        let wanted = |body: Value| upsert(test, "FAKE_THING_CHANGED", body);
        for body in [
            json!({"user_id": "bob", "trigger_config": {"box": "a"}}),
            json!({"user_id": "default", "trigger_config": {"box": "a"}}),
            json!({"user_id": "bob", "connected_account_id": of_alice, "trigger_config": {"box": "a"}}),
            json!({"connected_account_id": "ca_0000000000000000000000", "trigger_config": {"box": "a"}}),
        ] {
            let error = refused(wanted(body.clone()).await, 400);
            assert_eq!(error["code"], 1803, "{body}: {error}");
        }
        assert_eq!(made(test, "FAKE_THING_CHANGED", json!({"connected_account_id": of_alice, "trigger_config": {"box": "a"}})).await, alice);
        for body in [
            json!({}),
            json!({"user_id": " "}),
            json!({"user_id": "alice"}),
            json!({"user_id": "alice", "trigger_config": {"box": 7}}),
            json!({"user_id": "alice", "trigger_config": {"box": "a", "more": 1}}),
            json!({"user_id": "alice", "trigger_config": "a"}),
            json!({"user_id": "alice", "trigger_config": {"box": "x".repeat(70_000)}}),
            json!({"user_id": "alice", "trigger_config": {"box": "a"}, "toolkit_versions": 7}),
            json!({"user_id": "alice", "trigger_config": {"box": "a"}, "egress_url": "https://example.com"}),
        ] {
            refused(wanted(body).await, 400);
        }
        refused(wanted(json!({"user_id": "alice", "trigger_config": {"box": "a"}, "toolkit_versions": {"fake": "19990101_00"}})).await, 404);
        refused(upsert(test, "FAKE_NOTHING", json!({"user_id": "alice"})).await, 404);
        refused(upsert(test, "WEBHOOK_RECEIVED", json!({"connected_account_id": of_alice})).await, 400);
        refused(upsert(test, "WEBHOOK_RECEIVED", json!({"user_id": "alice", "trigger_config": {"scheme": "token"}})).await, 400);
        // A service that refuses leaves nothing behind.
        fake.answer_hooks(404);
        refused(wanted(json!({"user_id": "alice", "trigger_config": {"box": "z"}})).await, 424);
        assert_eq!(listed(test, "show_disabled=true").await.len(), 1);
    }

    async fn nothing_of_another_project_is_seen_or_changed(test: &Test) {
        let fake = Fake::start().await;
        account(test, &fake, "alice").await;
        let id = made(test, "FAKE_THING_CHANGED", json!({"user_id": "alice", "trigger_config": {"box": "a"}})).await;
        let hook = webhook(test, &fake, "V3", &EVENTS).await["id"].as_str().unwrap().to_owned();
        // One that runs a workflow is none of Composio's.
        let plain = json!({"subscription": {"data": {"event_key": "WEBHOOK_RECEIVED"}}});
        let native = test.post("/triggers/subscriptions", plain).await.expect(200)["subscription"]["id"].as_str().unwrap().to_owned();
        assert_eq!(listed(test, "show_disabled=true").await.len(), 1);
        let native = composio_api::ids::TRIGGER.show(native.parse().unwrap());
        refused(ask(test, Method::DELETE, &format!("/trigger_instances/manage/{native}"), None).await, 404);

        let other = test.key("other", Role::Owner, None).await;
        let of_alice = listed(test, "").await[0]["connected_account_id"].clone();
        let as_other = async |method: Method, path: &str, body: Option<Value>| ask_as(test, &other, method, path, body).await;
        assert_eq!(as_other(Method::GET, "/trigger_instances/active?show_disabled=true", None).await.expect(200)["total_items"], 0);
        assert_eq!(as_other(Method::GET, &format!("/trigger_instances/active?trigger_ids={id}"), None).await.expect(200)["total_items"], 0);
        assert_eq!(as_other(Method::GET, "/webhook_subscriptions", None).await.expect(200)["items"], json!([]));
        for (method, path) in [
            (Method::PATCH, format!("/trigger_instances/manage/{id}")),
            (Method::DELETE, format!("/trigger_instances/manage/{id}")),
            (Method::GET, format!("/webhook_subscriptions/{hook}")),
            (Method::PATCH, format!("/webhook_subscriptions/{hook}")),
            (Method::DELETE, format!("/webhook_subscriptions/{hook}")),
            (Method::POST, format!("/webhook_subscriptions/{hook}/rotate_secret")),
        ] {
            let body = (method == Method::PATCH).then(|| json!({"status": "disable"}));
            refused(as_other(method, &path, body).await, 404);
        }
        let body = json!({"connected_account_id": of_alice, "trigger_config": {"box": "a"}});
        assert_eq!(refused(as_other(Method::POST, "/trigger_instances/FAKE_THING_CHANGED/upsert", Some(body)).await, 400)["code"], 1803);
        assert_eq!(listed(test, "").await.len(), 1);

        // Whoever may only look changes nothing, and is not shown what messages are signed with.
        let viewer = test.key("default", Role::Viewer, None).await;
        let shown = ask_as(test, &viewer, Method::GET, &format!("/webhook_subscriptions/{hook}"), None).await.expect(200);
        assert_eq!(shown["secret"], "whsec_********");
        refused(ask_as(test, &viewer, Method::DELETE, &format!("/webhook_subscriptions/{hook}"), None).await, 403);
        refused(ask_as(test, "nonsense", Method::GET, "/trigger_instances/active", None).await, 401);
    }

    async fn a_project_has_one_webhook_and_its_secret_can_be_rotated(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        let hook = webhook(test, &fake, "V3", &EVENTS[..1]).await;
        let path = format!("/webhook_subscriptions/{}", hook["id"].as_str().unwrap());
        let again = json!({"webhook_url": "https://example.com/x", "enabled_events": ["composio.trigger.message"]});
        refused(ask(test, Method::POST, "/webhook_subscriptions", Some(again.clone())).await, 409);
        assert_eq!(read(test, "/webhook_subscriptions").await["items"], json!([hook]));
        assert_eq!(read(test, &path).await, hook);
        let kinds = read(test, "/webhook_subscriptions/event_types").await;
        assert_eq!(kinds["items"].as_array().unwrap().len(), EVENTS.len());
        for bad in [
            json!({"webhook_url": "http://example.com/x"}),
            json!({"webhook_url": "https://10.0.0.1/x"}),
            json!({"webhook_url": "nonsense"}),
            json!({"webhook_url": format!("https://example.com/{}", "x".repeat(3000))}),
            json!({"enabled_events": []}),
            json!({"enabled_events": ["composio.nothing"]}),
            json!({"version": "V4"}),
        ] {
            refused(ask(test, Method::PATCH, &path, Some(bad.clone())).await, 400);
            let mut new = again.clone();
            new.as_object_mut().unwrap().extend(bad.as_object().unwrap().clone());
            refused(ask(test, Method::POST, "/webhook_subscriptions", Some(new)).await, 400);
        }
        refused(ask(test, Method::POST, "/webhook_subscriptions", Some(json!({"webhook_url": "https://example.com/x"}))).await, 400);
        assert_eq!(read(test, &path).await, hook, "nothing changed");

        made(test, "WEBHOOK_RECEIVED", json!({"user_id": "default"})).await;
        let url = listed(test, "").await[0]["state"]["url"].as_str().unwrap().to_owned();
        let rotated = ask(test, Method::POST, &format!("{path}/rotate_secret"), None).await.expect(200);
        let (old, new) = (hook["secret"].as_str().unwrap(), rotated["secret"].as_str().unwrap());
        assert_ne!(old, new);
        assert_eq!(read(test, &path).await["secret"], new);
        send(test, &url, &[("webhook-id", "e-1")], "{}").await.expect(202);
        until("both sign", async || posts(&fake).len() == 1).await;
        let post = posts(&fake).remove(0);
        assert_eq!(post["headers"]["webhook-signature"], format!("{} {}", signature(new, &post), signature(old, &post)));
        test.clock.advance(Duration::from_hours(25));
        send(test, &url, &[("webhook-id", "e-2")], "{}").await.expect(202);
        until("the new one signs", async || posts(&fake).len() == 2).await;
        let post = posts(&fake).remove(1);
        assert_eq!(post["headers"]["webhook-signature"], signature(new, &post));

        // Secrets are sealed, and sealed again with a new key.
        let rows = test.yard.db.all("select secret, former_secret from composio_webhooks", store::args![]).await.unwrap();
        let sealed: Vec<u8> = rows[0].get("secret").unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains(new));
        assert_eq!(ask(test, Method::DELETE, &path, None).await.expect(200)["success"], true);
        refused(ask(test, Method::GET, &path, None).await, 404);
        ask(test, Method::POST, "/webhook_subscriptions", Some(again)).await.expect(201);
    }

    async fn a_webhook_hears_of_accounts_that_break_and_triggers_that_stop(test: &Test) {
        let fake = Fake::start().await;
        let hook = webhook(test, &fake, "V3", &EVENTS).await;
        let secret = hook["secret"].as_str().unwrap();
        let alice = account(test, &fake, "alice").await;
        let id = made(test, "FAKE_THING_CHANGED", json!({"user_id": "alice", "trigger_config": {"box": "a"}})).await;
        let shown = listed(test, "").await[0]["connected_account_id"].clone();
        let tell = async || test.yard.composio_api.send_due().await.unwrap();
        assert_eq!(tell().await, 0);
        for _ in 0..2 {
            let body = json!({"user_id": "alice", "arguments": {"code": 401}});
            ask(test, Method::POST, "/tools/execute/FAKE_FAIL_A_THING", Some(body)).await.expect(200);
        }
        fake.answer_target(&[500]);
        assert_eq!(tell().await, 1, "told once");
        test.clock.advance(Duration::from_secs(6));
        assert_eq!(tell().await, 1, "and again, because the receiver failed");
        let sent = posts(&fake);
        assert_eq!(sent.len(), 2);
        assert_eq!((&sent[0]["headers"]["webhook-id"], &sent[0]["body"]), (&sent[1]["headers"]["webhook-id"], &sent[1]["body"]));
        assert_eq!(sent[1]["headers"]["webhook-signature"], signature(secret, &sent[1]));
        let body = &sent[1]["body"];
        assert_eq!((&body["type"], &body["data"]["id"], &body["data"]["user_id"]), (&json!(EVENTS[1]), &shown, &json!("alice")), "{body:#}");
        assert!(body["metadata"]["project_id"].is_string() && body["data"]["toolkit"]["slug"] == "fake", "{body:#}");
        assert_eq!((&body["data"]["status"], body["data"]["status_reason"].is_string()), (&json!("EXPIRED"), true), "{body:#}");
        assert!(!body.to_string().contains("sk-alice-123456"));

        test.post(&format!("/tools/connections/{}/revoke", alice["id"].as_str().unwrap()), json!({})).await.expect(200);
        assert_eq!(tell().await, 1);
        let body = posts(&fake).pop().unwrap()["body"].clone();
        assert_eq!((&body["type"], &body["data"]["trigger_id"]), (&json!(EVENTS[2]), &json!(id)), "{body:#}");
        assert_eq!(body["data"]["connected_account_id"], shown);
        assert!(body["data"]["reason"].as_str().unwrap().contains("revoked"));
        let row = listed(test, "show_disabled=true").await.remove(0);
        assert!(row["disabled_at"].is_string() && row["state"]["reason"].is_string(), "{row}");

        // Whoever is forgotten is in no message either.
        let left = async || test.yard.db.all("select id from composio_messages", store::args![]).await.unwrap().len();
        assert_eq!(left().await, 2);
        let forgotten = test.delete("/end-users/alice").await.expect(200);
        assert_eq!(forgotten["forgotten"]["webhook_messages"], 2, "{forgotten}");
        assert_eq!((left().await, listed(test, "show_disabled=true").await.len()), (0, 0));
    }

    async fn a_toolkit_without_accounts_can_be_watched(test: &Test) {
        let id = made(test, "HACKERNEWS_STORY_MATCHED", json!({"user_id": "alice", "trigger_config": {"query": "rust"}})).await;
        assert_eq!(made(test, "HACKERNEWS_STORY_MATCHED", json!({"user_id": "alice", "trigger_config": {"query": "rust"}})).await, id);
        let row = listed(test, "user_ids=alice").await.remove(0);
        assert_eq!((&row["trigger_name"], &row["user_id"]), (&json!("HACKERNEWS_STORY_MATCHED"), &json!("alice")));
    }
}
