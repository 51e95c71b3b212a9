//! What went wrong between us and a model, and whether to ask again.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::Value;

use crate::fields::text;

/// The most characters of somebody else's message that are kept.
const MESSAGE: usize = 1_000;

/// A question that got no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ErrorKind,
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Too many requests or tokens in a time.
    RateLimited,
    /// The server has too much to do, for everybody.
    Overloaded,
    /// The credential is missing, wrong, or not allowed or paid for.
    Unauthorized,
    /// The server does not take the request.
    Invalid,
    /// The conversation does not fit into the model's window.
    TooLong,
    /// The server failed.
    Server,
    /// The answer cannot be read.
    Malformed,
    /// The stream ended before the answer did.
    CutOff,
}

impl ModelError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    pub(crate) fn too_large() -> Self {
        Self::new(ErrorKind::Malformed, "the model's answer is larger than an answer may be")
    }

    pub(crate) fn malformed(body: &[u8]) -> Self {
        Self::new(ErrorKind::Malformed, format!("the model's server answered with something that is no JSON: {}", glimpse(body)))
    }

    pub(crate) fn cut_off() -> Self {
        Self::new(ErrorKind::CutOff, "the model's stream ended before its answer did")
    }

    /// Whether the same question may be answered if it is asked again later.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Server | ErrorKind::CutOff)
    }
}

/// The error of an answer with a status that says so.
pub(crate) fn of_answer(status: u16, header: Option<&str>, body: &[u8]) -> ModelError {
    let envelope: Option<Value> = serde_json::from_slice(body).ok();
    let found = envelope
        .as_ref()
        .and_then(|envelope| ["error", "detail", "message"].iter().find_map(|name| envelope.get(name)).filter(|error| !error.is_null()));
    let mut error = match found {
        Some(found) => of_envelope(Some(status), found),
        None => ModelError::new(kind(Some(status), "", ""), glimpse(body)),
    };
    if error.message.is_empty() {
        error.message = "no reason given".to_owned();
    }
    error.message = format!("the model's server answered {status}: {}", error.message);
    error.retry_after = header.and_then(|text| retry_after(text, Timestamp::now()));
    error
}

/// The error that an API describes, with an answer or in the middle of a stream.
pub(crate) fn of_envelope(status: Option<u16>, error: &Value) -> ModelError {
    let (code, kind_name) = (text(error, "code"), text(error, "type"));
    let message = match error {
        Value::String(message) => message.as_str(),
        _ => text(error, "message"),
    };
    let status = status.or_else(|| error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()));
    let names = format!("{code} {kind_name}");
    let told = match (message.is_empty(), names.trim()) {
        (false, _) => cut(message),
        (true, "") => cut(&error.to_string()),
        (true, names) => cut(names),
    };
    ModelError::new(kind(status, &names, message), told)
}

fn kind(status: Option<u16>, names: &str, message: &str) -> ErrorKind {
    let named = |words: &[&str]| words.iter().any(|word| names.contains(word));
    if is_too_long(status, names, message) {
        return ErrorKind::TooLong;
    }
    if named(&["insufficient_quota", "billing_error", "authentication_error", "permission_error", "invalid_api_key"]) {
        return ErrorKind::Unauthorized;
    }
    if named(&["overloaded"]) {
        return ErrorKind::Overloaded;
    }
    if named(&["rate_limit"]) {
        return ErrorKind::RateLimited;
    }
    match status {
        Some(401..=403) => ErrorKind::Unauthorized,
        Some(429) => ErrorKind::RateLimited,
        Some(503 | 529) => ErrorKind::Overloaded,
        Some(408 | 409 | 425 | 500..) => ErrorKind::Server,
        None if !named(&["invalid", "not_found", "policy"]) => ErrorKind::Server,
        _ => ErrorKind::Invalid,
    }
}

/// Each server has its own words for a window that is full; the message is all that some give.
fn is_too_long(status: Option<u16>, names: &str, message: &str) -> bool {
    if ["context_length_exceeded", "exceed_context_size", "request_too_large"].iter().any(|name| names.contains(name)) {
        return true;
    }
    let refused = matches!(status, None | Some(400 | 413 | 422));
    let message = message.to_ascii_lowercase();
    let phrases = ["prompt is too long", "maximum context length", "context window", "context length", "context size", "too many tokens"];
    refused && (status == Some(413) || phrases.iter().any(|phrase| message.contains(phrase)))
}

