//! One approval as the API has it.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pages::try_tool::can_be_tried;
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
    pub(super) key_id: Option<String>,
    key_name: Option<String>,
    pub(super) user_name: Option<String>,
    pub(super) agent_id: Option<String>,
    pub(super) end_user: Option<String>,
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

    /// The arguments, where it was approved and waits to be made by somebody who acts as `key` and for nobody else.
    pub(super) fn to_make(&self, key: Option<&str>) -> Option<String> {
        let is_theirs = key.is_some() && self.key_id.as_deref() == key && self.agent_id.is_none() && self.end_user.is_none();
        let is_ready = is_theirs && self.status == "approved" && can_be_tried(&self.call_ref);
        is_ready.then(|| serde_json::to_string_pretty(&self.arguments).unwrap_or_default())
    }

    /// What its end is called, where it matters: a decision is not undone by it.
    pub(super) fn end(&self) -> Option<&'static str> {
        match self.status.as_str() {
            "pending" | "approved" => Some("ends"),
            "expired" => Some("ended"),
            _ => None,
        }
    }

    /// The key by its name, or by its id where nothing else says who asks.
    pub(super) fn key(&self) -> Option<&str> {
        self.key_name.as_deref().or_else(|| self.key_id.as_deref().filter(|_| self.user_name.is_none()))
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
    fn whoever_asked_makes_the_call() {
        let approval = |status: &str, agent: Option<&str>| -> Approval {
            serde_json::from_value(
                json!({"id": "1", "status": status, "call_ref": "tools.native.github.GET_A_REPOSITORY.main", "created_at": "",
                "expires_at": "", "key_id": "k", "agent_id": agent, "arguments": {"a": 1}}),
            )
            .unwrap()
        };
        assert_eq!(approval("approved", None).to_make(Some("k")).as_deref(), Some("{\n  \"a\": 1\n}"));
        for (status, agent, key) in
            [("pending", None, Some("k")), ("approved", Some("a"), Some("k")), ("approved", None, Some("other")), ("approved", None, None)]
        {
            assert_eq!(approval(status, agent).to_make(key), None);
        }
    }

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
