//! One approval as the API has it.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ui::{Markup, Tone, badge, folded, json_tree};

/// Arguments longer than this are folded.
const SHOWN: usize = 160;

#[derive(Debug, Deserialize)]
pub(super) struct Approval {
    pub(super) id: String,
    status: String,
    pub(super) call_ref: String,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    key_id: Option<String>,
    key_name: Option<String>,
    pub(super) user_name: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) rule: Option<Rule>,
    pub(super) note: Option<String>,
    pub(super) created_at: String,
    pub(super) expires_at: String,
    pub(super) decided_at: Option<String>,
    pub(super) decided_by_name: Option<String>,
}

/// The rule that made the call wait.
#[derive(Debug, Deserialize)]
pub(super) struct Rule {
    pub(super) pattern: String,
    pub(super) permission: String,
}

/// Who asks, besides what the approval says itself.
#[derive(Debug)]
pub(super) struct Asker {
    /// Its name and its page.
    pub(super) agent: Option<(String, String)>,
}

impl Approval {
    pub(super) fn state(&self) -> Markup {
        let tone = match self.status.as_str() {
            "pending" => Tone::Wait,
            "approved" | "used" => Tone::Good,
            "denied" => Tone::Bad,
            _ => Tone::Plain,
        };
        badge(tone, &self.status)
    }

    pub(super) fn is_pending(&self) -> bool {
        self.status == "pending"
    }

    /// What its end is called, where it matters: a decision is not undone by it.
    pub(super) fn end(&self) -> Option<&'static str> {
        match self.status.as_str() {
            "pending" | "approved" => Some("ends"),
            "expired" => Some("ended"),
            _ => None,
        }
    }

    /// The key by its name, or by its id where it has none.
    pub(super) fn key(&self) -> Option<&str> {
        self.key_name.as_deref().or(self.key_id.as_deref())
    }

    /// Each argument as text; long ones are folded, none is cut.
    pub(super) fn shown(&self) -> Vec<(&str, Markup)> {
        self.arguments.iter().map(|(name, value)| (name.as_str(), argument(value))).collect()
    }
}

fn argument(value: &Value) -> Markup {
    match value {
        Value::String(text) => folded(text, SHOWN),
        Value::Array(_) | Value::Object(_) => json_tree(value),
        other => folded(&other.to_string(), SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_approval_shows_every_argument_in_full() {
        let long = "x".repeat(500);
        let approval: Approval =
            serde_json::from_value(json!({"id": "1", "status": "pending", "call_ref": "a", "created_at": "", "expires_at": "",
            "key_id": "k", "arguments": {"long": long, "deep": {"a": [1]}, "no": null}}))
            .unwrap();
        let shown = approval.shown();
        assert_eq!(shown.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["long", "deep", "no"]);
        assert!(shown[0].1.to_string().contains(&long) && shown[2].1.to_string().contains("null"));
        assert_eq!(approval.key(), Some("k"));
    }
}
