//! Running an action: build, send, read.

use std::time::Duration;

use catalog::auth::{AuthScheme, Send};
use egress::{RateLimit, Redirects, Request, Retry};
use futures_util::future::BoxFuture;
use http::Method;
use tools::{Invocation, RunError, Runner, ToolResult};

use super::operation::{BuildError, Built};
use super::{Native, reply};

/// Shorter than the callers' own limit, so that they hear why.
const TIMEOUT: Duration = Duration::from_secs(25);
const MAX_REDIRECTS: u8 = 3;

impl Runner for Native {
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> BoxFuture<'a, Result<ToolResult, RunError>> {
        Box::pin(self.run_action(invocation))
    }
}

impl Native {
    async fn run_action(&self, invocation: Invocation<'_>) -> Result<ToolResult, RunError> {
        let Invocation { integration, action, arguments, connection, usable } = invocation;
        let missing = || RunError::Upstream(format!("`{}` is not here any more", action.key));
        let service = self.services.get(&integration.key).ok_or_else(missing)?;
        let call = service.calls.get(&action.key).ok_or_else(missing)?;
        let base_url = usable.scheme.as_ref().and_then(|scheme| scheme.base_url()).unwrap_or(&service.base_url);
        let send = usable.scheme.as_deref().map_or_else(|| Send::nothing(), AuthScheme::send);
        let built = call.operation.build(base_url, send, arguments, &usable.fields).map_err(|error| match error {
            BuildError::Address(error) => RunError::Connection(error.to_string()),
            other => RunError::Arguments(other.to_string()),
        })?;
        let mut request = request(built);
        request.limit = integration.rate_limit.map(|limit| RateLimit {
            key: connection.to_string(),
            requests: limit.requests,
            per: Duration::from_secs(limit.seconds.into()),
        });
        let response = self.egress.send(request).await.map_err(RunError::Unreachable)?;
        let result = reply::read(&response, service.failure.as_ref(), call.result.as_deref());
        let scrub = |text: String| usable.fields.scrub(&text);
        match result {
            Ok(result) => Ok(ToolResult { error: result.error.map(scrub), ..result }),
            Err(RunError::Unauthorized(text)) => Err(RunError::Unauthorized(scrub(text))),
            Err(RunError::Upstream(text)) => Err(RunError::Upstream(scrub(text))),
            Err(RunError::Server { status, message }) => Err(RunError::Server { status, message: scrub(message) }),
            Err(other) => Err(other),
        }
    }
}

pub(super) fn request(built: Built) -> Request {
    let follow = matches!(built.method, Method::GET | Method::HEAD);
    let mut request = Request::new(built.method, built.url).timeout(TIMEOUT).retry(Retry::Safe).body(built.body);
    request.headers = built.headers;
    if follow { request.redirects(Redirects::Follow(MAX_REDIRECTS)) } else { request }
}
