//! Triggers of a session: its end user watches their own accounts, and what that starts was said by whoever made the session.

use std::sync::Arc;

use ::catalog::{Event, Integration};
use ::user_sessions::{SessionTarget, UserSession};
use axum::extract::{Path, State};
use connections::NEWEST;
use document::ToSchema;
use http::StatusCode;
use kernel::{Permission, Scope, SubscriptionId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::PageSize;
use triggers::{Labels, NewSubscription, ParentQuery, RowKind, Subscription, TargetKind, TriggerError};
use uuid::Uuid;

use super::InSession;
use super::session_tools::missing_account;
use crate::App;
use crate::edge::{ApiError, ApiResult, Code, Json, Payload};

const NOT_HERE: &str = "This session makes no triggers. Whoever makes a session says what its triggers start: `triggers` at `/sessions`.";
const NOT_ANY_MORE: &str = "Whoever made this session may not make triggers any more.";
/// What marks a trigger that an end user made.
const MADE_IN: &str = "made_in_session";
/// How many an end user may have, which is also what one list shows.
const MOST: i64 = 100;
/// The most events that are listed.
const MAX_EVENTS: usize = 1000;

/// Something that a session's end user can watch.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionEventBody {
    pub provider_key: String,
    pub integration_key: String,
    pub event_key: String,
    pub name: String,
    pub description: String,
    /// The JSON Schema of `config`.
    #[schema(value_type = Object)]
    pub config_schema: Value,
}

/// What can be watched.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionEventsAnswer {
    pub count: usize,
    pub events: Vec<SessionEventBody>,
}

/// A request to watch something.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSessionTrigger {
    pub trigger: NewSessionTrigger,
}

/// What shall be watched.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSessionTrigger {
    /// The integration, by key.
    pub integration: String,
    /// The event, by key.
    pub event: String,
    /// The account, by slug, alias or id; the newest that works where nothing is said.
    pub account: Option<String>,
    /// As the event's `config_schema` says.
    #[schema(value_type = Option<Object>)]
    pub config: Option<Map<String, Value>>,
}

/// A trigger of the end user.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionTriggerBody {
    pub id: Uuid,
    pub integration_key: String,
    pub event_key: String,
    pub connection_id: Option<Uuid>,
    #[schema(value_type = Object)]
    pub config: Value,
    /// Whether events start something now.
    pub is_active: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub created_at: String,
}

/// One trigger in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionTriggerAnswer {
    pub count: usize,
    pub trigger: SessionTriggerBody,
    /// What the end user still has to do at the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Shown once: what the service signs with, where it has to be carried there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The triggers that the end user made in sessions, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionTriggersAnswer {
    pub count: usize,
    pub triggers: Vec<SessionTriggerBody>,
}

impl From<&Subscription> for SessionTriggerBody {
    fn from(row: &Subscription) -> Self {
        Self {
            id: row.id.uuid(),
            integration_key: row.integration.clone(),
            event_key: row.event_key.clone(),
            connection_id: row.connection.map(kernel::ConnectionId::uuid),
            config: row.data.get("trigger_config").cloned().unwrap_or_else(|| json!({})),
            is_active: row.is_active && row.is_valid,
            reason: row.reason.clone(),
            created_at: row.life.created_at.to_string(),
        }
    }
}

/// What triggers of a session start.
fn target(session: &UserSession) -> ApiResult<&SessionTarget> {
    session.settings.triggers.as_ref().ok_or_else(|| ApiError::new(Code::MissingPermission, NOT_HERE))
}

/// As whom a trigger is made: whoever made the session, as far as they still may, for its end user.
async fn maker(app: &App, session: &UserSession) -> ApiResult<Scope> {
    let acting = app.accounts.acting(session.project, session.made_by, session.made_by_user).await?;
    let maker = acting.filter(|maker| maker.may(Permission::EditTriggers));
    let maker = maker.ok_or_else(|| ApiError::new(Code::MissingPermission, NOT_ANY_MORE))?;
    Ok(Scope { acts_for: session.owner, ..maker })
}

