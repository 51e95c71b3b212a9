//! Asking Composio: one way out, one reading of its errors.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use egress::{Egress, EgressError, Request, Response, Retry};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use super::breaker::Breaker;

const TIMEOUT: Duration = Duration::from_secs(30);
/// A page of a thousand tools with their schemas.
const MAX_PAGE: usize = 64 << 20;
const PAGE_TIMEOUT: Duration = Duration::from_mins(1);
const MAX_MESSAGE: usize = 500;

/// A way to Composio, with the deployment's key.
#[derive(Debug)]
pub(super) struct Client {
    base: Url,
    key: SecretString,
    egress: Egress,
    breaker: Breaker,
}

/// Why Composio did not answer as wished.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{message}")]
    Refused { status: u16, code: Option<i64>, message: String },
    #[error("Composio failed with status {status}: {message}")]
    Server { status: u16, message: String },
    #[error("Composio could not be reached: {0}")]
    Unreachable(EgressError),
    #[error("Composio answered with something unreadable: {0}")]
    Malformed(String),
    #[error("Composio failed several times in a row and is left alone for {} s; nothing was sent", .0.as_secs() + 1)]
    Resting(Duration),
}

impl Fault {
    /// Whether it says that what was asked for is not there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 410, .. })
    }

    /// Whether the request may have been carried out all the same.
    pub(super) fn is_uncertain(&self) -> bool {
        match self {
            Self::Unreachable(error) => matches!(error, EgressError::Timeout { .. } | EgressError::Io { .. }),
            Self::Server { .. } | Self::Malformed(_) => true,
            Self::Refused { .. } | Self::Resting(_) => false,
        }
    }

    /// Whether it says something about the upstream, rather than about the request.
    fn counts(&self) -> bool {
        match self {
            Self::Unreachable(error) => matches!(
                error,
                EgressError::Timeout { .. }
                    | EgressError::Io { .. }
                    | EgressError::Connect { .. }
                    | EgressError::Dns { .. }
                    | EgressError::Tls { .. }
            ),
            Self::Server { .. } => true,
            Self::Refused { .. } | Self::Malformed(_) | Self::Resting(_) => false,
        }
    }
}

/// One request.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    method: Method,
    path: Vec<&'a str>,
    query: Vec<(&'a str, String)>,
    body: Option<Value>,
    timeout: Duration,
    max_reply: Option<usize>,
    /// Which upstream it is, behind Composio: one that fails does not stop the others.
    lane: Cow<'a, str>,
}

impl<'a> Ask<'a> {
    fn new(method: Method, path: &[&'a str]) -> Self {
        Self {
            method,
            path: path.to_vec(),
            query: Vec::new(),
            body: None,
            timeout: TIMEOUT,
            max_reply: None,
            lane: path.first().copied().unwrap_or_default().into(),
        }
    }

    pub(super) fn get(path: &[&'a str]) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn post(path: &[&'a str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::POST, path) }
    }

    pub(super) fn patch(path: &[&'a str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PATCH, path) }
    }

    pub(super) fn delete(path: &[&'a str]) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub(super) fn with(mut self, name: &'a str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    pub(super) fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// A page of a long list, which may be large.
    pub(super) fn page(self) -> Self {
        Self { timeout: PAGE_TIMEOUT, max_reply: Some(MAX_PAGE), ..self }
    }

    pub(super) fn lane(self, lane: impl Into<Cow<'a, str>>) -> Self {
        Self { lane: lane.into(), ..self }
    }
}

impl Client {
    pub(super) fn new(base: Url, key: SecretString, egress: Egress) -> Self {
        Self { base, key, egress, breaker: Breaker::default() }
    }

    /// The same for everyone who asks the same Composio with the same key.
    pub(super) fn identity(&self) -> String {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        hash.update(self.base.as_str());
        hash.update([0]);
        hash.update(self.key.expose_secret());
        kernel::hex::encode(&hash.finalize()[..16])
    }

    pub(super) fn is_plain(&self) -> bool {
        self.base.scheme() == "http"
    }

    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Value, Fault> {
        let pass = self.breaker.enter(&ask.lane, Instant::now()).map_err(Fault::Resting)?;
        let answered = self.send(&ask).await;
        let now = Instant::now();
        match &answered {
            Err(fault) if fault.counts() => pass.failed(now),
            _ => pass.worked(now),
        }
        answered
    }

    async fn send(&self, ask: &Ask<'_>) -> Result<Value, Fault> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&ask.path);
        }
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&ask.query);
        }
        let mut key = HeaderValue::from_str(self.key.expose_secret()).map_err(|_| Fault::Refused {
            status: 401,
            code: None,
            message: "the API key cannot be sent; check COMPOSIO_API_KEY".to_owned(),
        })?;
        key.set_sensitive(true);
        let mut request = Request::new(ask.method.clone(), url)
            .header(HeaderName::from_static("x-api-key"), key)
            .header(header::ACCEPT, HeaderValue::from_static("application/json"))
            .timeout(ask.timeout)
            .retry(Retry::Safe);
        request.max_response = ask.max_reply;
        if let Some(body) = &ask.body {
            request = request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body.to_string());
        }
        let response = self.egress.send(request).await.map_err(Fault::Unreachable)?;
        self.read(&response)
    }

    fn read(&self, response: &Response) -> Result<Value, Fault> {
        let status = response.status;
        if status.is_success() {
            if response.truncated {
                return Err(Fault::Malformed("the answer is too large".to_owned()));
            }
            if response.body.is_empty() || status == StatusCode::NO_CONTENT {
                return Ok(Value::Null);
            }
            return serde_json::from_slice(&response.body).map_err(|error| Fault::Malformed(self.scrub(&error.to_string())));
        }
        let body: Value = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
        let said = ["/error/message", "/message", "/error"].iter().find_map(|place| body.pointer(place).and_then(Value::as_str));
        let said = said.map(str::to_owned).or_else(|| {
            let raw = String::from_utf8_lossy(&response.body);
            (body.is_null() && !raw.trim().is_empty() && !raw.contains('<')).then(|| raw.trim().to_owned())
        });
        let said = said.unwrap_or_else(|| status.canonical_reason().unwrap_or("no reason given").to_owned());
        let message = self.scrub(&said);
        match status.as_u16() {
            status @ 500.. => Err(Fault::Server { status, message }),
            status => {
                let message = match status {
                    401 | 403 => format!("Composio refused the deployment's API key: {message}"),
                    429 => format!("Composio's rate limit is used up: {message}"),
                    _ => message,
                };
                Err(Fault::Refused { status, code: body.pointer("/error/code").and_then(Value::as_i64), message })
            }
        }
    }

    /// The text as it may be shown: short, and without the key.
    fn scrub(&self, text: &str) -> String {
        let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE).collect();
        text.replace(self.key.expose_secret(), "…")
    }
}
