//! `/mcp/agents/{agent_id}`: the tools of one agent.

use std::sync::Arc;

use ::mcp::AgentTools;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::{Extension, Router};
use http::HeaderMap;
use kernel::Scope;

use super::access::Access;
use super::{JsonRpcBody, McpMode, approver, message, respond_to};
use crate::App;
use crate::agents::agent_ref;
use crate::edge::auth::RunAgentTools;
use crate::edge::{ApiResult, PathOf, QueryOf};
use crate::tools::ops::{Inside, Own};

/// Speak the Model Context Protocol with the tools of an agent
///
/// The same as `/mcp`, with exactly the tools that the agent may use right now. The key needs `run_agents` and `run_tools`.
#[document::path(post, path = "/mcp/agents/{agent_id}", operation_id = "mcp_agent", tag = "MCP", security(("key" = ["run_agents", "run_tools"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path), McpMode), request_body(content = JsonRpcBody, description = "A JSON-RPC message, or several"),
    responses((status = 200, body = JsonRpcBody, description = "The answer, as JSON or as a stream of events"), (status = 202, description = "Taken"),
        (status = 400, body = JsonRpcBody, description = "Not a message, or of a revision that is not spoken here"), (status = 401, description = "No key, or a bad one"),
        (status = 403, description = "The key may not run agents or may not run tools, or a page of another origin asks"), (status = 404, body = JsonRpcBody, description = "No such agent or method")))]
pub(crate) async fn post(
    Access(scope, _): Access<RunAgentTools>,
    State(app): State<App>,
    Extension(Inside(router)): Extension<Inside>,
    PathOf(id): PathOf<String>,
    QueryOf(mode): QueryOf<McpMode>,
    headers: HeaderMap,
    request: Request,
) -> ApiResult<Response> {
    let surface = mode.show(tools(&app, scope, &id, router, &headers).await?)?;
    let message = message(&app, scope.project, request).await?;
    Ok(respond_to(&app, scope, app.mcp.post(scope.key.uuid(), &headers, surface, message).await))
}

/// Hear of changes of an agent's list, in revisions before 2026-07-28
#[document::path(get, path = "/mcp/agents/{agent_id}", operation_id = "mcp_agent_changes", tag = "MCP", security(("key" = ["run_agents", "run_tools"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path), McpMode),
    responses((status = 200, description = "A stream of events"), (status = 401, description = "No key, or a bad one"), (status = 404, description = "No such agent"),
        (status = 405, description = "A newer revision, which posts `subscriptions/listen`"), (status = 406, description = "The client takes no events"),
        (status = 429, description = "The key listens on as many streams as it may")))]
pub(crate) async fn changes(
    Access(scope, _): Access<RunAgentTools>,
    State(app): State<App>,
    Extension(Inside(router)): Extension<Inside>,
    PathOf(id): PathOf<String>,
    QueryOf(mode): QueryOf<McpMode>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let surface = mode.show(tools(&app, scope, &id, router, &headers).await?)?;
    Ok(respond_to(&app, scope, app.mcp.changes(scope.key.uuid(), &headers, surface).await))
}

async fn tools(app: &App, scope: Scope, id: &str, router: Router, headers: &HeaderMap) -> ApiResult<AgentTools> {
    let agent = agent_ref(id)?;
    app.agents.read(scope, agent).await?;
    let routes = Arc::new(Own { scope, router, headers: headers.clone() });
    Ok(AgentTools {
        agents: app.agents.clone(),
        agent,
        approver: approver(app, scope),
        routes,
        limit: app.options.run_limit(),
        has_ops: true,
    })
}
