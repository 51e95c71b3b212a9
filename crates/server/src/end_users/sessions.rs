//! `/sessions`: made, listed and ended by the project.

use std::collections::BTreeMap;
use std::time::Duration;

use ::user_sessions::{SessionTarget, Shown, USUAL_LIFETIME, UserSession, UserSessionFilter, UserSessionSettings};
use axum::Extension;
use axum::extract::State;
use document::{IntoParams, ToSchema};
use kernel::{Permission, Scope, UserSessionId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::agents::agent_ref;
use crate::edge::auth::{ByClient, RunTools, ViewTools};
use crate::edge::{ApiError, ApiResult, Code, Json, PathOf, Payload, QueryOf, Scoped, end_user};
use crate::{App, addresses};

const NOT_FOR_CLIENTS: &str = "A client that somebody let in makes no sessions, because they would outlive what it was allowed.";
const MAX_NAMED: usize = 500;
/// What can be said of the workflow that triggers start.
const KNOWN: [&str; 3] = ["references", "inputs_fields", "selector"];

/// A request to make a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateUserSession {
    pub session: NewUserSession,
}

/// What a new session shall be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUserSession {
    /// Whom it is for, by the name that you give them.
    #[schema(value_type = crate::shapes::EndUserText)]
    pub end_user: String,
    /// The integrations, by key; left out, all that the user has connected.
    pub apps: Option<Vec<String>>,
    /// In place of `apps`: the tools of this agent, by its id or number.
    #[schema(value_type = Option<crate::shapes::AgentIdText>)]
    pub agent_id: Option<String>,
    /// Only these tools, each a ref without its connection, such as `tools.native.github.CREATE_AN_ISSUE`.
    pub tools: Option<Vec<String>>,
    /// The account to use, by integration: its slug, alias or id. It must be one of this end user.
    #[serde(default)]
    pub accounts: BTreeMap<String, String>,
    /// Rules for calls, written as the project's are at `/tools/permissions`. They can only be stricter than those.
    #[schema(value_type = Option<Object>)]
    pub permissions: Option<Value>,
    /// `all` shows each tool, `search` three in place of all: find, call, connect.
    #[schema(value_type = Option<crate::shapes::ModeWord>)]
    pub mode: Option<Shown>,
    /// Whether the end user may connect accounts of their own; they may where nothing is said.
    pub may_connect: Option<bool>,
    /// Whether the end user may approve calls that wait; they may not where nothing is said.
    pub may_approve: Option<bool>,
    /// What triggers start that the end user makes: `{"webhook": true}` for the project's webhook in Composio's API, or what a trigger's `data` says
    /// of a workflow: `references`, `inputs_fields`, `selector`. Without it they make none. It needs `edit_triggers`.
    #[schema(value_type = Option<Object>)]
    pub triggers: Option<Map<String, Value>>,
    /// A day where nothing is said, 90 days at most.
    #[schema(minimum = 1, maximum = 7_776_000)]
    pub lifetime_seconds: Option<u64>,
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether the session may do one thing")]
pub struct UserSessionBody {
    pub id: Uuid,
    /// For whom it is; left out where a session of the tool router is the project's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_user: Option<String>,
    /// Whether it is one of the tool router, which has a config at `/v3.1/tool_router/session/{session_id}` and no token.
    pub is_tool_router: bool,
    /// Opens this session and nothing else; shown once, by whoever makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Where clients of the Model Context Protocol find its tools, with the token as bearer.
    pub mcp_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apps: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    pub accounts: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub permissions: Option<Value>,
    /// `all` or `search`.
    #[schema(value_type = String)]
    pub mode: Shown,
    pub may_connect: bool,
    pub may_approve: bool,
    /// Whether the end user may make triggers.
    pub may_trigger: bool,
    /// Whether it has not ended.
    pub is_open: bool,
    pub created_at: String,
    pub expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

/// One session in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserSessionAnswer {
    pub count: usize,
    pub session: UserSessionBody,
}

/// A page of sessions, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserSessionsAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub sessions: Vec<UserSessionBody>,
}

/// Which sessions to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListUserSessions {
    #[param(inline, required = false, value_type = crate::shapes::EndUserText)]
    pub end_user: Option<String>,
    /// Only those that have not ended.
    pub open: Option<bool>,
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    /// The `cursor` of the page before.
    pub cursor: Option<Uuid>,
}

