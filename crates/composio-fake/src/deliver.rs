//! Sending webhooks: their three shapes, and the signature over each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value, json};
use sha2::Sha256;

use crate::state::Shared;
use crate::webhooks;
use crate::world::{self, Account, Trigger, Webhook, World, iso};

/// The shape of a webhook's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    V1,
    V2,
    #[default]
    V3,
}

/// How an event is delivered.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The id of the message; a new one if there is none.
    pub id: Option<String>,
    /// How often the same message is sent.
    pub copies: u32,
    pub version: Version,
    /// Seconds between the clock and the timestamp that is signed.
    pub timestamp_offset: i64,
    /// Signs with another secret than the subscription's.
    pub secret: Option<String>,
}

impl Default for Delivery {
    fn default() -> Self {
        Self { id: None, copies: 1, version: Version::V3, timestamp_offset: 0, secret: None }
    }
}

impl Version {
    pub(crate) fn of(text: &str) -> Self {
        match text {
            "V1" => Self::V1,
            "V2" => Self::V2,
            _ => Self::V3,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::V1 => "V1",
            Self::V2 => "V2",
            Self::V3 => "V3",
        }
    }
}

/// A message on its way: everything but the time of the attempt.
#[derive(Debug)]
pub(crate) struct Message {
    id: String,
    url: String,
    secret: String,
    version: Version,
    body: String,
    offset: i64,
    copies: u32,
}

impl Message {
    /// What a trigger that fired sends; nothing if it is off or nobody listens.
    pub(crate) fn of_trigger(world: &World, trigger: &str, payload: &Value, delivery: Option<Delivery>) -> Option<Self> {
        let webhook = listener(world, webhooks::MESSAGE)?;
        let trigger = world.triggers.iter().find(|known| known.id == trigger && known.disabled_at.is_none())?;
        let account = world.account(&trigger.account)?;
        let delivery = delivery.unwrap_or_else(|| Delivery { version: Version::of(&webhook.version), ..Delivery::default() });
        let id = delivery.id.unwrap_or_else(|| world::new_id("msg"));
        let body = match delivery.version {
            Version::V1 => first_shape(trigger, account, payload),
            Version::V2 => second_shape(world, trigger, account, payload),
            Version::V3 => third_shape(world, &id, webhooks::MESSAGE, &trigger_metadata(trigger, account), payload),
        };
        Some(Self {
            id,
            url: webhook.url.clone(),
            secret: delivery.secret.unwrap_or_else(|| webhook.secret.clone()),
            version: delivery.version,
            body: body.to_string(),
            offset: delivery.timestamp_offset,
            copies: delivery.copies,
        })
    }

    /// What is told about a trigger that was switched off.
    pub(crate) fn of_disabled(world: &World, trigger: &str) -> Option<Self> {
        let trigger = world.triggers.iter().find(|known| known.id == trigger)?;
        let account = world.account(&trigger.account)?;
        let data = json!({
            "trigger_id": trigger.id,
            "trigger_slug": trigger.slug,
            "connected_account_id": account.id,
            "disabled_at": trigger.disabled_at.map(iso),
            "reason": "It failed too often",
        });
        Self::in_third_shape(world, webhooks::DISABLED, &trigger_metadata(trigger, account), &data)
    }

    /// What is told about an account that stopped working.
    pub(crate) fn of_expired(world: &World, account: &str) -> Option<Self> {
        let account = world.account(account)?;
        let metadata = json!({"project_id": "pr_fake", "org_id": "ok_fake"});
        Self::in_third_shape(world, webhooks::EXPIRED, &metadata, &account.wire(world))
    }

    fn in_third_shape(world: &World, event: &str, metadata: &Value, data: &Value) -> Option<Self> {
        let webhook = listener(world, event)?;
        let id = world::new_id("msg");
        let body = third_shape(world, &id, event, metadata, data).to_string();
        Some(Self { id, url: webhook.url.clone(), secret: webhook.secret.clone(), version: Version::V3, body, offset: 0, copies: 1 })
    }

    /// Sends every copy, one after the other; 0 stands for an address that gave no answer.
    pub(crate) async fn send(self, shared: &Shared) -> Vec<u16> {
        let mut statuses = vec![];
        // One time for all: another second would be another signature, and no copy.
        let timestamp = (shared.world().now().as_second() + self.offset).to_string();
        for attempt in 1..=self.copies {
            let request = shared
                .client
                .post(&self.url)
                .header("content-type", "application/json")
                .header("webhook-id", &self.id)
                .header("webhook-signature", signature(&self.secret, &self.id, &timestamp, &self.body))
                .header("webhook-timestamp", &timestamp)
                .header("x-composio-webhook-version", self.version.text())
                .header("x-composio-delivery-attempt", attempt)
                .body(self.body.clone());
            statuses.push(request.send().await.map_or(0, |answer| answer.status().as_u16()));
        }
        statuses
    }
}

fn listener<'a>(world: &'a World, event: &str) -> Option<&'a Webhook> {
    world.webhooks.iter().find(|webhook| webhook.events.iter().any(|wanted| wanted == event))
}

/// The key is the text of the secret as it is, prefix and all.
fn signature(secret: &str, id: &str, timestamp: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn trigger_metadata(trigger: &Trigger, account: &Account) -> Value {
    json!({
        "log_id": world::new_id("log"),
        "trigger_slug": trigger.slug,
        "trigger_id": trigger.id,
        "connected_account_id": account.id,
        "auth_config_id": account.auth_config,
        "user_id": account.user_id,
    })
}

fn third_shape(world: &World, id: &str, event: &str, metadata: &Value, data: &Value) -> Value {
    json!({"id": id, "timestamp": iso(world.now()), "type": event, "metadata": metadata, "data": data})
}

fn second_shape(world: &World, trigger: &Trigger, account: &Account, payload: &Value) -> Value {
    let mut data = Map::from_iter([
        ("trigger_nano_id".to_owned(), json!(trigger.id)),
        ("trigger_id".to_owned(), json!(trigger.uuid)),
        ("connection_nano_id".to_owned(), json!(account.id)),
        ("connection_id".to_owned(), json!(account.uuid)),
        ("user_id".to_owned(), json!(account.user_id)),
    ]);
    data.extend(payload.as_object().cloned().unwrap_or_default());
    json!({"type": trigger.slug.to_lowercase(), "timestamp": iso(world.now()), "log_id": world::new_id("log"), "data": data})
}

fn first_shape(trigger: &Trigger, account: &Account, payload: &Value) -> Value {
    json!({
        "trigger_name": trigger.slug,
        "connection_id": account.id,
        "trigger_id": trigger.id,
        "payload": payload,
        "log_id": world::new_id("log"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with another implementation: `printf 'msg_1.1700000000.{"a":1}' | openssl dgst -sha256 -hmac whsec_abc -binary | base64`.
    #[test]
    fn the_signature_is_the_one_that_openssl_makes() {
        assert_eq!(signature("whsec_abc", "msg_1", "1700000000", "{\"a\":1}"), "v1,SnJHWAWtd6CZvl9WPis+CNayU1PhIcuL7oz9IOoGvL8=");
    }
}
