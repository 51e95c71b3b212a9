//! `/mcp/sessions/{session_id}`: the tools of one end user's session.

use ::mcp::Answer;
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::StreamExt;
use http::HeaderMap;
use user_sessions::UserSession;

use super::access::check_origin;
use super::{JsonRpcBody, message, respond};
use crate::App;
use crate::edge::ApiResult;
use crate::end_users::InSession;
use crate::end_users::session_tools::shown;

/// Speak the Model Context Protocol with the tools of a session
///
/// The same as `/mcp`, with exactly what the session lets its end user use, through accounts of theirs.
#[document::path(post, path = "/mcp/sessions/{session_id}", operation_id = "mcp_session", tag = "MCP", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path)), request_body(content = JsonRpcBody, description = "A JSON-RPC message, or several"),
    responses((status = 200, body = JsonRpcBody, description = "The answer, as JSON or as a stream of events"), (status = 202, description = "Taken"),
        (status = 400, body = JsonRpcBody, description = "Not a message, or of a revision that is not spoken here"), (status = 401, description = "The session ended, or this is not its token"),
        (status = 403, description = "A page of another origin asks"), (status = 404, body = JsonRpcBody, description = "No such session or method")))]
pub(crate) async fn post(
    InSession(session, scope): InSession,
    State(app): State<App>,
    headers: HeaderMap,
    request: Request,
) -> ApiResult<Response> {
    check_origin(&app, &headers)?;
    let message = message(&app, scope.project, request).await?;
    let surface = shown(&app, &session, scope);
    Ok(while_it_holds(&app, session, app.mcp.post(scope.key.uuid(), &headers, surface, message).await))
}

/// Hear of changes of a session's list, in revisions before 2026-07-28
#[document::path(get, path = "/mcp/sessions/{session_id}", operation_id = "mcp_session_changes", tag = "MCP", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path)),
    responses((status = 200, description = "A stream of events"), (status = 401, description = "The session ended, or this is not its token"),
        (status = 404, description = "No such session"), (status = 405, description = "A newer revision, which posts `subscriptions/listen`"),
        (status = 406, description = "The client takes no events"), (status = 429, description = "The session listens on as many streams as it may")))]
pub(crate) async fn changes(InSession(session, scope): InSession, State(app): State<App>, headers: HeaderMap) -> ApiResult<Response> {
    check_origin(&app, &headers)?;
    let surface = shown(&app, &session, scope);
    Ok(while_it_holds(&app, session, app.mcp.changes(scope.key.uuid(), &headers, surface).await))
}

/// An answer whose streams end with the session.
fn while_it_holds(app: &App, session: UserSession, answer: Answer) -> Response {
    respond(match answer {
        Answer::Events(events) => {
            let sessions = app.user_sessions.clone();
            Answer::Events(events.take_until(Box::pin(async move { sessions.ended(session).await })).boxed())
        }
        other => other,
    })
}
