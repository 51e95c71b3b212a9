//! What a call came to.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::api::Answer;
use crate::refusal::Refusal;
use crate::ui::{Markup, Tone, badge, code_block, duration_ms, json_tree};
use crate::visit::Visit;

/// The result of a call as it is shown.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) state: Markup,
    pub(super) took: String,
    /// Why it came to nothing.
    pub(super) error: Option<String>,
    /// The page where a person lets it through.
    pub(super) approval: Option<String>,
    pub(super) content: Option<Markup>,
    pub(super) whole: Option<Markup>,
    /// The page of the call in the record.
    pub(super) call: Option<String>,
    pub(super) status: StatusCode,
}

pub(super) fn outcome(visit: &Visit, answer: &Answer, took: Duration) -> Outcome {
    let took = duration_ms(took.as_secs_f64() * 1000.0);
    let blank =
        |state| Outcome { state, took, error: None, approval: None, content: None, whole: None, call: None, status: StatusCode::OK };
    if !answer.status.is_success() {
        let refusal = Refusal::of(answer);
        return Outcome {
            error: Some(refusal.words),
            status: shown_status(refusal.status),
            ..blank(badge(Tone::Bad, "did not run to its end"))
        };
    }
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let pretty = serde_json::to_string_pretty(&body).unwrap_or_default();
    let whole = Some(code_block(&pretty));
    let id_of = |part: &str| body[part]["id"].as_str();
    if answer.status == StatusCode::ACCEPTED {
        let approval = id_of("approval").map(|id| visit.page("approvals").at(id).into());
        return Outcome { approval, whole, ..blank(badge(Tone::Wait, "waits for a person")) };
    }
    let call = &body["call"];
    let is_ok = call["status"]["code"] == "STATUS_CODE_OK";
    let error = call["status"]["message"].as_str().filter(|_| !is_ok).map(str::to_owned);
    Outcome {
        error,
        content: Some(json_tree(&content(&call["data"]["content"]))),
        whole,
        call: id_of("call").map(|id| visit.page("calls").at(id).into()),
        ..blank(if is_ok { badge(Tone::Good, "succeeded") } else { badge(Tone::Bad, "the tool said no") })
    }
}

/// A failure of the service behind a tool is none of this page, and proxies put pages of their own in place of such.
fn shown_status(status: StatusCode) -> StatusCode {
    if status.is_client_error() { status } else { StatusCode::OK }
}

/// What a tool answered: JSON where its text is JSON, and of an action the data alone, because its error is shown already.
fn content(text: &Value) -> Value {
    let mut value = parsed(text.clone());
    let is_action = value
        .as_object()
        .is_some_and(|entries| entries.len() == 3 && ["data", "error", "successful"].iter().all(|name| entries.contains_key(*name)));
    if is_action { parsed(value["data"].take()) } else { value }
}

/// Texts that hold an object or a list are shown as such.
fn parsed(value: Value) -> Value {
    let inner = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    inner.filter(|inner| inner.is_object() || inner.is_array()).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_is_shown_as_what_it_is() {
        assert_eq!(content(&json!("{\"data\":{\"a\":1},\"error\":null,\"successful\":true}")), json!({"a": 1}));
        assert_eq!(content(&json!("{\"data\":\"[1]\",\"error\":null,\"successful\":true}")), json!([1]));
        assert_eq!(content(&json!("{\"data\":1}")), json!({"data": 1}));
        assert_eq!(content(&json!("plain")), json!("plain"));
        assert_eq!(content(&json!("12")), json!("12"), "a text stays a text");
    }
}
