//! Triggers and the webhooks they send.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use composio_fake::{Delivery, Version};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::{Receiver, World, pluck};

async fn trigger(world: &World, account: &str, repo: &str) -> String {
    let order = json!({"connected_account_id": account, "trigger_config": {"owner": "o", "repo": repo}});
    let (status, made) = world.post("/trigger_instances/GITHUB_COMMIT_EVENT/upsert", order).await;
    assert_eq!(status, 200, "{made}");
    made["trigger_id"].as_str().unwrap().to_owned()
}

async fn subscribe(world: &World, url: &str, events: &[&str]) -> Value {
    let (status, made) = world.post("/webhook_subscriptions", json!({"webhook_url": url, "enabled_events": events})).await;
    assert_eq!(status, 201, "{made}");
    made
}

fn signed_with(secret: &str, headers: &HeaderMap, body: &str) -> bool {
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{}.{}.{body}", text("webhook-id"), text("webhook-timestamp")).as_bytes());
    mac.verify_slice(&STANDARD.decode(text("webhook-signature").strip_prefix("v1,").unwrap()).unwrap()).is_ok()
}

#[tokio::test]
async fn the_same_account_and_config_are_the_same_trigger() {
    let world = World::new().await;
    let account = world.account("github", "u").await;
    let first = trigger(&world, &account, "a").await;
    let path = format!("/trigger_instances/manage/{first}");
    assert_eq!(world.patch(&path, json!({"status": "disable"})).await.1, json!({"status": "success"}));
    assert_eq!(world.get("/trigger_instances/active").await["total_items"], 0);
    assert_eq!(world.get("/trigger_instances/active?show_disabled=true").await["total_items"], 1);
    assert_eq!(trigger(&world, &account, "a").await, first);
    assert_eq!(pluck(&world.get("/trigger_instances/active").await, "id"), [first.as_str()]);
    let second = trigger(&world, &account, "b").await;
    assert_ne!(second, first);
    assert_eq!(pluck(&world.get(&format!("/trigger_instances/active?trigger_ids={second}")).await, "id"), [second.as_str()]);

    let upsert = "/trigger_instances/GITHUB_COMMIT_EVENT/upsert";
    let slack = world.account("slack", "u").await;
    for (path, order, status) in [
        (upsert, json!({"user_id": "u", "trigger_config": {"owner": "o", "repo": "a"}}), 200),
        (upsert, json!({"connected_account_id": account, "trigger_config": {"owner": "o"}}), 400),
        (upsert, json!({"connected_account_id": slack, "trigger_config": {"owner": "o", "repo": "a"}}), 400),
        (upsert, json!({"connected_account_id": "ca_none", "trigger_config": {"owner": "o", "repo": "a"}}), 404),
        (upsert, json!({"trigger_config": {}}), 400),
        ("/trigger_instances/NOPE/upsert", json!({"connected_account_id": account}), 404),
    ] {
        assert_eq!(world.post(path, order.clone()).await.0, status, "{order}");
    }
    assert_eq!(world.patch(&path, json!({"status": "sleep"})).await.0, 400);
    assert_eq!(world.delete(&path).await.1, json!({"trigger_id": first}));
    assert_eq!(world.delete(&path).await.0, 404);
    assert_eq!(world.delete(&format!("/connected_accounts/{account}")).await.0, 200);
    assert!(world.fake.triggers().is_empty(), "an account takes its triggers along");
    world.fake.expire(&slack).await.unwrap();
    assert_eq!(world.post("/trigger_instances/SLACK_RECEIVE_MESSAGE/upsert", json!({"connected_account_id": slack})).await.0, 422);
}

#[tokio::test]
async fn there_is_one_subscription_and_it_wants_https() {
    let world = World::new().await;
    let order = |url: &str, events: Value| json!({"webhook_url": url, "enabled_events": events});
    let message = json!(["composio.trigger.message"]);
    for refused in [
        order("http://hooks.example/x", message.clone()),
        order("ftp://127.0.0.1/x", message.clone()),
        order("nonsense", message.clone()),
        order("https://hooks.example/x", json!([])),
        order("https://hooks.example/x", json!(["composio.nope"])),
        json!({"webhook_url": "https://hooks.example/x"}),
        json!({"webhook_url": "https://hooks.example/x", "enabled_events": message, "version": "V9"}),
    ] {
        assert_eq!(world.post("/webhook_subscriptions", refused.clone()).await.0, 400, "{refused}");
    }
    world.fake.allow_http(false);
    assert_eq!(world.post("/webhook_subscriptions", order("http://127.0.0.1:9/x", message.clone())).await.0, 400);
    world.fake.allow_http(true);
    let made = subscribe(&world, "http://hooks.example/x", &["composio.trigger.message"]).await;
    assert_eq!(
        (&made["version"], world.post("/webhook_subscriptions", order("https://hooks.example/y", message)).await.0),
        (&json!("V3"), 409)
    );

    let path = format!("/webhook_subscriptions/{}", made["id"].as_str().unwrap());
    assert_eq!(world.get("/webhook_subscriptions").await["items"], json!([made]));
    let (_, changed) = world.patch(&path, json!({"webhook_url": "https://hooks.example/z", "version": "V2"})).await;
    assert_eq!((&changed["webhook_url"], &changed["secret"]), (&json!("https://hooks.example/z"), &made["secret"]));
    let (_, rotated) = world.post(&format!("{path}/rotate_secret"), json!({})).await;
    assert_ne!(rotated["secret"], made["secret"]);
    assert_eq!(world.get(&path).await["secret"], rotated["secret"]);
    assert_eq!(world.get("/webhook_subscriptions/event_types").await["items"].as_array().unwrap().len(), 3);
    assert_eq!(world.delete(&path).await.1, json!({"success": true}));
    assert_eq!((world.send(Method::GET, &path, None).await.0, world.fake.webhooks().len()), (404, 0));
}

