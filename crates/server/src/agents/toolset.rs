//! `POST /agents/{agent_id}/toolset` and `POST /agents/{agent_id}/call`

use std::collections::BTreeMap;

use ::agents::toolset::{LeftOut, Picked};
use ::agents::{AgentCall, AgentError};
use axum::Extension;
use axum::extract::State;
use calls::CallError;
use definitions::format::{Format, UnknownFormat};
use document::ToSchema;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::agent_ref;
use super::bodies::ReasonBody;
use crate::App;
use crate::edge::auth::{self, ViewAgents};
use crate::edge::watch::within;
use crate::edge::{ApiError, ApiResult, Json, OptionalPayload, PathOf, Payload, Scoped};
use crate::tools::call::{CallAnswer, CallData, CallOutcome, WaitingAnswer, request, time_limit};
use crate::tools::ops::{Inside, Own};

/// Which tools are wanted.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolsetRequest {
    /// What the tools are for: those that fit it best come first, and those that it names are always there.
    pub prompt: Option<String>,
    /// How many at most, besides those that the prompt names.
    pub limit: Option<usize>,
    /// `openai`, `anthropic`, `gemini` or `mcp`: adds definitions that this API accepts as they are.
    #[schema(value_type = Option<crate::shapes::FormatWord>)]
    pub format: Option<String>,
    /// Whether to list what only the limit left out, too.
    #[serde(default)]
    pub excluded: bool,
}

/// The tools that an agent may use right now.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolsetAnswer {
    pub agent_id: i64,
    pub public_id: Uuid,
    pub count: usize,
    /// How many there are without the limit.
    pub total: usize,
    pub tools: Vec<ToolBody>,
    /// What is assigned or configured and cannot be used; with `excluded` also what the limit left out.
    pub left_out: Vec<LeftOutBody>,
    /// With `format`: the tools as the model API takes them, in the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub definitions: Option<Vec<Value>>,
    /// With `format`: from the function name that the model calls to the call ref.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeMap<String, String>>,
}

/// One tool.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolBody {
    pub name: String,
    pub call_ref: String,
    pub title: String,
    pub description: String,
    pub app_name: Option<String>,
    pub connection: Option<String>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    /// `allow` or `ask`.
    #[schema(value_type = String)]
    pub permission: definitions::Verdict,
    pub priority: i64,
    /// How well it fits the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Whether the prompt names it.
    pub named: bool,
}

/// A tool or app that is not there, and why.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeftOutBody {
    /// A call ref, the name of an app, or the name of a tool that runs elsewhere.
    pub tool: String,
    pub app_name: Option<String>,
    pub reason: ReasonBody,
}

impl From<&Picked<'_>> for ToolBody {
    fn from(picked: &Picked<'_>) -> Self {
        let tool = picked.tool;
        Self {
            name: tool.name.clone(),
            call_ref: tool.call_ref.to_string(),
            title: tool.tool.title().to_owned(),
            description: tool.description().into_owned(),
            app_name: tool.app.as_ref().map(ToString::to_string),
            connection: tool.connection.clone(),
            read_only: tool.tool.read_only(),
            destructive: tool.tool.destructive(),
            permission: tool.permission,
            priority: tool.priority,
            score: picked.score.map(|score| (score * 1000.0).round() / 1000.0),
            named: picked.is_named,
        }
    }
}

impl From<&LeftOut> for LeftOutBody {
    fn from(left: &LeftOut) -> Self {
        Self { tool: left.tool.clone(), app_name: left.app.as_ref().map(ToString::to_string), reason: (&left.reason).into() }
    }
}

/// The tools that an agent may use right now
///
/// What is not among them is listed with the reason. A call at `/agents/{agent_id}/call` is decided by the same rules.
#[document::path(post, path = "/agents/{agent_id}/toolset", operation_id = "fetch_agent_toolset", tag = "Agents", security(("key" = ["view_agents"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path)), request_body = ToolsetRequest,
    responses((status = 200, body = ToolsetAnswer), (status = 404, description = "No such agent"), (status = 422, description = "An unknown format")))]
pub(crate) async fn toolset(
    Scoped(scope, _): Scoped<ViewAgents>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    OptionalPayload(body): OptionalPayload<ToolsetRequest>,
) -> ApiResult<Json<ToolsetAnswer>> {
    let format: Option<Format> =
        body.format.map(|name| name.parse().map_err(|error: UnknownFormat| ApiError::unprocessable(error.to_string()))).transpose()?;
    let toolset = app.agents.toolset(scope, agent_ref(&id)?).await?;
    let selection = toolset.select(body.prompt.as_deref(), body.limit);
    let tools: Vec<ToolBody> = selection.picked.iter().map(Into::into).collect();
    let cut = selection.cut.iter().filter(|_| body.excluded);
    Ok(Json(ToolsetAnswer {
        agent_id: toolset.agent.number,
        public_id: toolset.agent.id.uuid(),
        count: tools.len(),
        total: toolset.tools.len(),
        left_out: toolset.left_out.iter().chain(cut).map(Into::into).collect(),
        definitions: format.map(|format| selection.picked.iter().map(|picked| picked.tool.define(format)).collect()),
        names: format.map(|_| tools.iter().map(|tool| (tool.name.clone(), tool.call_ref.clone())).collect()),
        tools,
    }))
}

/// A call that an agent makes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallAsAgent {
    pub data: CallData,
    /// What the run decides for platform ops, for example `{"workflow": {"variant": {"id": "…"}}}`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
}

/// Call a tool as an agent
///
/// The name is a call ref or one of the toolset's names. What the toolset leaves out does not run: 403 with the reason, or 404 where there is no such thing.
/// The key needs `run_agents` and `run_tools`: an agent narrows what its caller may do, and opens nothing.
#[document::path(post, path = "/agents/{agent_id}/call", operation_id = "call_as_agent", tag = "Agents", security(("key" = ["run_agents", "run_tools"])),
    params(("agent_id" = inline(crate::shapes::AgentIdText), Path), ("Idempotency-Key" = inline(Option<crate::shapes::IdempotencyKeyText>), Header, description = "Makes a repeated call return the first result")),
    request_body = CallAsAgent,
    responses((status = 200, body = CallAnswer), (status = 202, body = WaitingAnswer, description = "Waits for a person"),
        (status = 400, description = "Bad ref, arguments or connection"), (status = 403, description = "Not among the agent's tools, or denied"), (status = 429, description = "The project keeps as many runs or approvals as it may"),
        (status = 404, description = "No such agent, action or workflow"), (status = 424, description = "The service refused or could not be reached"),
        (status = 502, description = "The service failed")))]
pub(crate) async fn call(
    Scoped(scope, _): Scoped<auth::RunAgentTools>,
    State(app): State<App>,
    Extension(Inside(router)): Extension<Inside>,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    Payload(body): Payload<CallAsAgent>,
) -> ApiResult<CallOutcome> {
    let agent = agent_ref(&id)?;
    let (request, tool_call_id) = request(&app, &headers, body.data)?;
    let limit = time_limit(&app, &request.name);
    let call = AgentCall { request, context: body.context };
    let own = Own { scope, router, headers };
    let reply: Result<_, CallError> = match within(limit, Box::pin(app.agents.call(scope, agent, call, &own))).await? {
        Ok(reply) => Ok(reply),
        Err(AgentError::Call(error)) => Err(error),
        Err(other) => return Err(other.into()),
    };
    CallOutcome::of(&app, scope, reply, tool_call_id).await
}
