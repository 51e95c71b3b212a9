//! What the API refused, in its own words.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::Value;

use crate::api::Answer;

/// A request that was not granted. As a response it becomes a page: see `routes`.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) words: String,
}

pub(crate) type PageResult = Result<Response, Refusal>;

impl Refusal {
    pub(crate) fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into() }
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "There is no such page, or you may not see it.")
    }

    pub(crate) fn of(answer: &Answer) -> Self {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        Self::new(answer.status, words(&body["detail"]).unwrap_or_else(|| format!("The request was answered with {}.", answer.status)))
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        self.status == StatusCode::FORBIDDEN
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }
}

/// Most are a text, conflicts are an object with a message and what is in the way, and wrong fields a list of them.
fn words(detail: &Value) -> Option<String> {
    match detail {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) => {
            let message = object.get("message").or_else(|| object.get("msg")).and_then(words)?;
            let facts = ["conflict", "rejected"].into_iter().filter_map(|name| facts(object.get(name)?, &message));
            Some(std::iter::once(message.clone()).chain(facts).collect::<Vec<_>>().join("\n"))
        }
        Value::Array(all) => {
            let all: Vec<String> = all.iter().filter_map(words).collect();
            (!all.is_empty()).then(|| all.join("\n"))
        }
        _ => None,
    }
}

/// What is in the way, or what was not taken and why, as far as the message does not say it already.
fn facts(value: &Value, message: &str) -> Option<String> {
    let is_news = |text: &String| !text.is_empty() && !message.contains(text.as_str());
    let lines: Vec<String> = match value {
        Value::Array(all) => all.iter().filter_map(words).filter(is_news).collect(),
        Value::Object(all) => all
            .iter()
            // A code is for programs.
            .filter(|(name, _)| *name != "code")
            .filter_map(|(name, value)| Some((name, listed(value).filter(is_news)?)))
            .map(|(name, text)| format!("{}: {text}", name.replace('_', " ")))
            .collect(),
        _ => return None,
    };
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A value in a line.
fn listed(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(all) => Some(all.iter().filter_map(listed).collect::<Vec<_>>().join(", ")),
        _ => None,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = self.words.clone().into_response();
        *response.status_mut() = status;
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::words;

    #[test]
    fn every_shape_of_an_error_has_words() {
        assert_eq!(words(&json!("no")).as_deref(), Some("no"));
        assert_eq!(words(&json!({"message": "taken", "conflict": {}})).as_deref(), Some("taken"));
        assert_eq!(words(&json!([{"msg": "a"}, "b"])).as_deref(), Some("a\nb"));
        assert_eq!(words(&json!(null)), None);
    }

    #[test]
    fn what_is_in_the_way_is_named_once() {
        let conflict = |message: &str, conflict: serde_json::Value| words(&json!({"message": message, "conflict": conflict})).unwrap();
        assert_eq!(conflict("It is in use.", json!({"in_use": ["a trigger", "an agent"]})), "It is in use.\nin use: a trigger, an agent");
        assert_eq!(conflict("`main` is taken.", json!({"slug": "main", "code": "slug_taken"})), "`main` is taken.");
        assert_eq!(conflict("It has changed.", json!({})), "It has changed.");
        let rejected =
            json!({"message": "Nothing was changed.", "rejected": [{"tool": "SLACK", "message": "SLACK is not connected."}, {"id": 3}]});
        assert_eq!(words(&rejected).as_deref(), Some("Nothing was changed.\nSLACK is not connected."));
    }
}
