//! Running an operation: build, send, read.

use std::time::Duration;

use calls::{Invocation, RunError, ToolResult};
use catalog::Integration;
use catalog::auth::{AuthScheme, Send};
use connections::Usable;
use egress::{Egress, EgressError, RateLimit, Redirects, Request, Response, Retry};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use kernel::{ConnectionId, ProjectId, Scrubber};
use serde_json::{Map, Value};
use work::Workers;

use crate::idempotency::Keyed;
use crate::{BuildError, Built, Operation, Service, TimeLimits, reply};

const MAX_REDIRECTS: u8 = 3;

/// What operations are run with: the way out, the threads for large answers, and how long services have.
#[derive(Clone, Debug)]
pub struct OperationRunner {
    pub(crate) egress: Egress,
    pub(crate) workers: Workers,
    pub(crate) limits: TimeLimits,
}

/// A request for one account.
#[derive(Clone, Copy, Debug)]
pub struct ActionRequest<'a> {
    pub integration: &'a Integration,
    pub connection: ConnectionId,
    pub usable: &'a Usable,
    pub arguments: &'a Map<String, Value>,
    /// One more header.
    pub header: Option<(&'a HeaderName, &'a str)>,
    pub retry: Retry,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    Build(BuildError),
    Unreachable(EgressError),
}

impl OperationRunner {
    pub fn new(egress: Egress) -> Self {
        Self { egress, workers: Workers::default(), limits: TimeLimits::default() }
    }

    /// Reads large answers with these workers.
    #[must_use]
    pub fn with_workers(self, workers: Workers) -> Self {
        Self { workers, ..self }
    }

    /// Gives services another time to answer.
    #[must_use]
    pub fn within(self, limits: TimeLimits) -> Self {
        Self { limits, ..self }
    }

    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Runs an action of a service: builds its request, sends it and reads the answer.
    pub async fn run(&self, service: &Service, invocation: Invocation<'_>) -> Result<ToolResult, RunError> {
        let Invocation { integration, action, arguments, connection, usable, .. } = invocation;
        let call = service.calls.get(&action.key).ok_or_else(|| missing(invocation))?;
        let keyed = Keyed::new(call.key.as_ref(), invocation.idempotency_key, arguments);
        let (header, retry) = (keyed.header, keyed.retry);
        let ask = ActionRequest { integration, connection, usable, arguments: &keyed.arguments, header, retry };
        let response = self.send(service, &call.operation, ask).await.map_err(|error| match error {
            Unanswered::Build(BuildError::Address(error)) => RunError::Connection(error.to_string()),
            Unanswered::Build(other) => RunError::Arguments(other.to_string()),
            Unanswered::Unreachable(error) => RunError::Unreachable(error),
        })?;
        let data = self.data(invocation.project, &response, usable.scrubber()).await.map_err(RunError::Upstream)?;
        let result = reply::read(&response, data, service.failure.as_ref(), call.result.as_deref())?;
        let error = result.error.map(|error| lacking(response.status, usable, &action.scopes, error));
        Ok(ToolResult { error, ..result })
    }

    /// Builds and sends a request with the account's credential, within the integration's rate limit and time.
    pub async fn send(&self, service: &Service, operation: &Operation, ask: ActionRequest<'_>) -> Result<Response, Unanswered> {
        let ActionRequest { integration, connection, usable, arguments, header, retry } = ask;
        let base_url = usable.scheme.as_ref().and_then(|scheme| scheme.base_url()).unwrap_or(&service.base_url);
        let send = usable.scheme.as_deref().map_or_else(|| Send::nothing(), AuthScheme::send);
        let built = operation.build(base_url, send, arguments, &usable.fields).map_err(Unanswered::Build)?;
        let mut request = request(built, self.limits.of(integration)).retry(retry);
        if let Some((name, text)) = header {
            let value = HeaderValue::from_str(text).map_err(|_| Unanswered::Build(BuildError::BadHeader(name.to_string())))?;
            request.headers.entry(name).or_insert(value);
        }
        request.limit = integration.rate_limit.map(|limit| RateLimit {
            key: connection.to_string(),
            requests: limit.requests,
            per: Duration::from_secs(limit.seconds.into()),
        });
        self.egress.send(request).await.map_err(Unanswered::Unreachable)
    }

    /// The body of an answer as data, without the secrets that a service may repeat.
    pub async fn data(&self, project: ProjectId, response: &Response, secrets: &Scrubber) -> Result<Value, String> {
        reply::data(&self.workers, project, response, secrets).await
    }
}

/// A refusal, with the scopes that an OAuth connection needs to be let in.
fn lacking(status: StatusCode, usable: &Usable, scopes: &[String], error: String) -> String {
    if status != StatusCode::FORBIDDEN || scopes.is_empty() || !matches!(usable.scheme.as_deref(), Some(AuthScheme::OAuth2(_))) {
        return error;
    }
    format!("{error} ({})", needs(scopes))
}

/// What an OAuth connection must have been asked for.
pub fn needs<T: AsRef<str>>(scopes: &[T]) -> String {
    let scopes: Vec<String> = scopes.iter().map(|scope| format!("`{}`", scope.as_ref())).collect();
    format!("the connection needs the scope {}; name scopes when you connect", scopes.join(", "))
}

/// An action that the service does not have any more.
pub fn missing(invocation: Invocation<'_>) -> RunError {
    RunError::Upstream(format!("`{}` is not here any more", invocation.action.key))
}

pub(crate) fn request(built: Built, limit: Duration) -> Request {
    let follow = matches!(built.method, Method::GET | Method::HEAD);
    let mut request = Request::new(built.method, built.url).timeout(limit).retry(Retry::Safe).body(built.body);
    request.headers = built.headers;
    if follow { request.redirects(Redirects::Follow(MAX_REDIRECTS)) } else { request }
}
