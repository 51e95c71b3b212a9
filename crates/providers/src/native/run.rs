//! Running an action: build, send, read.

use std::time::Duration;

use catalog::Integration;
use catalog::auth::{AuthScheme, Send};
use connections::Usable;
use egress::{Egress, EgressError, RateLimit, Redirects, Request, Response, Retry};
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use kernel::ConnectionId;
use serde_json::{Map, Value};
use tools::{Invocation, RunError, Runner, ToolResult};

use super::idempotency::Keyed;
use super::load::Service;
use super::operation::{BuildError, Built, Operation};
use super::{Native, reply};
use crate::TimeLimits;

const MAX_REDIRECTS: u8 = 3;

impl Runner for Native {
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> BoxFuture<'a, Result<ToolResult, RunError>> {
        Box::pin(async move {
            let service = self.services.get(&invocation.integration.key).ok_or_else(|| missing(invocation))?;
            run(&self.egress, &self.limits, service, invocation).await
        })
    }
}

/// A request for one account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub(super) integration: &'a Integration,
    pub(super) connection: ConnectionId,
    pub(super) usable: &'a Usable,
    pub(super) arguments: &'a Map<String, Value>,
    /// One more header.
    pub(super) header: Option<(&'a HeaderName, &'a str)>,
    pub(super) retry: Retry,
    /// How long the service has.
    pub(super) limit: Duration,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    Build(BuildError),
    Unreachable(EgressError),
}

/// Runs an action of a service: builds its request, sends it and reads the answer.
pub(crate) async fn run(
    egress: &Egress,
    limits: &TimeLimits,
    service: &Service,
    invocation: Invocation<'_>,
) -> Result<ToolResult, RunError> {
    let Invocation { integration, action, arguments, connection, usable, .. } = invocation;
    let call = service.calls.get(&action.key).ok_or_else(|| missing(invocation))?;
    let keyed = Keyed::new(call.key.as_ref(), invocation.idempotency_key, arguments);
    let (header, retry, limit) = (keyed.header, keyed.retry, limits.of(integration));
    let ask = Ask { integration, connection, usable, arguments: &keyed.arguments, header, retry, limit };
    let response = ask_for(egress, service, &call.operation, ask).await.map_err(|error| match error {
        Unanswered::Build(BuildError::Address(error)) => RunError::Connection(error.to_string()),
        Unanswered::Build(other) => RunError::Arguments(other.to_string()),
        Unanswered::Unreachable(error) => RunError::Unreachable(error),
    })?;
    let scrub = |text: String| usable.fields.scrub(&text);
    match reply::read(&response, service.failure.as_ref(), call.result.as_deref()) {
        Ok(result) => {
            let error = result.error.map(|error| lacking(response.status, usable, &action.scopes, scrub(error)));
            Ok(ToolResult { error, ..result })
        }
        Err(RunError::Unauthorized(text)) => Err(RunError::Unauthorized(scrub(text))),
        Err(RunError::Upstream(text)) => Err(RunError::Upstream(scrub(text))),
        Err(RunError::Server { status, message }) => Err(RunError::Server { status, message: scrub(message) }),
        Err(other) => Err(other),
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
pub(super) fn needs<T: AsRef<str>>(scopes: &[T]) -> String {
    let scopes: Vec<String> = scopes.iter().map(|scope| format!("`{}`", scope.as_ref())).collect();
    format!("the connection needs the scope {}; name scopes when you connect", scopes.join(", "))
}

pub(crate) fn missing(invocation: Invocation<'_>) -> RunError {
    RunError::Upstream(format!("`{}` is not here any more", invocation.action.key))
}

/// Builds and sends a request with the account's credential, within the integration's rate limit.
pub(super) async fn ask_for(egress: &Egress, service: &Service, operation: &Operation, ask: Ask<'_>) -> Result<Response, Unanswered> {
    let Ask { integration, connection, usable, arguments, header, retry, limit } = ask;
    let base_url = usable.scheme.as_ref().and_then(|scheme| scheme.base_url()).unwrap_or(&service.base_url);
    let send = usable.scheme.as_deref().map_or_else(|| Send::nothing(), AuthScheme::send);
    let built = operation.build(base_url, send, arguments, &usable.fields).map_err(Unanswered::Build)?;
    let mut request = request(built, limit).retry(retry);
    if let Some((name, text)) = header {
        let value = HeaderValue::from_str(text).map_err(|_| Unanswered::Build(BuildError::BadHeader(name.to_string())))?;
        request.headers.entry(name).or_insert(value);
    }
    request.limit = integration.rate_limit.map(|limit| RateLimit {
        key: connection.to_string(),
        requests: limit.requests,
        per: Duration::from_secs(limit.seconds.into()),
    });
    egress.send(request).await.map_err(Unanswered::Unreachable)
}

pub(super) fn request(built: Built, limit: Duration) -> Request {
    let follow = matches!(built.method, Method::GET | Method::HEAD);
    let mut request = Request::new(built.method, built.url).timeout(limit).retry(Retry::Safe).body(built.body);
    request.headers = built.headers;
    if follow { request.redirects(Redirects::Follow(MAX_REDIRECTS)) } else { request }
}
