//! What can be done in a session, by its token or by a key of the project.

use std::sync::Arc;

use ::agents::AgentRef;
use ::catalog::Integration;
use ::connections::LinkOptions;
use ::mcp::{AgentTools, MissingAccount, ProjectTools, SearchMode, Searchable, SessionFault, SessionTools, Surface};
use ::user_sessions::{Shown, UserSession};
use axum::extract::State;
use calls::{CallError, CallRequest};
use definitions::format::Format;
use document::{IntoParams, ToSchema};
use http::HeaderMap;
use kernel::{ApprovalId, Permission, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::InSession;
use super::sessions::{UserSessionAnswer, UserSessionBody};
use crate::App;
use crate::connections::{ConnectLinkBody, ConnectionBody, all_named, link_options};
use crate::edge::watch::within;
use crate::edge::{ApiError, ApiResult, Code, Json, Payload, QueryOf};
use crate::mcp::approver;
use crate::tools::approvals::{ApprovalAnswer, ApprovalDecision, Decision, Names};
use crate::tools::call::{CallData, CallOutcome, request, time_limit};
use crate::tools::ops::Nowhere;

const FOR_AGENT: &str = "This session has the tools of an agent; use its MCP address.";

/// Read a session
#[document::path(get, path = "/sessions/{session_id}", operation_id = "fetch_user_session", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path)), responses((status = 200, body = UserSessionAnswer), (status = 401, description = "The session ended, or this is not its token"),
        (status = 404, description = "No such session")))]
pub(crate) async fn fetch(InSession(session, _): InSession, State(app): State<App>) -> ApiResult<Json<UserSessionAnswer>> {
    Ok(Json(UserSessionAnswer { count: 1, session: UserSessionBody::named(&app, session).await? }))
}

/// In which form tools are wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SessionToolsFormat {
    /// `openai` where nothing is said.
    #[param(inline, required = false, value_type = crate::shapes::FormatWord)]
    format: Option<String>,
}

/// The tools of a session, as a model API takes them. Each is called by its name at `/sessions/{session_id}/call`.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionToolsAnswer {
    pub count: usize,
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Value>,
}

/// List the tools of a session
#[document::path(get, path = "/sessions/{session_id}/tools", operation_id = "list_user_session_tools", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path), SessionToolsFormat), responses((status = 200, body = SessionToolsAnswer), (status = 401, description = "The session ended, or this is not its token")))]
pub(crate) async fn tools(
    InSession(session, scope): InSession,
    State(app): State<App>,
    QueryOf(wanted): QueryOf<SessionToolsFormat>,
) -> ApiResult<Json<SessionToolsAnswer>> {
    let format = match wanted.format.as_deref() {
        None => Format::OpenAi,
        Some(name) => name.parse().map_err(|error: definitions::format::UnknownFormat| ApiError::unprocessable(error.to_string()))?,
    };
    let tools = surface_of(&app, &session, scope)?.definitions(format).await.map_err(|error| ApiError::internal(&error))?;
    Ok(Json(SessionToolsAnswer { count: tools.len(), tools }))
}

/// What the end user wants to do.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FindSessionTools {
    #[schema(min_items = 1, max_items = 20)]
    pub use_cases: Vec<String>,
    /// The most tools per use case; 5 where nothing is said.
    #[schema(minimum = 1, maximum = 20)]
    pub limit: Option<u64>,
}

/// What fits each use case.
#[derive(Debug, Serialize, ToSchema)]
pub struct FoundSessionTools {
    /// `{use_case, tools, connect?}`: the tools of the session, and the integrations that would have to be connected.
    #[schema(value_type = Vec<Object>)]
    pub results: Vec<Value>,
}

/// Find tools of a session by what they shall do
#[document::path(post, path = "/sessions/{session_id}/find", operation_id = "find_user_session_tools", tag = "End users", security(("key" = ["run_tools", "view_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path)), request_body = FindSessionTools, responses((status = 200, body = FoundSessionTools), (status = 401, description = "The session ended, or this is not its token")))]
pub(crate) async fn find(
    InSession(session, scope): InSession,
    State(app): State<App>,
    Payload(body): Payload<FindSessionTools>,
) -> ApiResult<Json<FoundSessionTools>> {
    if !scope.may(Permission::ViewTools) {
        return Err(ApiError::forbidden(Permission::ViewTools, &[Permission::RunTools, Permission::ViewTools]));
    }
    if !(1..=20).contains(&body.use_cases.len()) {
        return Err(ApiError::unprocessable("`use_cases` must be 1 to 20 sentences that say what shall be done."));
    }
    let limit = body.limit.unwrap_or(5).clamp(1, 20);
    let results = surface_of(&app, &session, scope)?.search(body.use_cases, limit).await.map_err(|error| match error {
        ::mcp::RpcError::Params(why) => ApiError::unprocessable(why),
        other => ApiError::internal(&other),
    })?;
    Ok(Json(FoundSessionTools { results }))
}

