//! `/mcp`: the same tools for clients of the Model Context Protocol.

mod access;
pub mod agent;
pub mod conformance;
pub mod metadata;
pub mod project;
pub mod session;
pub mod tool_router;

use std::convert::Infallible;
use std::sync::Arc;

use ::mcp::{Answer, Approver, Domains, SearchMode, Searchable, Surface};
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use document::{IntoParams, ToSchema};
use futures_util::StreamExt;
use http::{HeaderName, HeaderValue, StatusCode, header};
use kernel::json::{Unread, parse};
use kernel::{Budget, Permission, ProjectId, Scope};
use serde::Deserialize;
use serde_json::Value;

use crate::edge::extract::read_body;
use crate::edge::{ApiError, ApiResult, Json};
use crate::{App, addresses};

const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A message or an answer of JSON-RPC, or several of them; an answer may also be a plain error.
#[derive(Debug, ToSchema)]
#[schema(value_type = Value)]
pub struct JsonRpcBody(pub Value);

/// How the tools are shown.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct McpMode {
    /// `search` shows three tools in place of all: find, call, connect.
    #[param(inline, required = false, value_type = crate::shapes::ModeWord)]
    mode: Option<String>,
}

impl McpMode {
    /// The surface as the client wants to see it.
    fn show<S: Searchable + 'static>(&self, surface: S) -> ApiResult<Arc<dyn Surface>> {
        match self.mode.as_deref() {
            None | Some("" | "all") => Ok(Arc::new(surface)),
            Some("search") => Ok(Arc::new(SearchMode(Arc::new(surface)))),
            Some(_) => Err(ApiError::unprocessable("`mode` must be `all` or `search`.")),
        }
    }
}

pub(crate) fn approver(app: &App, scope: Scope) -> Approver {
    Approver {
        domains: Domains {
            clock: app.clock.clone(),
            catalog: app.catalog.clone(),
            connections: app.connections.clone(),
            workflows: app.workflows.clone(),
            calls: app.calls.clone(),
        },
        scope,
        signer: app.signer.clone(),
        approvals_url: addresses::approvals(app.options.public_url()),
        may_approve: scope.may(Permission::EditTools),
    }
}

/// A message of a client, or why its body is none.
async fn message(app: &App, project: ProjectId, request: Request) -> ApiResult<Result<Value, String>> {
    let body = read_body(request, app.options.body_limit).await?;
    let size = body.len();
    let read = move |budget: &Budget| match parse(&body, budget) {
        Ok(message) => Ok(Ok(message)),
        Err(Unread::Json(error)) => Ok(Err(error.to_string())),
        Err(Unread::Exceeded(why)) => Err(ApiError::from(why)),
    };
    app.workers.run(project, size, read).await
}

/// An answer to a key, whose streams end with it.
fn respond_to(app: &App, scope: Scope, answer: Answer) -> Response {
    respond(match answer {
        Answer::Events(events) => {
            let keys = app.accounts.authenticator().clone();
            Answer::Events(events.take_until(Box::pin(async move { keys.ended(scope.key).await })).boxed())
        }
        other => other,
    })
}

/// An answer of the protocol as a response.
fn respond(answer: Answer) -> Response {
    match answer {
        Answer::Accepted => StatusCode::ACCEPTED.into_response(),
        Answer::Json { status, body, session } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let mut response = (status, Json(body)).into_response();
            if let Some(session) = session.and_then(|session| HeaderValue::from_str(&session).ok()) {
                response.headers_mut().insert(::mcp::header::SESSION_ID, session);
            }
            response
        }
        Answer::Events(events) => {
            let headers = [
                (header::CONTENT_TYPE, "text/event-stream"),
                (header::CACHE_CONTROL, "no-cache, no-transform"),
                // What a proxy would hold back, the client would hear too late.
                (BUFFERING, "no"),
            ];
            (headers, Body::from_stream(events.map(Ok::<_, Infallible>))).into_response()
        }
    }
}
