//! `/agents/{agent_id}/tools` and `/agents/{agent_id}/history`

use axum::Json;
use axum::extract::State;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::bodies::{AgentBody, HistoryBody, Tagged};
use super::{agent_ref, precondition};
use crate::App;
use crate::edge::auth::{EditAgents, ViewAgents};
use crate::edge::{ApiResult, PathOf, Payload, QueryOf, Scoped};

/// An app to assign.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "the document describes what the domain reads")]
pub struct AssignTool {
    /// A stable id, a name or a catalog id; `app_name` does as well.
    #[schema(value_type = Option<Object>, example = "github")]
    id: Option<Value>,
    app_name: Option<String>,
    /// More is more preferred.
    priority: Option<i64>,
    /// `provider`, `connection`, `access` (`full` or `read_only`), `allow`, `deny`, `permission`, and `meta`, which is yours.
    #[schema(value_type = Option<Object>)]
    config: Option<Map<String, Value>>,
}

/// What happened to an agent, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct HistoryAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub history: Vec<HistoryBody>,
}

/// Which lines to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListHistory {
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    pub cursor: Option<Uuid>,
}

/// Assign one app, or change the settings of one that is assigned
#[utoipa::path(post, path = "/agents/{agent_id}/tools", operation_id = "add_agent_tool", tag = "Agents", security(("key" = ["edit_agents"])),
    params(("agent_id" = String, Path), ("If-Match" = Option<String>, Header)), request_body = AssignTool,
    responses((status = 200, body = AgentBody), (status = 404, description = "No such agent"), (status = 412, description = "It changed meanwhile"),
        (status = 422, description = "An app that cannot be assigned, or a config that cannot be read")))]
pub(crate) async fn add(
    Scoped(scope, _): Scoped<EditAgents>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    Payload(item): Payload<Map<String, Value>>,
) -> ApiResult<Tagged> {
    Ok(app.agents.add_tool(scope, agent_ref(&id)?, &Value::Object(item), &precondition(&headers)).await?.into())
}

/// Take one app away
#[utoipa::path(delete, path = "/agents/{agent_id}/tools/{tool}", operation_id = "remove_agent_tool", tag = "Agents", security(("key" = ["edit_agents"])),
    params(("agent_id" = String, Path), ("tool" = String, Path, description = "A stable id, a name or a catalog id"), ("If-Match" = Option<String>, Header)),
    responses((status = 200, body = AgentBody), (status = 404, description = "No such agent, or the app is not assigned"), (status = 412, description = "It changed meanwhile")))]
pub(crate) async fn remove(
    Scoped(scope, _): Scoped<EditAgents>,
    State(app): State<App>,
    PathOf((id, tool)): PathOf<(String, String)>,
    headers: HeaderMap,
) -> ApiResult<Tagged> {
    Ok(app.agents.remove_tool(scope, agent_ref(&id)?, &tool, &precondition(&headers)).await?.into())
}

/// See who changed what, newest first
///
/// An agent that was deleted still has its history.
#[utoipa::path(get, path = "/agents/{agent_id}/history", operation_id = "list_agent_history", tag = "Agents", security(("key" = ["view_agents"])),
    params(("agent_id" = String, Path), ListHistory), responses((status = 200, body = HistoryAnswer), (status = 404, description = "No such agent")))]
pub(crate) async fn history(
    Scoped(scope, _): Scoped<ViewAgents>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    QueryOf(list): QueryOf<ListHistory>,
) -> ApiResult<Json<HistoryAnswer>> {
    let page = app.agents.history(scope, agent_ref(&id)?, list.limit, list.cursor).await?;
    let history: Vec<HistoryBody> = page.entries.into_iter().map(Into::into).collect();
    Ok(Json(HistoryAnswer { count: history.len(), cursor: page.cursor, history }))
}