fn is_made_in_sessions(row: &Subscription) -> bool {
    row.labels.meta.as_ref().is_some_and(|meta| meta.get(MADE_IN).is_some())
}

async fn own_triggers(app: &App, session: &UserSession, scope: Scope) -> ApiResult<Vec<Subscription>> {
    let query = ParentQuery { size: PageSize::within(Some(1000), 1000, 1000), ..ParentQuery::default() };
    let mut rows = app.triggers.subscriptions(scope, &query).await?.rows;
    rows.retain(|row| is_made_in_sessions(row) && session.settings.has_app(&row.integration));
    Ok(rows)
}

/// Everything of that key, whichever provider offers it.
async fn offered(app: &App, scope: Scope, key: &str) -> Vec<Arc<Integration>> {
    let mut found = Vec::new();
    for provider in app.catalog.providers() {
        if let Ok(integration) = app.catalog.reach_integration(scope.project, provider.key, key).await {
            found.push(integration);
        }
    }
    found
}

/// List what a session's end user can watch
#[document::path(get, path = "/sessions/{session_id}/events", operation_id = "list_user_session_events", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path)), responses((status = 200, body = SessionEventsAnswer), (status = 401, description = "The session ended, or this is not its token"),
        (status = 403, description = "The session makes no triggers")))]
pub(crate) async fn events(InSession(session, scope): InSession, State(app): State<App>) -> ApiResult<Json<SessionEventsAnswer>> {
    target(&session)?;
    let mut apps: Vec<String> = match &session.settings.apps {
        Some(apps) => apps.clone(),
        None => app.connections.query(scope, None, None).await?.into_iter().map(|row| row.integration).collect(),
    };
    apps.sort_unstable();
    apps.dedup();
    apps.retain(|key| session.settings.has_app(key));
    let mut events = Vec::new();
    for key in &apps {
        for integration in offered(&app, scope, key).await {
            events.extend(integration.events.iter().map(|event| event_body(&integration, event)));
        }
    }
    events.truncate(MAX_EVENTS);
    Ok(Json(SessionEventsAnswer { count: events.len(), events }))
}

fn event_body(integration: &Integration, event: &Event) -> SessionEventBody {
    SessionEventBody {
        provider_key: integration.provider.to_owned(),
        integration_key: integration.key.clone(),
        event_key: event.key.clone(),
        name: event.name.clone(),
        description: event.description.clone(),
        config_schema: event.config_schema.value(),
    }
}

/// Watch something on an account of a session's end user
///
/// Events start what whoever made the session said. The trigger stays when the session ends. Where an account is missing, the answer is a 409 with
/// the link that the end user opens to connect it.
#[document::path(post, path = "/sessions/{session_id}/triggers", operation_id = "create_user_session_trigger", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path)), request_body = CreateSessionTrigger,
    responses((status = 200, body = SessionTriggerAnswer), (status = 401, description = "The session ended, or this is not its token"), (status = 403, description = "The session makes no triggers"),
        (status = 404, description = "The session has no such integration or event"), (status = 409, description = "An account is missing, or the same is watched already"),
        (status = 422, description = "A bad configuration"), (status = 424, description = "The service refused")))]
