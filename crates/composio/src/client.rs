//! Asking Composio: one way out, one reading of its errors.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use egress::{Egress, EgressError, Request, Response, Retry};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use kernel::json::{Unread, parse};
use kernel::{Budget, Limits, ProjectId, Scrubber};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;
use work::{LARGE, WorkError, Workers};

use crate::breaker::Breaker;

const TIMEOUT: Duration = Duration::from_secs(30);
/// A page of a thousand tools with their schemas.
const MAX_PAGE: usize = 64 << 20;
const PAGE_TIMEOUT: Duration = Duration::from_mins(1);
const MAX_MESSAGE: usize = 500;

/// A way to Composio, with the deployment's key.
#[derive(Debug)]
pub(crate) struct Client {
    base: Url,
    key: SecretString,
    /// Takes the key out of what Composio says.
    secrets: Scrubber,
    egress: Egress,
    breaker: Breaker,
    workers: Workers,
    /// Whose share large answers are read with that no project asked for.
    deployment: ProjectId,
}

/// Why Composio did not answer as wished.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ComposioError {
    #[error("{message}")]
    Refused { status: u16, code: Option<i64>, message: String },
    #[error("Composio failed with status {status}: {message}")]
    Server { status: u16, message: String },
    #[error("Composio could not be reached: {0}")]
    Unreachable(EgressError),
    #[error("Composio answered with something unreadable: {0}")]
    Malformed(String),
    /// It is too much to be read, or too much of the project waits to be read.
    #[error("Composio's answer cannot be read: {0}")]
    TooMuch(WorkError),
    #[error("Composio failed several times in a row and is left alone for {} s; nothing was sent", .0.as_secs() + 1)]
    Resting(Duration),
}

impl From<WorkError> for ComposioError {
    fn from(error: WorkError) -> Self {
        Self::TooMuch(error)
    }
}

impl ComposioError {
    /// Whether it says that what was asked for is not there.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 410, .. })
    }

    /// Whether the request may have been carried out all the same.
    pub(crate) fn is_uncertain(&self) -> bool {
        match self {
            Self::Unreachable(error) => matches!(error, EgressError::Timeout { .. } | EgressError::Io { .. }),
            Self::Server { .. } | Self::Malformed(_) | Self::TooMuch(_) => true,
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
            Self::Refused { .. } | Self::Malformed(_) | Self::TooMuch(_) | Self::Resting(_) => false,
        }
    }
}

/// One request.
#[derive(Debug)]
pub(crate) struct ApiRequest<'a> {
    method: Method,
    path: Vec<&'a str>,
    query: Vec<(&'a str, String)>,
    body: Option<Value>,
    timeout: Duration,
    max_reply: Option<usize>,
    /// Which upstream it is, behind Composio: one that fails does not stop the others.
    circuit: Cow<'a, str>,
    /// Who asks, if it is not the deployment itself.
    project: Option<ProjectId>,
}

impl<'a> ApiRequest<'a> {
    fn new(method: Method, path: &[&'a str]) -> Self {
        Self {
            method,
            path: path.to_vec(),
            query: Vec::new(),
            body: None,
            timeout: TIMEOUT,
            max_reply: None,
            circuit: path.first().copied().unwrap_or_default().into(),
            project: None,
        }
    }

    pub(crate) fn get(path: &[&'a str]) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &[&'a str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::POST, path) }
    }

