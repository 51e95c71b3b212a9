//! `/tool_router/{session_id}/mcp`: the tools of a session of the tool router, for whoever shows a key of the project in `x-api-key`.

use std::sync::Arc;

use ::mcp::{Answer, Surface};
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use composio_api::sessions::{OpenSession, SessionSurface};
use futures_util::StreamExt;
use http::HeaderMap;
use http::request::Parts;
use kernel::Scope;

use super::access::check_origin;
use super::{JsonRpcBody, message, respond};
use crate::App;
use crate::composio_api::{Failure, take_key};
use crate::edge::auth::{KeyOnly, RunTools};
use crate::edge::{ApiError, ApiResult, Code, PathOf, Scoped};

/// What a key may do that a client of the protocol shows; a browser's cookie is not meant for it.
#[derive(Debug)]
pub(crate) struct ShownKey(Scope);

impl FromRequestParts<App> for ShownKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        check_origin(app, &parts.headers)?;
        take_key(parts);
        parts.extensions.insert(KeyOnly);
        let Scoped(scope, _) = Scoped::<RunTools>::from_request_parts(parts, app).await?;
        Ok(Self(scope))
    }
}

/// Speak the Model Context Protocol with the tools of a session of the tool router
///
/// The same as `/mcp`, with exactly the tools that the session lists, under their slugs.
#[document::path(post, path = "/tool_router/{router_session_id}/mcp", operation_id = "mcp_tool_router", tag = "MCP",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)),
    request_body(content = JsonRpcBody, description = "A JSON-RPC message, or several"),
    responses((status = 200, body = JsonRpcBody, description = "The answer, as JSON or as a stream of events"), (status = 202, description = "Taken"),
        (status = 400, body = JsonRpcBody, description = "Not a message, or of a revision that is not spoken here"), (status = 401, description = "No key, or a bad one"),
        (status = 403, description = "The key may not run tools, or a page of another origin asks"), (status = 404, body = JsonRpcBody, description = "No such session or method")))]
pub(crate) async fn post(
    ShownKey(scope): ShownKey,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    request: Request,
) -> ApiResult<Response> {
    let session = open(&app, scope, &id).await?;
    let message = message(&app, scope.project, request).await?;
    let answer = app.mcp.post(scope.key.uuid(), &headers, surface(&app, scope, &session), message).await;
    Ok(while_it_holds(&app, scope, session, answer))
}

/// Hear of changes of the list, in revisions before 2026-07-28
#[document::path(get, path = "/tool_router/{router_session_id}/mcp", operation_id = "mcp_tool_router_changes", tag = "MCP",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("router_session_id" = String, Path)),
    responses((status = 200, description = "A stream of events"), (status = 401, description = "No key, or a bad one"), (status = 404, description = "No such session"),
        (status = 405, description = "A newer revision, which posts `subscriptions/listen`"), (status = 406, description = "The client takes no events"),
        (status = 429, description = "The key listens on as many streams as it may")))]
pub(crate) async fn changes(
    ShownKey(scope): ShownKey,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let session = open(&app, scope, &id).await?;
    let answer = app.mcp.changes(scope.key.uuid(), &headers, surface(&app, scope, &session)).await;
    Ok(while_it_holds(&app, scope, session, answer))
}

async fn open(app: &App, scope: Scope, id: &str) -> ApiResult<OpenSession> {
    app.composio_api.open_session(scope, id).await.map_err(|error| match error.into() {
        Failure::Refused(refusal) => ApiError::new(Code::UserSessionNotFound, refusal.message),
        Failure::Edge(error) => error,
    })
}

fn surface(app: &App, scope: Scope, session: &OpenSession) -> Arc<dyn Surface> {
    Arc::new(SessionSurface::new(app.composio_api.clone(), scope, session.clone(), app.options.run_limit()))
}

/// An answer whose streams end with the session, and with the key that opened it.
fn while_it_holds(app: &App, scope: Scope, session: OpenSession, answer: Answer) -> Response {
    let answer = match answer {
        Answer::Events(events) => {
            let (sessions, keys) = (app.user_sessions.clone(), app.accounts.authenticator().clone());
            let ended = async move {
                tokio::select! {
                    () = sessions.ended(session.row().clone()) => {}
                    () = keys.ended(scope.key) => {}
                }
            };
            Answer::Events(events.take_until(Box::pin(ended)).boxed())
        }
        other => other,
    };
    respond(answer).into_response()
}
