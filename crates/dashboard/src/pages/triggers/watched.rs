//! What a subscription watches, and what it can be told about that.

use serde_json::{Value, json};

use super::WEBHOOK_EVENT;
use super::choose::{self, Event};
use super::model::Subscription;
use crate::form::Form;
use crate::refusal::Refusal;
use crate::visit::Visit;

/// What a subscription watches.
#[derive(Clone, Debug)]
pub(super) enum Watched {
    /// Any sender, without an integration.
    Webhook,
    Event(Box<Event>),
    /// An event that the catalog does not know any more: its configuration is a box for JSON.
    Unknown(String),
}

impl Watched {
    pub(super) async fn of(visit: &Visit, subscription: &Subscription) -> Self {
        if subscription.is_webhook() {
            return Self::Webhook;
        }
        let event = choose::event(visit, &subscription.provider_key, &subscription.integration_key, subscription.event()).await;
        event.map_or_else(|_| Self::Unknown(subscription.event().to_owned()), |event| Self::Event(Box::new(event)))
    }

    pub(super) async fn typed(visit: &Visit, form: &Form) -> Result<Self, Refusal> {
        if form.text("event").is_empty() || form.text("event") == WEBHOOK_EVENT {
            return Ok(Self::Webhook);
        }
        choose::event(visit, form.text("provider"), form.text("integration"), form.text("event"))
            .await
            .map(|event| Self::Event(Box::new(event)))
    }

    pub(super) fn key(&self) -> &str {
        match self {
            Self::Webhook => WEBHOOK_EVENT,
            Self::Event(event) => &event.key,
            Self::Unknown(key) => key,
        }
    }

    pub(super) fn schema(&self) -> Value {
        match self {
            Self::Webhook => webhook_schema(),
            Self::Event(event) => event.trigger_config.clone().unwrap_or_default(),
            Self::Unknown(_) => Value::Null,
        }
    }

    pub(super) fn is_webhook(&self) -> bool {
        matches!(self, Self::Webhook)
    }
}

/// What a plain webhook can be told.
fn webhook_schema() -> Value {
    json!({"type": "object", "properties": {
        "scheme": {"type": "string", "enum": ["token", "hmac_sha256", "standard_webhooks"],
            "description": "How the sender proves itself with the secret. Empty: with the secret itself, where there is one; else whoever knows the address can send."},
        "id_header": {"type": "string", "description": "The header that holds the event's id. Two requests with the same id are one event."},
        "id_path": {"type": "string", "description": "Or the JSONPath of the id in the body, such as $.order.id."},
        "id_digest": {"type": "boolean", "description": "Whether equal bodies are one event where there is no other id."}}})
}