    pub(crate) fn patch(path: &[&'a str], body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PATCH, path) }
    }

    pub(crate) fn delete(path: &[&'a str]) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub(crate) fn with(mut self, name: &'a str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// A page of a long list, which may be large.
    pub(crate) fn page(self) -> Self {
        Self { timeout: PAGE_TIMEOUT, max_reply: Some(MAX_PAGE), ..self }
    }

    pub(crate) fn circuit(self, circuit: impl Into<Cow<'a, str>>) -> Self {
        Self { circuit: circuit.into(), ..self }
    }

    /// Reads a large answer with the share of this project.
    pub(crate) fn of(self, project: ProjectId) -> Self {
        Self { project: Some(project), ..self }
    }
}

impl Client {
    pub(crate) fn new(base: Url, key: SecretString, egress: Egress, workers: Workers) -> Self {
        let secrets = Scrubber::new([key.expose_secret()]);
        Self { base, key, secrets, egress, breaker: Breaker::default(), workers, deployment: ProjectId::new() }
    }

    /// The same for everyone who asks the same Composio with the same key.
    pub(crate) fn identity(&self) -> String {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        hash.update(self.base.as_str());
        hash.update([0]);
        hash.update(self.key.expose_secret());
        kernel::hex::encode(&hash.finalize()[..16])
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.base.scheme() == "http"
    }

    pub(crate) async fn ask(&self, ask: ApiRequest<'_>) -> Result<Value, ComposioError> {
        self.ask_for(ask, Ok).await
    }

    /// Asks, and makes something of the answer where it is read.
    pub(crate) async fn ask_for<T: Send + 'static>(
        &self,
        ask: ApiRequest<'_>,
        make: impl FnOnce(Value) -> Result<T, ComposioError> + Send + 'static,
    ) -> Result<T, ComposioError> {
        let pass = self.breaker.enter(&ask.circuit, Instant::now()).map_err(ComposioError::Resting)?;
        let answered = match self.send(&ask).await {
            Ok(response) => {
                // Whole pages of the catalog are documents; anything else is what one request may cause.
                let limits = if ask.max_reply.is_some() { Limits::DOCUMENT } else { Limits::USUAL };
                let (size, secrets) = (response.body.len(), self.secrets.clone());
                let work = move |budget: &Budget| read(&response, &secrets, budget).and_then(make);
                self.workers.within(limits, ask.project.unwrap_or(self.deployment), size, work).await
            }
            Err(fault) => Err(fault),
        };
        let now = Instant::now();
        match &answered {
            Err(fault) if fault.counts() => pass.failed(now),
            _ => pass.worked(now),
        }
        answered
    }

    /// Does work over what was read for the deployment itself.
    pub(crate) async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ComposioError> {
        self.workers.within(Limits::DOCUMENT, self.deployment, LARGE, move |_| Ok(work())).await
    }

    async fn send(&self, ask: &ApiRequest<'_>) -> Result<Response, ComposioError> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&ask.path);
        }
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&ask.query);
        }
        let mut key = HeaderValue::from_str(self.key.expose_secret()).map_err(|_| ComposioError::Refused {
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
        self.egress.send(request).await.map_err(ComposioError::Unreachable)
    }
}

/// The value of an answer, or why there is none.
fn read(response: &Response, secrets: &Scrubber, budget: &Budget) -> Result<Value, ComposioError> {
    let status = response.status;
    if status.is_success() {
        if response.truncated {
            return Err(ComposioError::Malformed("the answer is too large".to_owned()));
        }
        if response.body.is_empty() || status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        let mut answer = parse(&response.body, budget).map_err(|error| match error {
            Unread::Json(error) => ComposioError::Malformed(scrub(secrets, &error.to_string())),
            Unread::Exceeded(exceeded) => ComposioError::TooMuch(exceeded.into()),
        })?;
        secrets.value(&mut answer);
        return Ok(answer);
    }
    let body: Value = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
    let said = ["/error/message", "/message", "/error"].iter().find_map(|place| body.pointer(place).and_then(Value::as_str));
    let said = said.map(str::to_owned).or_else(|| {
        let raw = String::from_utf8_lossy(&response.body);
        (body.is_null() && !raw.trim().is_empty() && !raw.contains('<')).then(|| raw.trim().to_owned())
    });
    let said = said.unwrap_or_else(|| status.canonical_reason().unwrap_or("no reason given").to_owned());
    let message = scrub(secrets, &said);
    match status.as_u16() {
        status @ 500.. => Err(ComposioError::Server { status, message }),
        status => {
            let message = match status {
                401 | 403 => format!("Composio refused the deployment's API key: {message}"),
                429 => format!("Composio's rate limit is used up: {message}"),
                _ => message,
            };
            Err(ComposioError::Refused { status, code: body.pointer("/error/code").and_then(Value::as_i64), message })
        }
    }
}

/// The text as it may be shown: short, and without the key.
fn scrub(secrets: &Scrubber, text: &str) -> String {
    secrets.text(text).chars().filter(|c| !c.is_control()).take(MAX_MESSAGE).collect()
}
