//! `/agents/{agent_id}/tools` and `/agents/{agent_id}/history`

use agents::RequestedTool;
use axum::extract::State;
use document::{IntoParams, ToSchema};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::bodies::{AgentBody, HistoryBody, Tagged};
use super::{agent_ref, precondition};
use crate::App;
use crate::edge::auth::{EditAgents, ViewAgents};
use crate::edge::{ApiResult, Json, PathOf, Payload, QueryOf, Scoped};

/// An app to assign.
// What is wrong with it is told as a rejection, like that of a list, so every object can be read.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(from = "Map<String, Value>")]
pub struct AssignTool {
    /// A stable id, a name or a catalog id; `app_name` does as well.
    #[schema(value_type = Option<Value>, example = "github")]
    id: Option<Value>,
    #[schema(value_type = Option<String>)]
    app_name: Option<Value>,
    /// More is more preferred.
    #[schema(value_type = Option<i64>)]
    priority: Option<Value>,
    /// `provider`, `connection`, `access` (`full` or `read_only`), `allow`, `deny`, `permission`, and `meta`, which is yours.
    #[schema(value_type = Option<Object>)]
    config: Option<Value>,
    #[schema(ignore)]
    unknown: Option<String>,
}

impl From<Map<String, Value>> for AssignTool {
    fn from(fields: Map<String, Value>) -> Self {
        let mut tool = Self::default();
        for (name, value) in fields {
            match name.as_str() {
                "id" => tool.id = Some(value),
                "app_name" => tool.app_name = Some(value),
                "priority" => tool.priority = Some(value),
                "config" => tool.config = Some(value),
                _ => drop(tool.unknown.get_or_insert(name)),
            }
        }
        tool
    }
}

impl From<AssignTool> for RequestedTool {
    fn from(tool: AssignTool) -> Self {
        let AssignTool { id, app_name, priority, config, unknown } = tool;
        Self { name: id.or(app_name).unwrap_or_default(), priority, config, unknown }
    }
}

/// An entry of a list of tools: an object, or what names the app alone.
pub(super) fn requested(item: Value) -> RequestedTool {
    match item {
        Value::Object(fields) => AssignTool::from(fields).into(),
        name => RequestedTool { name, ..RequestedTool::default() },
    }
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
#[document::path(post, path = "/agents/{agent_id}/tools", operation_id = "add_agent_tool", tag = "Agents", security(("key" = ["edit_agents"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path), ("If-Match" = Option<String>, Header)), request_body = AssignTool,
    responses((status = 200, body = AgentBody), (status = 404, description = "No such agent"), (status = 412, description = "It changed meanwhile"),
        (status = 422, description = "An app that cannot be assigned, or a config that cannot be read")))]
pub(crate) async fn add(
    Scoped(scope, _): Scoped<EditAgents>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    Payload(tool): Payload<AssignTool>,
) -> ApiResult<Tagged> {
    Ok(app.agents.add_tool(scope, agent_ref(&id)?, &tool.into(), &precondition(&headers)).await?.into())
}

/// Take one app away
#[document::path(delete, path = "/agents/{agent_id}/tools/{tool}", operation_id = "remove_agent_tool", tag = "Agents", security(("key" = ["edit_agents"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path), ("tool" = String, Path, description = "A stable id, a name or a catalog id"), ("If-Match" = Option<String>, Header)),
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
#[document::path(get, path = "/agents/{agent_id}/history", operation_id = "list_agent_history", tag = "Agents", security(("key" = ["view_agents"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path), ListHistory), responses((status = 200, body = HistoryAnswer), (status = 404, description = "No such agent")))]
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
