//! Deliveries as the API gives them.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pages::triggers::{schedule_page, subscription_page};
use crate::ui::{Markup, Tone, badge};
use crate::visit::Visit;

#[derive(Debug, Deserialize)]
pub(crate) struct DeliveriesAnswer {
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DeliveryAnswer {
    pub(super) delivery: Delivery,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) id: String,
    pub(crate) subscription_id: Option<String>,
    pub(crate) schedule_id: Option<String>,
    pub(crate) event_id: String,
    pub(crate) event_row_id: Option<String>,
    pub(crate) trigger_name: Option<String>,
    pub(crate) workflow: Option<String>,
    pub(crate) status: Status,
    pub(crate) state: String,
    pub(crate) next_attempt_at: Option<String>,
    #[serde(default)]
    pub(crate) attempts_count: i64,
    #[serde(default)]
    pub(crate) attempts: Option<Vec<Attempt>>,
    #[serde(default)]
    pub(crate) data: Map<String, Value>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Status {
    pub(crate) code: String,
    pub(crate) message: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) number: i64,
    pub(crate) code: String,
    pub(crate) message: Option<String>,
    pub(crate) run_id: Option<String>,
    pub(crate) started_at: String,
    pub(crate) ended_at: String,
}

impl Delivery {
    pub(crate) fn state(&self) -> Markup {
        let tone = match self.state.as_str() {
            "done" => Tone::Good,
            "dead" => Tone::Bad,
            "cancelled" => Tone::Plain,
            _ => Tone::Wait,
        };
        badge(tone, &self.state)
    }

    pub(crate) fn trigger_id(&self) -> Option<&str> {
        self.subscription_id.as_deref().or(self.schedule_id.as_deref())
    }

    pub(crate) fn event_key(&self) -> &str {
        self.data.get("event_key").and_then(Value::as_str).unwrap_or_default()
    }

    /// What it belongs to, by name where there is one.
    pub(crate) fn title(&self) -> &str {
        let name = self.trigger_name.as_deref().filter(|name| !name.trim().is_empty());
        name.or_else(|| Some(self.event_key()).filter(|key| !key.is_empty())).unwrap_or("Delivery")
    }

    pub(crate) fn approval(&self) -> Option<&str> {
        self.data.get("approval_id").and_then(Value::as_str)
    }

    pub(crate) fn run(&self) -> Option<&str> {
        self.data.get("result")?.get("run_id")?.as_str()
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state.as_str(), "ready" | "leased" | "waiting")
    }

    /// Whether it can be run once more.
    pub(crate) fn can_retry(&self) -> bool {
        !matches!(self.state.as_str(), "leased" | "waiting")
    }

    /// Whether somebody has to say how it ended.
    pub(crate) fn is_dispatched(&self) -> bool {
        self.state == "waiting" && self.approval().is_none()
    }

    /// The message, where it says more than the state.
    pub(crate) fn message(&self) -> Option<&str> {
        self.status.message.as_deref().filter(|message| !message.is_empty() && *message != "success")
    }
}

/// A delivery in a table; `delivery_row.html` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) delivery: Delivery,
    pub(crate) href: String,
    pub(crate) trigger: Option<String>,
}

impl Row {
    pub(crate) fn new(visit: &Visit, delivery: Delivery) -> Self {
        let trigger = trigger_page(visit, &delivery);
        Self { href: visit.page("deliveries").at(&delivery.id).into(), trigger, delivery }
    }
}

pub(super) fn trigger_page(visit: &Visit, delivery: &Delivery) -> Option<String> {
    match (&delivery.subscription_id, &delivery.schedule_id) {
        (Some(id), _) => Some(subscription_page(visit, id).into()),
        (_, Some(id)) => Some(schedule_page(visit, id).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn delivery(state: &str, data: Value) -> Delivery {
        let row = json!({"id": "1", "event_id": "e", "status": {"code": "202", "message": "success"}, "state": state, "data": data, "created_at": "", "updated_at": ""});
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn what_waits_for_an_approval_is_not_to_be_completed() {
        assert!(delivery("waiting", json!({})).is_dispatched());
        assert!(!delivery("waiting", json!({"approval_id": "1"})).is_dispatched());
        assert!(!delivery("done", json!({})).is_dispatched());
    }

    #[test]
    fn a_delivery_without_a_name_is_called_after_its_event() {
        assert_eq!(delivery("done", json!({"event_key": "PING"})).title(), "PING");
        assert_eq!(delivery("done", json!({})).title(), "Delivery");
        assert_eq!(delivery("done", json!({})).message(), None);
    }
}
