//! Faults: which requests go wrong, and how.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use crate::refusal::Refusal;

/// Makes the next `times` requests that fit go wrong.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub on: On,
    pub times: u32,
    pub kind: Kind,
}

/// Which requests a fault is for. Paths are compared without `/api/v3.1` and match by any part of them.
#[derive(Debug, Clone, Copy)]
pub enum On {
    Path(&'static str),
    Request(&'static str, &'static str),
}

/// How a request goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The answer comes late; the wait is before the work.
    Delay(Duration),
    /// An error envelope of this status; nothing was done.
    Status(u16),
    /// The 429 that Composio documents: headers, and a body without an envelope; nothing was done.
    RateLimited { retry_after: u64 },
    /// The work is done, and the answer breaks off in the middle of its JSON.
    MalformedJson,
    /// The work is done, and every value of the answer has a type that it should not have.
    WrongTypes,
    /// The work is done, and the answer holds two million values more.
    TooManyValues,
    /// The work is done, and the connection is closed without an answer.
    LoseAnswer,
    /// The connection is closed, and nothing was done.
    Refuse,
}

#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) method: Option<String>,
    pub(crate) path: String,
    pub(crate) left: u32,
    pub(crate) kind: Kind,
}

impl From<Fault> for Rule {
    fn from(fault: Fault) -> Self {
        let (method, path) = match fault.on {
            On::Path(path) => (None, path),
            On::Request(method, path) => (Some(method.to_owned()), path),
        };
        Self { method, path: path.to_owned(), left: fault.times, kind: fault.kind }
    }
}

/// Uses up one time of the first rule that fits.
pub(crate) fn take(rules: &mut [Rule], method: &Method, path: &str) -> Option<Kind> {
    let fits = |rule: &&mut Rule| {
        rule.left > 0
            && path.contains(&rule.path)
            && rule.method.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method.as_str()))
    };
    let rule = rules.iter_mut().find(fits)?;
    rule.left -= 1;
    Some(rule.kind)
}

impl Kind {
    /// The answer of faults that come before any work.
    pub(crate) fn instead_of_work(self) -> Option<Response> {
        match self {
            Self::Status(status) => {
                Some(Refusal::of_status(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)).into_response())
            }
            Self::RateLimited { retry_after } => {
                let body = json!({"message": "Too many requests in this window; wait and try again"});
                let mut response = (StatusCode::TOO_MANY_REQUESTS, axum::Json(body)).into_response();
                response.headers_mut().insert(header::RETRY_AFTER, retry_after.into());
                response.headers_mut().insert("x-ratelimit-remaining", HeaderValue::from_static("0"));
                Some(response)
            }
            // The line is cut, so nobody sees this.
            Self::Refuse => Some(StatusCode::NO_CONTENT.into_response()),
            Self::Delay(_) | Self::MalformedJson | Self::WrongTypes | Self::TooManyValues | Self::LoseAnswer => None,
        }
    }

    pub(crate) fn cuts(self) -> bool {
        matches!(self, Self::LoseAnswer | Self::Refuse)
    }

    /// Spoils an answer of work that was done.
    pub(crate) async fn spoil(self, response: Response) -> Response {
        let change: fn(&[u8]) -> Vec<u8> = match self {
            Self::MalformedJson => break_off,
            Self::WrongTypes => mistype,
            Self::TooManyValues => fill_up,
            _ => return response,
        };
        let (mut parts, body) = response.into_parts();
        parts.headers.remove(header::CONTENT_LENGTH);
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        Response::from_parts(parts, Body::from(change(&bytes)))
    }
}

fn break_off(body: &[u8]) -> Vec<u8> {
    let mut text = b"{\"items\": [".to_vec();
    if body.len() > 1 {
        text = body[..body.len() / 2].to_vec();
    }
    text
}

fn mistype(body: &[u8]) -> Vec<u8> {
    let mut answer: Value = serde_json::from_slice(body).unwrap_or_default();
    match &mut answer {
        Value::Object(fields) => fields.values_mut().for_each(|value| *value = other(value)),
        value => *value = other(value),
    }
    answer.to_string().into_bytes()
}

fn fill_up(body: &[u8]) -> Vec<u8> {
    let start = format!("{{\"many\": [{}0], ", "0,".repeat(2_000_000));
    let rest = body.iter().position(|&byte| byte == b'{').map_or(body, |at| &body[at + 1..]);
    [start.as_bytes(), rest].concat()
}

fn other(value: &Value) -> Value {
    match value {
        Value::Null => json!(0),
        Value::Bool(_) => json!("yes"),
        Value::Number(_) => json!("seven"),
        Value::String(_) => json!(7),
        Value::Array(_) => json!({}),
        Value::Object(_) => json!([]),
    }
}
