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

/// Most are a text, conflicts are an object with a message, and wrong fields a list of them.
fn words(detail: &Value) -> Option<String> {
    match detail {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) => object.get("message").or_else(|| object.get("msg")).and_then(words),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().filter_map(words).collect();
            (!all.is_empty()).then(|| all.join("\n"))
        }
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
}