impl UserSessionBody {
    pub(crate) fn new(app: &App, session: UserSession, end_user: Option<String>) -> Self {
        let is_open = session.holds(app.clock.now());
        let (is_tool_router, mcp_url) = (session.is_routed(), addresses::session_mcp(app.options.public_url(), &session));
        let settings = session.settings;
        Self {
            id: session.id.uuid(),
            end_user,
            is_tool_router,
            token: None,
            mcp_url,
            apps: settings.apps,
            agent_id: settings.agent.map(kernel::Id::uuid),
            tools: settings.tools,
            accounts: settings.accounts,
            permissions: settings.permissions,
            mode: settings.shown,
            may_connect: settings.may_connect,
            may_approve: settings.may_approve,
            may_trigger: settings.triggers.is_some(),
            is_open,
            created_at: session.created_at.to_string(),
            expires_at: session.expires_at.to_string(),
            revoked_at: session.revoked_at.map(|at| at.to_string()),
        }
    }

    pub(crate) async fn named(app: &App, session: UserSession) -> ApiResult<Self> {
        let names = app.end_users.names(session.project, session.end_user().into_iter().collect()).await?;
        let name = names.into_values().next();
        Ok(Self::new(app, session, name))
    }
}

/// Make a session for an end user
///
/// The answer shows the token this once. Whoever holds it can list, find and call the tools of the session, connect accounts of this end user, and
/// nothing else. It ends with its time, when it is revoked, and with the key or the membership that made it.
#[document::path(post, path = "/sessions", operation_id = "create_user_session", tag = "End users", security(("key" = ["run_tools"])),
    request_body = CreateUserSession, responses((status = 200, body = UserSessionAnswer),
        (status = 404, description = "No such integration, tool, agent or account"), (status = 409, description = "The end user has as many sessions as they may")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<RunTools>,
    State(app): State<App>,
    client: Option<Extension<ByClient>>,
    Payload(body): Payload<CreateUserSession>,
) -> ApiResult<Json<UserSessionAnswer>> {
    if client.is_some() {
        return Err(ApiError::new(Code::MissingPermission, NOT_FOR_CLIENTS));
    }
    let new = body.session;
    let name = new.end_user.clone();
    let lifetime = new.lifetime_seconds.map_or(USUAL_LIFETIME, Duration::from_secs);
    end_user::read(&name)?;
    let settings = settings(&app, scope, new).await?;
    let user = end_user::acting_for(&app, scope, Some(&name)).await?;
    let settings = pinned(&app, user, settings).await?;
    let Some(end_user) = user.end_user() else { return Err(ApiError::internal(&"a session without an end user")) };
    let (session, token) = app.user_sessions.create(scope, end_user, settings, lifetime).await?;
    let session = UserSessionBody { token: Some(token.expose().to_owned()), ..UserSessionBody::new(&app, session, Some(name)) };
    Ok(Json(UserSessionAnswer { count: 1, session }))
}

/// What is asked for, once everything that it names was looked up.
async fn settings(app: &App, scope: Scope, new: NewUserSession) -> ApiResult<UserSessionSettings> {
    let named = new.apps.as_ref().map_or(0, Vec::len) + new.tools.as_ref().map_or(0, Vec::len) + new.accounts.len();
    if named > MAX_NAMED {
        return Err(ApiError::unprocessable(format!("A session may name {MAX_NAMED} apps, tools and accounts.")));
    }
    for integration in new.apps.iter().flatten().chain(new.accounts.keys()) {
        app.catalog.check_integration(scope.project, integration)?;
    }
    for tool in new.tools.iter().flatten() {
        let ["tools", provider, integration, action] = tool.split('.').collect::<Vec<_>>()[..] else {
            let message = format!(
                "`tools`: `{}` must be `tools.{{provider}}.{{integration}}.{{action}}`.",
                tool.chars().take(200).collect::<String>()
            );
            return Err(ApiError::unprocessable(message));
        };
        let found = app.catalog.reach_integration(scope.project, provider, integration).await?;
        if found.action(action).is_none() {
            return Err(ApiError::new(Code::ActionNotFound, definitions::unknown_action(&found, action)));
        }
    }
    let agent = match new.agent_id.as_deref() {
        None => None,
        Some(_) if new.apps.is_some() || new.tools.is_some() || !new.accounts.is_empty() => {
            return Err(ApiError::unprocessable("A session has either an agent, or `apps`, `tools` and `accounts`."));
        }
        Some(agent) => Some(app.agents.read(scope, agent_ref(agent)?).await?.id),
    };
    let triggers = match new.triggers {
        None => None,
        Some(_) if agent.is_some() => {
            return Err(ApiError::unprocessable("A session with an agent makes no triggers; leave `triggers` out."));
        }
        Some(start) => Some(trigger_target(app, scope, start).await?),
    };
    if let Some(rules) = &new.permissions {
        app.calls.check_policy(scope, rules).await?;
    }
    Ok(UserSessionSettings {
        apps: new.apps,
        agent,
        tools: new.tools,
        accounts: new.accounts,
        permissions: new.permissions,
        shown: new.mode.unwrap_or_default(),
        may_connect: new.may_connect.unwrap_or(true),
        may_approve: new.may_approve.unwrap_or(false),
        triggers,
    })
}

