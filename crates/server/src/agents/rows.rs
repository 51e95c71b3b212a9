//! `/agents`: make, list, read, change and delete agents.

use std::collections::BTreeMap;

use agents::AgentFilter;
use axum::extract::State;
use document::{IntoParams, ToSchema};
use http::header::LINK;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::PageSize;

use super::bodies::{AgentBody, AgentCreate, AgentUpdate, Tagged};
use super::{agent_ref, precondition};
use crate::App;
use crate::edge::auth::{EditAgents, ViewAgents};
use crate::edge::{ApiError, ApiResult, Code, Json, PathOf, Payload, QueryOf, Scoped, Unused};

const DEFAULT_LIMIT: i64 = 100;
const MAX_LIMIT: i64 = 1000;

/// Types that are suggested; any other word is a type too.
const TYPES: [(&str, &str); 8] = [
    ("assistant", "Helps one person with whatever comes up"),
    ("support", "Answers the questions of customers"),
    ("research", "Finds and sums up what is known"),
    ("engineering", "Works on code, issues and releases"),
    ("analyst", "Looks into data and reports on it"),
    ("operations", "Keeps systems and processes running"),
    ("sales", "Finds, writes to and follows up with customers"),
    ("custom", "Anything else"),
];

/// The types that are suggested.
#[derive(Debug, Serialize, ToSchema)]
pub struct TypesAnswer {
    pub data: Vec<&'static str>,
    pub descriptions: BTreeMap<&'static str, &'static str>,
}

/// How many agents there are.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatsAnswer {
    pub total_agents: i64,
    pub active_agents: i64,
    pub inactive_agents: i64,
    pub agents_by_type: BTreeMap<String, i64>,
    pub timestamp: String,
}

/// How one agent stands.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatusAnswer {
    pub agent_id: i64,
    pub name: String,
    pub status: &'static str,
    pub agent_type: String,
    pub priority_level: String,
    pub max_concurrent_tasks: i64,
    pub auto_start: bool,
    pub created_at: String,
    pub updated_at: String,
    #[schema(value_type = Object)]
    pub configuration: Map<String, Value>,
}

/// What was done.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageAnswer {
    pub message: String,
}

/// Which agents to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListAgents {
    /// How many to pass over; 0 by default.
    #[param(minimum = 0)]
    pub skip: Option<i64>,
    /// 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<i64>,
    #[param(inline, required = false, value_type = crate::shapes::AgentWord)]
    pub status: Option<String>,
    /// `ephemeral` agents are listed only when this asks for them.
    pub agent_type: Option<String>,
    pub priority_level: Option<String>,
    /// Part of a name or a description.
    pub search: Option<String>,
    #[param(ignore)]
    pub include_workspace_system: Unused,
}

/// List the suggested types
#[document::path(get, path = "/agents/types", operation_id = "list_agent_types", tag = "Agents", security(("key" = ["view_agents"])),
    responses((status = 200, body = TypesAnswer)))]
pub(crate) async fn types(_: Scoped<ViewAgents>) -> Json<TypesAnswer> {
    Json(TypesAnswer { data: TYPES.iter().map(|(name, _)| *name).collect(), descriptions: TYPES.into_iter().collect() })
}

/// Count agents
#[document::path(get, path = "/agents/stats", operation_id = "fetch_agent_stats", tag = "Agents", security(("key" = ["view_agents"])),
    responses((status = 200, body = StatsAnswer)))]
pub(crate) async fn stats(Scoped(scope, _): Scoped<ViewAgents>, State(app): State<App>) -> ApiResult<Json<StatsAnswer>> {
    let stats = app.agents.stats(scope).await?;
    Ok(Json(StatsAnswer {
        total_agents: stats.total,
        active_agents: stats.active,
        inactive_agents: stats.inactive,
        agents_by_type: stats.by_type,
        timestamp: stats.at.to_string(),
    }))
}

/// Make an agent
///
/// A tool that cannot be assigned fails the whole request, and the answer names every such tool.
#[document::path(post, path = "/agents", operation_id = "create_agent", tag = "Agents", security(("key" = ["edit_agents"])), request_body = AgentCreate,
    responses((status = 200, body = AgentBody), (status = 409, description = "The name is taken"), (status = 422, description = "A field or a tool that cannot be taken")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditAgents>,
    State(app): State<App>,
    Payload(body): Payload<AgentCreate>,
) -> ApiResult<Tagged> {
    Ok(app.agents.create(scope, body.into()).await?.into())
}

/// Make several agents, all or none
#[document::path(post, path = "/agents/bulk", operation_id = "create_agents", tag = "Agents", security(("key" = ["edit_agents"])), request_body = Vec<AgentCreate>,
    responses((status = 200, body = Vec<AgentBody>), (status = 409, description = "A name is taken"), (status = 422, description = "A field or a tool that cannot be taken")))]
