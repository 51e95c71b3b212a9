//! Triggers as the API gives them.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ui::{Markup, Tone, badge};

#[derive(Debug, Deserialize)]
pub(crate) struct SubscriptionsAnswer {
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SubscriptionAnswer {
    pub(crate) subscription: Subscription,
    pub(crate) secret: Option<String>,
    pub(crate) setup: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SchedulesAnswer {
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ScheduleAnswer {
    pub(crate) schedule: Schedule,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "as the API names them")]
pub(crate) struct Flags {
    pub(crate) is_active: bool,
    pub(crate) is_valid: Option<bool>,
    pub(crate) is_test: bool,
}

/// The words of a trigger, which an edit must hand back.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Labels {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) tags: Option<Value>,
    pub(crate) meta: Option<Value>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) deleted_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    pub(crate) connection_id: Option<String>,
    pub(crate) provider_key: String,
    pub(crate) integration_key: String,
    pub(crate) flags: Flags,
    #[serde(default)]
    pub(crate) data: Map<String, Value>,
    pub(crate) url: String,
    pub(crate) reason: Option<String>,
    #[serde(flatten)]
    pub(crate) labels: Labels,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Schedule {
    pub(crate) id: String,
    pub(crate) flags: Flags,
    #[serde(default)]
    pub(crate) data: Map<String, Value>,
    pub(crate) next_fire_at: Option<String>,
    #[serde(flatten)]
    pub(crate) labels: Labels,
}

impl Labels {
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }
}

impl Subscription {
    pub(crate) fn title(&self) -> &str {
        title(&self.labels, self.event())
    }

    pub(crate) fn event(&self) -> &str {
        text(&self.data, "event_key")
    }

    pub(crate) fn runs(&self) -> Option<String> {
        target(&self.data)
    }

    pub(crate) fn state(&self) -> Markup {
        state(&self.labels, &self.flags)
    }

    pub(crate) fn is_invalid(&self) -> bool {
        self.flags.is_valid == Some(false)
    }

    pub(crate) fn is_webhook(&self) -> bool {
        self.connection_id.is_none()
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        self.data.get("trigger_config").and_then(Value::as_object).cloned().unwrap_or_default()
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.data.get("ordered") == Some(&Value::Bool(true))
    }
}

impl Schedule {
    pub(crate) fn title(&self) -> &str {
        title(&self.labels, self.cron())
    }

    pub(crate) fn cron(&self) -> &str {
        text(&self.data, "schedule")
    }

    pub(crate) fn zone(&self) -> &str {
        Some(text(&self.data, "timezone")).filter(|zone| !zone.is_empty()).unwrap_or("UTC")
    }

    pub(crate) fn event(&self) -> &str {
        text(&self.data, "event_key")
    }

    pub(crate) fn runs(&self) -> Option<String> {
        target(&self.data)
    }

    pub(crate) fn state(&self) -> Markup {
        state(&self.labels, &self.flags)
    }
}

fn title<'a>(labels: &'a Labels, other: &'a str) -> &'a str {
    labels.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(other)
}

pub(crate) fn text<'a>(data: &'a Map<String, Value>, name: &str) -> &'a str {
    data.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn state(labels: &Labels, flags: &Flags) -> Markup {
    if labels.is_deleted() {
        badge(Tone::Plain, "deleted")
    } else if flags.is_test {
        badge(Tone::Plain, "test")
    } else if flags.is_valid == Some(false) {
        badge(Tone::Bad, "invalid")
    } else if flags.is_active {
        badge(Tone::Good, "active")
    } else {
        badge(Tone::Wait, "paused")
    }
}

/// What a trigger runs, as `workflow/version@environment`.
pub(crate) fn target(data: &Map<String, Value>) -> Option<String> {
    let references = data.get("references")?.as_object()?;
    let name = |part: &str| {
        let reference = references.get(part)?;
        ["slug", "version", "id"].iter().find_map(|field| reference[*field].as_str())
    };
    let whole = ["workflow", "application", "evaluator"].iter().find_map(|family| {
        let parts: Vec<&str> = ["", "_variant", "_revision"].iter().filter_map(|part| name(&format!("{family}{part}"))).collect();
        (!parts.is_empty()).then(|| parts.join("/"))
    });
    match (whole, name("environment")) {
        (Some(whole), Some(environment)) => Some(format!("{whole}@{environment}")),
        (None, Some(environment)) => Some(format!("@{environment}")),
        (whole, None) => whole,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(data: Value) -> Option<String> {
        target(data.as_object().unwrap())
    }

    #[test]
    fn a_target_is_named_by_its_parts() {
        assert_eq!(named(json!({"references": {"workflow": {"slug": "triage"}}})).as_deref(), Some("triage"));
        let version = json!({"references": {"workflow": {"slug": "triage"}, "workflow_revision": {"version": "3"}}});
        assert_eq!(named(version).as_deref(), Some("triage/3"));
        let deployed = json!({"references": {"workflow": {"slug": "triage"}, "environment": {"slug": "production"}}});
        assert_eq!(named(deployed).as_deref(), Some("triage@production"));
        assert_eq!(named(json!({"references": {}})), None);
        assert_eq!(named(json!({"references": 5})), None);
    }

    #[test]
    fn a_nameless_trigger_is_called_after_its_event() {
        let row = json!({"id": "1", "provider_key": "native", "integration_key": "webhook", "flags": {"is_active": false}, "url": "",
            "data": {"event_key": "PING"}, "name": " ", "created_at": "", "updated_at": ""});
        let row: Subscription = serde_json::from_value(row).unwrap();
        assert_eq!(row.title(), "PING");
        assert!(row.state().to_string().contains("paused"));
    }
}