/// What triggers of a session start, once it was looked up.
async fn trigger_target(app: &App, scope: Scope, mut start: Map<String, Value>) -> ApiResult<SessionTarget> {
    if !scope.may(Permission::EditTriggers) {
        return Err(ApiError::forbidden(Permission::EditTriggers, &[Permission::RunTools, Permission::EditTriggers]));
    }
    match start.shift_remove("webhook") {
        Some(Value::Bool(true)) if start.is_empty() => return Ok(SessionTarget::Webhook),
        Some(_) => return Err(ApiError::unprocessable("`triggers.webhook` must be true, and stands alone.")),
        None => {}
    }
    if let Some(unknown) = start.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        let hint = kernel::suggest::did_you_mean(unknown, KNOWN.into_iter().chain(["webhook"]));
        return Err(ApiError::unprocessable(format!("`triggers.{unknown}` is not known; there are: webhook, {}.{hint}", KNOWN.join(", "))));
    }
    app.triggers.check_workflow(scope, &Value::Object(start.clone())).await?;
    Ok(SessionTarget::Workflow(start))
}

/// The same with the slugs of the accounts that were named, each of which must be one of this end user.
async fn pinned(app: &App, user: Scope, settings: UserSessionSettings) -> ApiResult<UserSessionSettings> {
    let mut accounts = BTreeMap::new();
    for (integration, name) in settings.accounts {
        let rows = app.connections.choices(user, None, Some(&integration)).await?;
        let is_it = |row: &&::connections::Connection| row.slug == name || row.alias.as_ref() == Some(&name) || row.id.to_string() == name;
        let Some(row) = rows.iter().find(is_it) else {
            return Err(ApiError::new(Code::ConnectionNotFound, format!("The end user has no account `{name}` of {integration}.")));
        };
        accounts.insert(integration, row.slug.clone());
    }
    Ok(UserSessionSettings { accounts, ..settings })
}

/// List sessions of end users, newest first
#[document::path(get, path = "/sessions", operation_id = "list_user_sessions", tag = "End users", security(("key" = ["view_tools"])), params(ListUserSessions),
    responses((status = 200, body = UserSessionsAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListUserSessions>,
) -> ApiResult<Json<UserSessionsAnswer>> {
    let end_user = end_user::wanted(&app, scope, list.end_user.as_deref()).await?;
    let cursor = list.cursor.map(UserSessionId::from);
    let filter = UserSessionFilter { end_user, only_open: list.open.unwrap_or(false), limit: list.limit, cursor };
    let page = app.user_sessions.list(scope.project, &filter).await?;
    let names = app.end_users.names(scope.project, page.sessions.iter().filter_map(UserSession::end_user).collect()).await?;
    let body = |session: UserSession| {
        let name = session.end_user().and_then(|end_user| names.get(&end_user).cloned());
        UserSessionBody::new(&app, session, name)
    };
    let cursor = page.cursor.map(UserSessionId::uuid);
    Ok(Json(UserSessionsAnswer { count: page.sessions.len(), cursor, sessions: page.sessions.into_iter().map(body).collect() }))
}

/// End a session of an end user
///
/// It ends at once and for good, and stays in the list for a while.
#[document::path(delete, path = "/sessions/{session_id}", operation_id = "revoke_user_session", tag = "End users", security(("key" = ["run_tools"])),
    params(("session_id" = Uuid, Path)), responses((status = 200, body = UserSessionAnswer), (status = 404, description = "No such session")))]
pub(crate) async fn revoke(
    Scoped(scope, _): Scoped<RunTools>,
    State(app): State<App>,
    PathOf(id): PathOf<UserSessionId>,
) -> ApiResult<Json<UserSessionAnswer>> {
    let session = app.user_sessions.revoke(scope.project, id).await?;
    Ok(Json(UserSessionAnswer { count: 1, session: UserSessionBody::named(&app, session).await? }))
}