/// A request to call a tool of a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallSessionTool {
    pub data: CallData,
}

/// Call a tool of a session
///
/// As at `/tools/call`, with the accounts of the session's end user. Where an account is missing, the answer is a 409 with the link that the end user
/// opens to connect it.
#[document::path(post, path = "/sessions/{session_id}/call", operation_id = "call_user_session_tool", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path), ("Idempotency-Key" = inline(Option<crate::shapes::IdempotencyKeyText>), Header, description = "Makes a repeated call return the first result")),
    request_body = CallSessionTool, responses((status = 200, body = crate::tools::call::CallAnswer), (status = 202, body = crate::tools::call::WaitingAnswer, description = "Waits for a person"),
        (status = 401, description = "The session ended, or this is not its token"), (status = 404, description = "The session has no such tool"),
        (status = 409, description = "An account is missing; the answer has the link")))]
pub(crate) async fn call(
    InSession(session, scope): InSession,
    State(app): State<App>,
    headers: HeaderMap,
    Payload(body): Payload<CallSessionTool>,
) -> ApiResult<CallOutcome> {
    let name = body.data.function.name.clone();
    let (request, tool_call_id): (CallRequest, String) = request(&app, &headers, body.data)?;
    let limit = time_limit(&app, &request.name);
    let surface = surface_of(&app, &session, scope)?;
    let reply = match within(limit, surface.call_tool(&name, request)).await? {
        Ok(reply) => Ok(reply),
        Err(SessionFault::Call(error)) => Err(error),
        Err(SessionFault::Unknown(why)) => return Err(ApiError::new(Code::ActionNotFound, why)),
        Err(SessionFault::Missing(missing)) => return Err(account_missing(&missing)),
    };
    CallOutcome::of(&app, scope, reply, tool_call_id).await
}

/// What is said where an account is missing that a trigger would watch: the link, if the end user may connect one.
pub(super) async fn missing_account(app: &App, session: &UserSession, scope: Scope, integration: &Integration) -> ApiError {
    let surface = match surface_of(app, session, scope) {
        Ok(surface) => surface,
        Err(error) => return error,
    };
    match surface.connect_app(&integration.key, Some(integration.provider), None, LinkOptions::default()).await {
        Ok((_, begun)) => account_missing(&MissingAccount {
            integration: integration.key.clone(),
            name: integration.name.clone(),
            url: begun.redirect_url,
            connection: begun.connection,
        }),
        Err(SessionFault::Unknown(why)) => ApiError::new(Code::ConnectionNotFound, why),
        Err(SessionFault::Call(error)) => error.into(),
        Err(SessionFault::Missing(missing)) => account_missing(&missing),
    }
}

fn account_missing(missing: &MissingAccount) -> ApiError {
    let conflict = json!({
        "integration_key": missing.integration,
        "connection_id": missing.connection.id,
        "redirect_url": missing.url,
    });
    ApiError::conflict(Code::AccountMissing, missing.message(), conflict)
}

/// A request to connect an account of the end user.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectSessionAccount {
    /// The integration, by key.
    pub integration: String,
    /// Where several providers offer it.
    pub provider: Option<String>,
    /// A name for one more account beside others.
    #[schema(value_type = Option<crate::shapes::SlugText>)]
    pub alias: Option<String>,
    /// How the end user is led.
    pub link: Option<ConnectLinkBody>,
}

/// How far an account is connected.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectSessionAnswer {
    /// `ready`, or `waiting` for the end user to open `redirect_url`.
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    pub connection: ConnectionBody,
}

/// Connect an account of a session's end user
#[document::path(post, path = "/sessions/{session_id}/connect", operation_id = "connect_user_session_account", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path)), request_body = ConnectSessionAccount, responses((status = 200, body = ConnectSessionAnswer), (status = 401, description = "The session ended, or this is not its token"),
        (status = 404, description = "The session has no such integration, or may not connect")))]
