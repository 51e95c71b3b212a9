//! `/mcp/agents/{agent_id}`: the tools of one agent.

use std::sync::Arc;

use ::mcp::AgentTools;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::{Extension, Router};
use http::HeaderMap;
use kernel::Scope;

use super::access::Access;
use super::{Mode, approver, respond};
use crate::App;
use crate::agents::agent_ref;
use crate::edge::auth::RunAgents;
use crate::edge::extract::read_body;
use crate::edge::{ApiResult, PathOf, QueryOf};
use crate::tools::ops::{Inside, Own};

/// Speak the Model Context Protocol with the tools of an agent
///
/// The same as `/mcp`, with exactly the tools that the agent may use right now.
#[utoipa::path(post, path = "/mcp/agents/{agent_id}", operation_id = "mcp_agent", tag = "MCP", security(("key" = ["run_agents"])),
    params(("agent_id" = String, Path), Mode), request_body(content = Object, description = "A JSON-RPC message"),
    responses((status = 200, body = Object, description = "The answer, as JSON or as a stream of events"), (status = 202, description = "Taken"),
        (status = 400, description = "Not a message, or of a revision that is not spoken here"), (status = 401, description = "No key, or a bad one"),
        (status = 403, description = "The key may not run agents, or a page of another origin asks"), (status = 404, description = "No such agent or method")))]
pub(crate) async fn post(
    Access(scope, _): Access<RunAgents>,
    State(app): State<App>,
    Extension(Inside(router)): Extension<Inside>,
    PathOf(id): PathOf<String>,
    QueryOf(mode): QueryOf<Mode>,
    headers: HeaderMap,
    request: Request,
) -> ApiResult<Response> {
    let surface = mode.show(tools(&app, scope, &id, router, &headers).await?)?;
    let body = read_body(request, app.options.body_limit).await?;
    Ok(respond(app.mcp.post(scope.key.uuid(), &headers, surface, &body).await))
}

/// Hear of changes of an agent's list, in revisions before 2026-07-28
#[utoipa::path(get, path = "/mcp/agents/{agent_id}", operation_id = "mcp_agent_changes", tag = "MCP", security(("key" = ["run_agents"])),
    params(("agent_id" = String, Path), Mode),
    responses((status = 200, description = "A stream of events"), (status = 401, description = "No key, or a bad one"), (status = 404, description = "No such agent"),
        (status = 405, description = "A newer revision, which posts `subscriptions/listen`"), (status = 406, description = "The client takes no events"),
        (status = 429, description = "The key listens on as many streams as it may")))]
pub(crate) async fn changes(
    Access(scope, _): Access<RunAgents>,
    State(app): State<App>,
    Extension(Inside(router)): Extension<Inside>,
    PathOf(id): PathOf<String>,
    QueryOf(mode): QueryOf<Mode>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let surface = mode.show(tools(&app, scope, &id, router, &headers).await?)?;
    Ok(respond(app.mcp.changes(scope.key.uuid(), &headers, surface).await))
}

async fn tools(app: &App, scope: Scope, id: &str, router: Router, headers: &HeaderMap) -> ApiResult<AgentTools> {
    let agent = agent_ref(id)?;
    app.agents.read(scope, agent).await?;
    let routes = Arc::new(Own { router, headers: headers.clone() });
    Ok(AgentTools { agents: app.agents.clone(), agent, approver: approver(app, scope), routes, limit: app.options.run_limit() })
}
