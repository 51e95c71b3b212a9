//! `/mcp`: the tools of the key's project.

use ::mcp::ProjectTools;
use axum::extract::{Request, State};
use axum::response::Response;
use http::HeaderMap;

use super::access::Access;
use super::{Mode, approver, respond};
use crate::App;
use crate::edge::auth::RunTools;
use crate::edge::extract::read_body;
use crate::edge::{ApiResult, QueryOf};

/// Speak the Model Context Protocol with the tools of the project
///
/// Streamable HTTP, revisions 2025-03-26 to 2026-07-28. The tools are the actions of every connection that can be used, and the workflows.
#[utoipa::path(post, path = "/mcp", operation_id = "mcp", tag = "MCP", security(("key" = ["run_tools"])), params(Mode),
    request_body(content = Object, description = "A JSON-RPC message"),
    responses((status = 200, body = Object, description = "The answer, as JSON or as a stream of events"), (status = 202, description = "Taken"),
        (status = 400, description = "Not a message, or of a revision that is not spoken here"), (status = 401, description = "No key, or a bad one"),
        (status = 403, description = "The key may not run tools, or a page of another origin asks"), (status = 404, description = "No such method")))]
pub(crate) async fn post(
    Access(scope, _): Access<RunTools>,
    State(app): State<App>,
    QueryOf(mode): QueryOf<Mode>,
    headers: HeaderMap,
    request: Request,
) -> ApiResult<Response> {
    let body = read_body(request, app.options.body_limit).await?;
    let surface = mode.show(tools(&app, scope))?;
    Ok(respond(app.mcp.post(scope.key.uuid(), &headers, surface, &body).await))
}

/// Hear of changes of the list, in revisions before 2026-07-28
#[utoipa::path(get, path = "/mcp", operation_id = "mcp_changes", tag = "MCP", security(("key" = ["run_tools"])), params(Mode),
    responses((status = 200, description = "A stream of events"), (status = 401, description = "No key, or a bad one"),
        (status = 405, description = "A newer revision, which posts `subscriptions/listen`"), (status = 406, description = "The client takes no events"),
        (status = 429, description = "The key listens on as many streams as it may")))]
pub(crate) async fn changes(
    Access(scope, _): Access<RunTools>,
    State(app): State<App>,
    QueryOf(mode): QueryOf<Mode>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let surface = mode.show(tools(&app, scope))?;
    Ok(respond(app.mcp.changes(scope.key.uuid(), &headers, surface).await))
}

fn tools(app: &App, scope: kernel::Scope) -> ProjectTools {
    ProjectTools { approver: approver(app, scope), limit: app.options.run_limit() }
}
