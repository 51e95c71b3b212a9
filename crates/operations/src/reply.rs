//! From a service's answer to a tool's result.

use calls::{RunError, ToolResult};
use egress::Response;
use http::StatusCode;
use kernel::json::{Unread, parse, plain_text};
use kernel::{Budget, ProjectId, Scrubber};
use serde_json::{Value, json};
use work::{WorkError, Workers};

use crate::Failure;

/// Where services put the words of an error, the most telling first.
const MESSAGES: [&str; 12] = [
    "/error/message",
    "/message",
    "/error_description",
    "/errors/0/message",
    "/errors/0/detail",
    "/errors/0",
    "/errorMessages/0",
    "/error/detail",
    "/detail",
    "/description",
    "/error",
    "/title",
];
const MAX_MESSAGE: usize = 500;

/// Reads an answer. What the service says no to is a result too; only a refused credential, a rate limit, a failure of the service or an
/// unreadable answer is not.
pub fn read(response: &Response, mut data: Value, failure: Option<&Failure>, result: Option<&str>) -> Result<ToolResult, RunError> {
    let status = response.status;
    match status.as_u16() {
        401 => return Err(RunError::Unauthorized(message(&data, status))),
        407 | 408 | 429 => return Err(RunError::Upstream(format!("answered {}: {}", status.as_u16(), message(&data, status)))),
        500.. => return Err(RunError::Server { status: status.as_u16(), message: message(&data, status) }),
        100..=199 | 300..=399 => return Err(RunError::Upstream(format!("answered {} instead of a result", status.as_u16()))),
        400.. => {
            let error = format!("{}: {}", status.as_u16(), message(&data, status));
            return Ok(ToolResult::refused(data, error, Some(status.as_u16())));
        }
        _ => {}
    }
    if let Some(error) = failure.and_then(|failure| failed(failure, &data)) {
        return Ok(ToolResult::refused(data, error, None));
    }
    if result.is_some()
        && let Some(error) = data.pointer("/errors/0")
    {
        let text = error.get("message").and_then(Value::as_str).unwrap_or("the service reported an error").to_owned();
        return Ok(ToolResult::refused(data, text, None));
    }
    let data = match result {
        Some(pointer) => data.pointer_mut(pointer).map(Value::take).unwrap_or_default(),
        None => data,
    };
    Ok(ToolResult::ok(data))
}

/// The body as JSON where it is JSON, else as text, without the credential that a service may repeat. What was cut off says so.
pub(crate) async fn data(workers: &Workers, project: ProjectId, response: &Response, scrubber: &Scrubber) -> Result<Value, String> {
    if response.truncated {
        let text = scrubber.cut_text(&String::from_utf8_lossy(&response.body));
        let note = format!(
            "The answer was longer than {} bytes; this is its beginning. Ask for less, for example with a smaller page.",
            response.body.len()
        );
        return Ok(json!({"truncated": true, "note": note, "text": text}));
    }
    if response.body.is_empty() {
        return Ok(json!({}));
    }
    let (body, scrubber) = (response.body.clone(), scrubber.clone());
    let read = move |budget: &Budget| {
        let mut data = parsed(&body, budget)?;
        scrubber.value(&mut data);
        Ok(data)
    };
    workers.run(project, response.body.len(), read).await.map_err(|error: WorkError| match error {
        WorkError::Exceeded(_) => format!("the answer cannot be read: {error} Ask for less, for example with a smaller page."),
        other => other.to_string(),
    })
}

fn parsed(body: &[u8], budget: &Budget) -> Result<Value, WorkError> {
    match parse(body, budget) {
        Ok(value) => Ok(value),
        Err(Unread::Json(_)) => Ok(json!(String::from_utf8_lossy(body))),
        Err(Unread::Exceeded(exceeded)) => Err(exceeded.into()),
    }
}

pub(crate) fn failed(failure: &Failure, data: &Value) -> Option<String> {
    let found = data.pointer(&failure.when)?;
    let is_failure = match &failure.equals {
        Some(expected) => found == expected,
        None => match found {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        },
    };
    let words = || {
        failure
            .message
            .as_deref()
            .and_then(|pointer| data.pointer(pointer))
            .and_then(plain_text)
            .unwrap_or_else(|| "the service reported an error".to_owned())
    };
    is_failure.then(words)
}

/// The words of an error, for people.
pub(crate) fn message(data: &Value, status: StatusCode) -> String {
    let words = MESSAGES.iter().find_map(|pointer| data.pointer(pointer).and_then(plain_text));
    let words = words.or_else(|| data.as_str().filter(|body| !body.trim_start().starts_with('<')).map(str::to_owned));
    let words = words.unwrap_or_else(|| status.canonical_reason().unwrap_or("no reason given").to_owned());
    words.trim().chars().filter(|c| !c.is_control()).take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn read(response: &Response, failure: Option<&Failure>, result: Option<&str>) -> Result<ToolResult, RunError> {
        let data = if response.body.is_empty() { json!({}) } else { parsed(&response.body, &Budget::default()).unwrap() };
        super::read(response, data, failure, result)
    }

    fn answer(status: u16, body: &str) -> Response {
        Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: body.to_owned().into(),
            truncated: false,
            url: "https://example.com".parse().unwrap(),
        }
    }

    #[test]
    fn what_the_service_refuses_is_a_result() {
        let result = read(&answer(404, r#"{"message": "Not Found"}"#), None, None).unwrap();
        assert_eq!((result.error.as_deref(), result.status), (Some("404: Not Found"), Some(404)));
        assert_eq!(result.data, json!({"message": "Not Found"}));
        let result = read(&answer(422, r#"{"errors": [{"message": "name is taken"}]}"#), None, None).unwrap();
        assert_eq!(result.error.as_deref(), Some("422: name is taken"));
    }

    #[test]
    fn what_is_no_result_is_an_error() {
        assert!(matches!(read(&answer(401, ""), None, None), Err(RunError::Unauthorized(_))));
        assert!(matches!(read(&answer(429, ""), None, None), Err(RunError::Upstream(_))));
        assert!(matches!(read(&answer(302, ""), None, None), Err(RunError::Upstream(_))));
        assert!(
            matches!(read(&answer(503, "<html>"), None, None), Err(RunError::Server { status: 503, message }) if message == "Service Unavailable")
        );
    }

    #[test]
    fn a_good_status_may_hide_a_failure() {
        let slack = Failure { when: "/ok".to_owned(), equals: Some(json!(false)), message: Some("/error".to_owned()) };
        let result = read(&answer(200, r#"{"ok": false, "error": "channel_not_found"}"#), Some(&slack), None).unwrap();
        assert_eq!(result.error.as_deref(), Some("channel_not_found"));
        assert_eq!(read(&answer(200, r#"{"ok": true}"#), Some(&slack), None).unwrap().error, None);
        let graphql = read(&answer(200, r#"{"data": null, "errors": [{"message": "no"}]}"#), None, Some("/data/x")).unwrap();
        assert_eq!(graphql.error.as_deref(), Some("no"));
    }

    #[tokio::test]
    async fn a_cut_answer_says_so() {
        let mut response = answer(200, "[1, 2");
        response.truncated = true;
        let data = data(&Workers::default(), ProjectId::new(), &response, &Scrubber::default()).await.unwrap();
        assert_eq!(data["truncated"], true);
    }
}
