//! What would happen to a call.

use serde::Deserialize;
use serde_json::{Value, json};

use super::policy::permission_badge;
use crate::form::Form;
use crate::ui::{Markup, json_object};

/// The form that asks it, and its answer.
#[derive(Debug, Default)]
pub(super) struct Explain {
    pub(super) call_ref: String,
    pub(super) arguments: String,
    pub(super) error: Option<String>,
    pub(super) answer: Option<Explanation>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Explanation {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) also: Vec<String>,
    pub(super) read_only: Option<bool>,
    pub(super) permission: String,
    #[serde(default)]
    pub(super) rules: Vec<MatchedRule>,
    pub(super) why: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct MatchedRule {
    pub(super) index: usize,
    pub(super) pattern: String,
    pub(super) permission: String,
    pub(super) argument: Option<MatchedArgument>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MatchedArgument {
    pub(super) name: String,
    pub(super) value: String,
}

impl Explanation {
    pub(super) fn badge(&self) -> Markup {
        permission_badge(&self.permission)
    }
}

impl MatchedRule {
    pub(super) fn badge(&self) -> Markup {
        permission_badge(&self.permission)
    }
}

impl Explain {
    pub(super) fn of_form(form: &Form) -> Self {
        Self { call_ref: form.text("ref").to_owned(), arguments: form.raw("arguments").to_owned(), error: None, answer: None }
    }

    /// What to ask the API.
    pub(super) fn asked(&self) -> Result<Value, String> {
        Ok(json!({"name": self.call_ref, "arguments": json_object(&self.arguments)?}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_asked_about_as_it_was_typed() {
        let explain = |arguments: &str| Explain { call_ref: "a".to_owned(), arguments: arguments.to_owned(), ..Explain::default() }.asked();
        assert_eq!(explain(" "), Ok(json!({"name": "a", "arguments": {}})));
        assert_eq!(explain("{\"b\": 1}"), Ok(json!({"name": "a", "arguments": {"b": 1}})));
        assert!(explain("{").is_err_and(|words| words.starts_with("The arguments are not JSON")));
    }
}