pub(crate) async fn connect(
    InSession(session, scope): InSession,
    State(app): State<App>,
    Payload(body): Payload<ConnectSessionAccount>,
) -> ApiResult<Json<ConnectSessionAnswer>> {
    let surface = surface_of(&app, &session, scope)?;
    let link = link_options(&app, scope, body.link.unwrap_or_default()).await?;
    let begun = match surface.connect_app(&body.integration, body.provider.as_deref(), body.alias.as_deref(), link).await {
        Ok((_, begun)) => begun,
        Err(SessionFault::Unknown(why)) => return Err(ApiError::new(Code::IntegrationNotFound, why)),
        Err(SessionFault::Call(error)) => return Err(error.into()),
        Err(SessionFault::Missing(missing)) => return Err(account_missing(&missing)),
    };
    let redirect_url = begun.redirect_url.clone();
    let connection = all_named(&app, vec![begun.connection]).await?.remove(0);
    Ok(Json(ConnectSessionAnswer { status: if redirect_url.is_some() { "waiting" } else { "ready" }, redirect_url, connection }))
}

/// The accounts of the end user.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionAccountsAnswer {
    pub count: usize,
    pub connections: Vec<ConnectionBody>,
}

/// List the accounts that a session's end user has of its apps
#[document::path(get, path = "/sessions/{session_id}/accounts", operation_id = "list_user_session_accounts", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path)), responses((status = 200, body = SessionAccountsAnswer), (status = 401, description = "The session ended, or this is not its token")))]
pub(crate) async fn accounts(InSession(session, scope): InSession, State(app): State<App>) -> ApiResult<Json<SessionAccountsAnswer>> {
    let mut rows = app.connections.query(scope, None, None).await?;
    rows.retain(|row| session.settings.has_app(&row.integration));
    let connections = all_named(&app, rows).await?;
    Ok(Json(SessionAccountsAnswer { count: connections.len(), connections }))
}

/// Approve or deny a call of a session that waits
#[document::path(post, path = "/sessions/{session_id}/approvals/{approval_id}", operation_id = "decide_user_session_approval", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path), ("approval_id" = Uuid, Path)), request_body = Decision,
    responses((status = 200, body = ApprovalAnswer), (status = 401, description = "The session ended, or this is not its token"), (status = 403, description = "The session does not let its user approve"),
        (status = 404, description = "No such approval of this session"), (status = 409, description = "Decided, used or expired already")))]
pub(crate) async fn decide(
    InSession(session, scope): InSession,
    State(app): State<App>,
    axum::extract::Path((_, id)): axum::extract::Path<(Uuid, Uuid)>,
    Payload(body): Payload<Decision>,
) -> ApiResult<Json<ApprovalAnswer>> {
    if !session.settings.may_approve {
        return Err(ApiError::new(
            Code::MissingPermission,
            "This session does not let its user approve calls. Somebody of the project decides.",
        ));
    }
    let id = ApprovalId::from(id);
    if app.calls.approval(scope, id).await?.key != scope.key {
        return Err(CallError::ApprovalNotFound.into());
    }
    let decided = app.calls.decide(scope, id, body.decision == ApprovalDecision::Approve, body.note.as_deref()).await?;
    Ok(Json(Names::of(&app, scope.project).await?.answer(decided)))
}

/// The tools of a session that is not an agent's.
fn surface_of(app: &App, session: &UserSession, scope: Scope) -> ApiResult<SessionTools> {
    if session.settings.agent.is_some() {
        return Err(ApiError::unprocessable(FOR_AGENT));
    }
    Ok(session_tools(app, session, scope))
}

fn session_tools(app: &App, session: &UserSession, scope: Scope) -> SessionTools {
    let mut approver = approver(app, scope);
    approver.may_approve = session.settings.may_approve;
    SessionTools { project: ProjectTools { approver, limit: app.options.run_limit() }, settings: Arc::new(session.settings.clone()) }
}

/// What clients of the protocol see.
pub(crate) fn shown(app: &App, session: &UserSession, scope: Scope) -> Arc<dyn Surface> {
    let searched = |surface: Arc<dyn Searchable>| -> Arc<dyn Surface> { Arc::new(SearchMode(surface)) };
    match (session.settings.agent, session.settings.shown) {
        (None, Shown::All) => Arc::new(session_tools(app, session, scope)),
        (None, Shown::Search) => searched(Arc::new(session_tools(app, session, scope))),
        (Some(agent), shown) => {
            let mut approver = approver(app, scope);
            approver.may_approve = session.settings.may_approve;
            let (agents, limit) = (app.agents.clone(), app.options.run_limit());
            let tools = AgentTools { agents, agent: AgentRef::Id(agent), approver, routes: Arc::new(Nowhere), limit, has_ops: false };
            if shown == Shown::Search { searched(Arc::new(tools)) } else { Arc::new(tools) }
        }
    }
}
