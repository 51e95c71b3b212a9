//! `/mcp`: the tools of the key's project.

use ::mcp::ProjectTools;
use axum::extract::{Request, State};
use axum::response::Response;
use http::HeaderMap;

use super::access::Access;
use super::{JsonRpcBody, McpMode, approver, message, respond_to};
use crate::App;
use crate::edge::auth::RunTools;
use crate::edge::{ApiResult, QueryOf};

/// Speak the Model Context Protocol with the tools of the project
///
/// Streamable HTTP, revisions 2025-03-26 to 2026-07-28. The tools are the actions of every connection that can be used, and the workflows.
#[document::path(post, path = "/mcp", operation_id = "mcp", tag = "MCP", security(("key" = ["run_tools"])), params(McpMode),
    request_body(content = JsonRpcBody, description = "A JSON-RPC message, or several"),
    responses((status = 200, body = JsonRpcBody, description = "The answer, as JSON or as a stream of events"), (status = 202, description = "Taken"),
        (status = 400, body = JsonRpcBody, description = "Not a message, or of a revision that is not spoken here"), (status = 401, description = "No key, or a bad one"),
        (status = 403, description = "The key may not run tools, or a page of another origin asks"), (status = 404, body = JsonRpcBody, description = "No such method")))]
pub(crate) async fn post(
    Access(scope, _): Access<RunTools>,
    State(app): State<App>,
    QueryOf(mode): QueryOf<McpMode>,
    headers: HeaderMap,
    request: Request,
) -> ApiResult<Response> {
    let message = message(&app, scope.project, request).await?;
    let surface = mode.show(tools(&app, scope))?;
    Ok(respond_to(&app, scope, app.mcp.post(scope.key.uuid(), &headers, surface, message).await))
}

/// Hear of changes of the list, in revisions before 2026-07-28
#[document::path(get, path = "/mcp", operation_id = "mcp_changes", tag = "MCP", security(("key" = ["run_tools"])), params(McpMode),
    responses((status = 200, description = "A stream of events"), (status = 401, description = "No key, or a bad one"),
        (status = 405, description = "A newer revision, which posts `subscriptions/listen`"), (status = 406, description = "The client takes no events"),
        (status = 429, description = "The key listens on as many streams as it may")))]
pub(crate) async fn changes(
    Access(scope, _): Access<RunTools>,
    State(app): State<App>,
    QueryOf(mode): QueryOf<McpMode>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let surface = mode.show(tools(&app, scope))?;
    Ok(respond_to(&app, scope, app.mcp.changes(scope.key.uuid(), &headers, surface).await))
}

fn tools(app: &App, scope: kernel::Scope) -> ProjectTools {
    ProjectTools { approver: approver(app, scope), limit: app.options.run_limit() }
}