pub(crate) async fn create(
    InSession(session, scope): InSession,
    State(app): State<App>,
    Payload(body): Payload<CreateSessionTrigger>,
) -> ApiResult<Json<SessionTriggerAnswer>> {
    let target = target(&session)?.clone();
    let maker = maker(&app, &session).await?;
    let new = body.trigger;
    let unknown = |code: Code, what: &str| {
        ApiError::new(code, format!("This session has no {what}. `GET /sessions/{{session_id}}/events` lists what there is."))
    };
    if !session.settings.has_app(&new.integration) {
        return Err(unknown(Code::IntegrationNotFound, "such integration"));
    }
    let offers = offered(&app, scope, &new.integration).await;
    let Some(integration) = offers.into_iter().find(|integration| integration.event(&new.event).is_some()) else {
        return Err(unknown(Code::EventNotFound, "such event"));
    };
    let asked = new.account.as_deref().unwrap_or(NEWEST);
    let account = session.settings.account(&integration.key, asked, NEWEST);
    let account = account.ok_or_else(|| unknown(Code::ConnectionNotFound, "such account"))?;
    let found = app.connections.find(scope, integration.provider, &integration.key, account).await?;
    if found.is_none() && new.account.is_some() {
        return Err(unknown(Code::ConnectionNotFound, "such account"));
    }
    let Some(connection) = found.filter(::connections::Connection::is_usable).and_then(|connection| connection.row_id()) else {
        return Err(missing_account(&app, &session, scope, &integration).await);
    };
    let made = own_triggers(&app, &session, scope).await?.len();
    if i64::try_from(made).is_ok_and(|made| made >= MOST) {
        return Err(ApiError::conflict(Code::ProjectFull, format!("An end user may make {MOST} triggers."), json!({"most": MOST})));
    }
    let mut data = json!({"event_key": new.event, "trigger_config": new.config.unwrap_or_default()});
    let kind = match target {
        SessionTarget::Webhook => TargetKind::Webhook,
        SessionTarget::Workflow(start) => {
            data.as_object_mut().into_iter().for_each(|data| data.extend(start.clone()));
            TargetKind::Workflow
        }
    };
    let meta = json!({MADE_IN: session.id});
    let new = NewSubscription {
        connection: Some(connection),
        labels: Labels { meta: Some(meta), ..Labels::default() },
        target: kind,
        data,
        is_active: true,
        is_valid: true,
        is_test: false,
    };
    let made = match kind {
        TargetKind::Webhook => app.triggers.subscribe_webhook(maker, new).await?,
        TargetKind::Workflow => app.triggers.subscribe(maker, new).await?,
    };
    Ok(Json(SessionTriggerAnswer { count: 1, trigger: (&made.subscription).into(), setup: made.setup, secret: made.secret }))
}

/// List the triggers that a session's end user made in sessions
#[document::path(get, path = "/sessions/{session_id}/triggers", operation_id = "list_user_session_triggers", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path)), responses((status = 200, body = SessionTriggersAnswer), (status = 401, description = "The session ended, or this is not its token"),
        (status = 403, description = "The session makes no triggers")))]
pub(crate) async fn list(InSession(session, scope): InSession, State(app): State<App>) -> ApiResult<Json<SessionTriggersAnswer>> {
    target(&session)?;
    let triggers: Vec<SessionTriggerBody> = own_triggers(&app, &session, scope).await?.iter().map(Into::into).collect();
    Ok(Json(SessionTriggersAnswer { count: triggers.len(), triggers }))
}

/// Stop watching
#[document::path(delete, path = "/sessions/{session_id}/triggers/{trigger_id}", operation_id = "delete_user_session_trigger", tag = "End users", security(("key" = ["run_tools"]), ("user_session" = [])),
    params(("session_id" = Uuid, Path), ("trigger_id" = Uuid, Path)), responses((status = 204), (status = 401, description = "The session ended, or this is not its token"),
        (status = 403, description = "The session makes no triggers"), (status = 404, description = "No such trigger of this end user")))]
pub(crate) async fn delete(
    InSession(session, scope): InSession,
    State(app): State<App>,
    Path((_, id)): Path<(Uuid, Uuid)>,
) -> ApiResult<StatusCode> {
    target(&session)?;
    let maker = maker(&app, &session).await?;
    let id = SubscriptionId::from(id);
    let row = app.triggers.subscription(scope, id).await?;
    if !is_made_in_sessions(&row) || !session.settings.has_app(&row.integration) {
        return Err(TriggerError::NotFound(RowKind::Subscription).into());
    }
    app.triggers.unsubscribe(maker, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