#[tokio::test]
async fn a_trigger_that_fires_sends_a_signed_webhook() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    let account = world.account("github", "u").await;
    let id = trigger(&world, &account, "a").await;
    let payload = json!({"message": "A commit", "author": "ann"});
    assert!(world.fake.emit(&id, payload.clone()).await.is_empty(), "nobody is subscribed");

    let subscription = subscribe(&world, &receiver.url, &["composio.trigger.message"]).await;
    let secret = subscription["secret"].as_str().unwrap();
    assert_eq!(world.fake.emit(&id, payload.clone()).await, [202]);
    let (headers, body) = receiver.take().remove(0);
    assert!(signed_with(secret, &headers, &body) && !signed_with("whsec_other", &headers, &body));
    assert_eq!(
        (&headers["x-composio-webhook-version"], &headers["x-composio-delivery-attempt"]),
        (&"V3".parse().unwrap(), &"1".parse().unwrap())
    );
    let event: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(event["id"].as_str().unwrap(), headers["webhook-id"].to_str().unwrap());
    assert_eq!((&event["type"], &event["data"]), (&json!("composio.trigger.message"), &payload));
    assert_eq!((&event["metadata"]["trigger_id"], &event["metadata"]["connected_account_id"]), (&json!(id), &json!(account)));
    assert_eq!((&event["metadata"]["trigger_slug"], &event["metadata"]["user_id"]), (&json!("GITHUB_COMMIT_EVENT"), &json!("u")));
    assert!(world.fake.emit("ti_none", payload).await.is_empty());
}

#[tokio::test]
async fn deliveries_can_be_doubled_late_old_and_badly_signed() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    let account = world.account("github", "u").await;
    let id = trigger(&world, &account, "a").await;
    let secret = subscribe(&world, &receiver.url, &["composio.trigger.message"]).await["secret"].as_str().unwrap().to_owned();
    let payload = json!({"message": "m"});

    let delivery = Delivery { id: Some("msg_same".into()), copies: 3, ..Delivery::default() };
    assert_eq!(world.fake.emit_with(&id, payload.clone(), delivery).await, [202, 202, 202]);
    let seen = receiver.take();
    assert!(seen.iter().all(|(headers, body)| headers["webhook-id"] == "msg_same" && signed_with(&secret, headers, body)));
    assert_eq!(seen[2].0["x-composio-delivery-attempt"], "3");

    let late = Delivery { timestamp_offset: -3600, ..Delivery::default() };
    world.fake.emit_with(&id, payload.clone(), late).await;
    let (headers, body) = receiver.take().remove(0);
    let stamp: i64 = headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
    assert!((3590..3700).contains(&(jiff::Timestamp::now().as_second() - stamp)) && signed_with(&secret, &headers, &body));

    let forged = Delivery { secret: Some("whsec_forged".into()), ..Delivery::default() };
    world.fake.emit_with(&id, payload.clone(), forged).await;
    let (headers, body) = receiver.take().remove(0);
    assert!(!signed_with(&secret, &headers, &body));

    for (version, pointer, found) in
        [(Version::V1, "/payload/message", "/trigger_id"), (Version::V2, "/data/message", "/data/trigger_nano_id")]
    {
        world.fake.emit_with(&id, payload.clone(), Delivery { version, ..Delivery::default() }).await;
        let event: Value = serde_json::from_str(&receiver.take().remove(0).1).unwrap();
        assert_eq!((event.pointer(pointer), event.pointer(found)), (Some(&json!("m")), Some(&json!(id))), "{event}");
    }
}

#[tokio::test]
async fn expired_accounts_and_disabled_triggers_are_told_to_those_who_asked() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    let account = world.account("github", "u").await;
    let id = trigger(&world, &account, "a").await;
    subscribe(&world, &receiver.url, &["composio.trigger.disabled", "composio.connected_account.expired"]).await;
    assert!(world.fake.emit(&id, json!({})).await.is_empty(), "messages were not asked for");

    assert_eq!(world.fake.disable_trigger(&id).await, [202]);
    let event: Value = serde_json::from_str(&receiver.take().remove(0).1).unwrap();
    assert_eq!((&event["type"], &event["data"]["trigger_id"]), (&json!("composio.trigger.disabled"), &json!(id)));
    assert!(world.fake.triggers()[0]["disabled_at"].is_string());

    assert_eq!(world.fake.expire(&account).await.unwrap(), [202]);
    let event: Value = serde_json::from_str(&receiver.take().remove(0).1).unwrap();
    assert_eq!((&event["type"], &event["data"]["status"]), (&json!("composio.connected_account.expired"), &json!("EXPIRED")));
    assert_eq!(event["data"]["id"], account);
}