/// How long a `retry-after` header asks to wait: seconds or a date.
pub fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

/// The beginning of a body that could not be read.
fn glimpse(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * MESSAGE)]);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(200).collect()
}

fn cut(message: &str) -> String {
    message.chars().take(MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, body: &str) -> ModelError {
        of_answer(status, None, body.as_bytes())
    }

    #[test]
    fn tells_failures_apart() {
        let cases = [
            (
                429,
                r#"{"error":{"message":"Rate limit reached for requests","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
                ErrorKind::RateLimited,
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                ErrorKind::Unauthorized,
            ),
            (
                400,
                r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                ErrorKind::TooLong,
            ),
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                ErrorKind::Unauthorized,
            ),
            (
                404,
                r#"{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}"#,
                ErrorKind::Invalid,
            ),
            (500, r#"{"error":{"message":"The server had an error","type":"server_error"}}"#, ErrorKind::Server),
            (503, r#"{"error":{"message":"That model is currently overloaded","type":"server_error"}}"#, ErrorKind::Overloaded),
            (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, ErrorKind::Overloaded),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                ErrorKind::TooLong,
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                ErrorKind::TooLong,
            ),
            (402, r#"{"type":"error","error":{"type":"billing_error","message":"credit balance"}}"#, ErrorKind::Unauthorized),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: must be positive"}}"#,
                ErrorKind::Invalid,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"request exceeds the available context size","type":"exceed_context_size_error"}}"#,
                ErrorKind::TooLong,
            ),
            (404, r#"{"error":"model 'x' not found, try pulling it first"}"#, ErrorKind::Invalid),
            (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, ErrorKind::Invalid),
            (502, "<html>Bad Gateway</html>", ErrorKind::Server),
            (504, "", ErrorKind::Server),
            (302, "", ErrorKind::Invalid),
        ];
        for (status, body, expected) in cases {
            let error = error(status, body);
            assert_eq!(error.kind, expected, "{status} {body}");
            assert!(error.message.starts_with(&format!("the model's server answered {status}: ")), "{}", error.message);
            let again = matches!(expected, ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Server);
            assert_eq!(error.is_retryable(), again, "{status} {body}");
        }
    }

    #[test]
    fn errors_within_a_stream_have_no_status() {
        let of = |value| of_envelope(None, &value).kind;
        assert_eq!(of(serde_json::json!({"type": "overloaded_error", "message": "Overloaded"})), ErrorKind::Overloaded);
        assert_eq!(of(serde_json::json!({"code": "rate_limit_exceeded", "message": "slow down"})), ErrorKind::RateLimited);
        assert_eq!(of(serde_json::json!({"code": "server_error", "message": "x"})), ErrorKind::Server);
        assert_eq!(of(serde_json::json!({"code": "invalid_prompt", "message": "x"})), ErrorKind::Invalid);
        assert_eq!(of(serde_json::json!({"code": 429, "message": "x"})), ErrorKind::RateLimited);
        assert_eq!(of(serde_json::json!("anything")), ErrorKind::Server);
    }

    #[test]
    fn messages_are_short() {
        let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "ä".repeat(100_000));
        assert!(error(400, &long).message.chars().count() < 1_100);
        assert!(error(400, &"x".repeat(100_000)).message.len() < 300);
    }

    #[test]
    fn waits_as_long_as_it_is_asked_to() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let read = |text| retry_after(text, now).map(|wait| wait.as_millis());
        assert_eq!(read("7"), Some(7_000));
        assert_eq!(read(" 0.5 "), Some(500));
        assert_eq!(read("Fri, 02 Jan 2026 03:04:15 GMT"), Some(10_000));
        assert_eq!(read("Fri, 02 Jan 2026 03:04:00 GMT"), Some(0));
        assert_eq!(read("-1"), None);
        assert_eq!(read("soon"), None);
        assert_eq!(of_answer(429, Some("3"), b"{}").retry_after, Some(Duration::from_secs(3)));
    }
}