pub(crate) async fn create_all(
    Scoped(scope, _): Scoped<EditAgents>,
    State(app): State<App>,
    Payload(bodies): Payload<Vec<AgentCreate>>,
) -> ApiResult<Json<Vec<AgentBody>>> {
    let made = app.agents.create_all(scope, bodies.into_iter().map(Into::into).collect()).await?;
    Ok(Json(made.into_iter().map(Into::into).collect()))
}

/// List agents, the oldest first
///
/// Where there are more, the header `link` leads to them; a page of large agents may end before its limit.
#[document::path(get, path = "/agents", operation_id = "list_agents", tag = "Agents", security(("key" = ["view_agents"])), params(ListAgents),
    responses((status = 200, body = Vec<AgentBody>)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewAgents>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListAgents>,
) -> ApiResult<(HeaderMap, Json<Vec<AgentBody>>)> {
    let (skip, limit) = (list.skip.unwrap_or(0), list.limit.unwrap_or(DEFAULT_LIMIT));
    if skip < 0 || !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::new(Code::LimitInvalid, format!("`skip` must be 0 or more and `limit` 1 to {MAX_LIMIT}.")));
    }
    let ListAgents { status, agent_type, priority_level, search, .. } = list;
    let search = search.filter(|search| !search.is_empty());
    let size = PageSize::within(Some(limit), DEFAULT_LIMIT, MAX_LIMIT);
    let found = app.agents.list(scope, &AgentFilter { skip, size, status, agent_type, priority_level, search }).await?;
    let mut headers = HeaderMap::new();
    let next = i64::try_from(found.rows.len()).unwrap_or(limit).saturating_add(skip);
    if found.more
        && let Ok(link) = HeaderValue::from_str(&format!("<?skip={next}&limit={limit}>; rel=\"next\""))
    {
        headers.insert(LINK, link);
    }
    Ok((headers, Json(found.rows.into_iter().map(Into::into).collect())))
}

/// Read an agent with its apps
#[document::path(get, path = "/agents/{agent_id}", operation_id = "fetch_agent", tag = "Agents", security(("key" = ["view_agents"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path, description = "Its number or its UUID")),
    responses((status = 200, body = AgentBody), (status = 404, description = "No such agent")))]
pub(crate) async fn fetch(Scoped(scope, _): Scoped<ViewAgents>, State(app): State<App>, PathOf(id): PathOf<String>) -> ApiResult<Tagged> {
    Ok(app.agents.get(scope, agent_ref(&id)?).await?.into())
}

/// See how an agent stands
#[document::path(get, path = "/agents/{agent_id}/status", operation_id = "fetch_agent_status", tag = "Agents", security(("key" = ["view_agents"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path)), responses((status = 200, body = StatusAnswer), (status = 404, description = "No such agent")))]
pub(crate) async fn status(
    Scoped(scope, _): Scoped<ViewAgents>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiResult<Json<StatusAnswer>> {
    let agent = app.agents.read(scope, agent_ref(&id)?).await?;
    Ok(Json(StatusAnswer {
        agent_id: agent.number,
        name: agent.name,
        status: agent.status.name(),
        agent_type: agent.agent_type,
        priority_level: agent.priority_level,
        max_concurrent_tasks: agent.max_concurrent_tasks,
        auto_start: agent.auto_start,
        created_at: agent.created_at.to_string(),
        updated_at: agent.updated_at.to_string(),
        configuration: agent.configuration,
    }))
}

/// Change an agent
///
/// What is left out stays. `tool_ids` is the whole list: an app that it leaves out is switched off, one that comes back gets its old row.
/// If one of the ids cannot be assigned, nothing is changed. With `If-Match`, only the version that it names is changed.
#[document::path(put, path = "/agents/{agent_id}", operation_id = "edit_agent", tag = "Agents", security(("key" = ["edit_agents"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path), ("If-Match" = Option<String>, Header, description = "The `ETag` of the version to change")), request_body = AgentUpdate,
    responses((status = 200, body = AgentBody), (status = 404, description = "No such agent"), (status = 409, description = "The name is taken"),
        (status = 412, description = "It changed meanwhile"), (status = 422, description = "A field or a tool that cannot be taken")))]
pub(crate) async fn edit(
    Scoped(scope, _): Scoped<EditAgents>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    Payload(body): Payload<AgentUpdate>,
) -> ApiResult<Tagged> {
    Ok(app.agents.update(scope, agent_ref(&id)?, body.into(), &precondition(&headers)).await?.into())
}

/// Delete an agent and its assignments
#[document::path(delete, path = "/agents/{agent_id}", operation_id = "delete_agent", tag = "Agents", security(("key" = ["edit_agents"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path), ("If-Match" = Option<String>, Header, description = "The `ETag` of the version to delete")),
    responses((status = 200, body = MessageAnswer), (status = 404, description = "No such agent"), (status = 412, description = "It changed meanwhile")))]
pub(crate) async fn delete(
    Scoped(scope, _): Scoped<EditAgents>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
) -> ApiResult<Json<MessageAnswer>> {
    let gone = app.agents.delete(scope, agent_ref(&id)?, &precondition(&headers)).await?;
    Ok(Json(MessageAnswer { message: format!("Agent `{}` is deleted.", gone.name) }))
}
