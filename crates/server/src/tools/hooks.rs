//! `/tools/connections/hooks`: who is told what happens to accounts, and what they were told.

use ::connections::{Hook, HookMessage};
use axum::extract::State;
use document::ToSchema;
use http::StatusCode;
use kernel::{HookId, HookMessageId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiResult, Json, PathOf, Payload, QueryOf, Scoped};
use crate::people::members::ListPage;

/// An address that is told.
#[derive(Debug, Serialize, ToSchema)]
pub struct HookBody {
    pub id: Uuid,
    pub url: String,
    /// What posts are signed with, as Standard Webhooks say; shown once, by whoever makes the hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    pub created_at: String,
}

impl From<Hook> for HookBody {
    fn from(hook: Hook) -> Self {
        Self { id: hook.id.uuid(), url: hook.url, secret: None, created_at: hook.created_at.to_string() }
    }
}

/// One hook in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct HookAnswer {
    pub count: usize,
    pub hook: HookBody,
}

/// The hooks of a project.
#[derive(Debug, Serialize, ToSchema)]
pub struct HooksAnswer {
    pub count: usize,
    pub hooks: Vec<HookBody>,
}

/// A request to have an address told.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateHook {
    pub hook: NewHook,
}

/// The address.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewHook {
    #[schema(example = "https://example.com/accounts", max_length = 2000)]
    pub url: String,
}

/// Something that is told, and how far that is.
#[derive(Debug, Serialize, ToSchema)]
pub struct HookMessageBody {
    /// Also the `webhook-id` of the post.
    pub id: Uuid,
    /// `connection.connected`, `connection.broken`, `connection.expired` or `connection.removed`.
    pub event: String,
    /// What is posted.
    #[schema(value_type = Object)]
    pub body: Value,
    /// `waiting`, `done`, or `dead` when nobody tries any more.
    pub state: String,
    pub attempts: i64,
    /// What the last try was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it is tried next, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<String>,
    pub created_at: String,
}

impl From<HookMessage> for HookMessageBody {
    fn from(message: HookMessage) -> Self {
        Self {
            id: message.id.uuid(),
            event: message.event,
            body: serde_json::from_str(&message.body).unwrap_or_default(),
            next_at: (message.state == "waiting").then(|| message.due_at.to_string()),
            state: message.state,
            attempts: message.attempts,
            status: message.status,
            error: message.error,
            created_at: message.created_at.to_string(),
        }
    }
}

/// A page of what a hook was told, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct HookMessagesAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub messages: Vec<HookMessageBody>,
}

/// List who is told what happens to accounts
#[document::path(get, path = "/tools/connections/hooks", operation_id = "list_connection_hooks", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = HooksAnswer)))]
pub(crate) async fn list(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<HooksAnswer>> {
    let hooks: Vec<HookBody> = app.connections.hooks(scope.project).await?.into_iter().map(Into::into).collect();
    Ok(Json(HooksAnswer { count: hooks.len(), hooks }))
}

/// Have an address told what happens to accounts
///
/// It gets a post when an account is connected, breaks, expires or is removed, signed as Standard Webhooks say with the secret that the answer shows
/// this once. A post that is not answered with a 2xx is sent again, in eight tries over a day.
#[document::path(post, path = "/tools/connections/hooks", operation_id = "create_connection_hook", tag = "Tools", security(("key" = ["edit_tools"])),
    request_body = CreateHook, responses((status = 200, body = HookAnswer), (status = 409, description = "The project has as many hooks as it may")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<CreateHook>,
) -> ApiResult<Json<HookAnswer>> {
    let (hook, secret) = app.connections.create_hook(scope, &body.hook.url).await?;
    Ok(Json(HookAnswer { count: 1, hook: HookBody { secret: Some(secret), ..hook.into() } }))
}

/// Stop telling an address
#[document::path(delete, path = "/tools/connections/hooks/{hook_id}", operation_id = "delete_connection_hook", tag = "Tools", security(("key" = ["edit_tools"])),
    params(("hook_id" = Uuid, Path)), responses((status = 204), (status = 404, description = "No such hook")))]
pub(crate) async fn delete(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<HookId>,
) -> ApiResult<StatusCode> {
    app.connections.delete_hook(scope, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List what a hook was told, newest first
#[document::path(get, path = "/tools/connections/hooks/{hook_id}/messages", operation_id = "list_connection_hook_messages", tag = "Tools", security(("key" = ["view_tools"])),
    params(("hook_id" = Uuid, Path), ListPage), responses((status = 200, body = HookMessagesAnswer), (status = 404, description = "No such hook")))]
pub(crate) async fn messages(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf(id): PathOf<HookId>,
    QueryOf(page): QueryOf<ListPage>,
) -> ApiResult<Json<HookMessagesAnswer>> {
    let (found, cursor) = app.connections.hook_messages(scope.project, id, page.limit, page.cursor.map(HookMessageId::from)).await?;
    let messages: Vec<HookMessageBody> = found.into_iter().map(Into::into).collect();
    Ok(Json(HookMessagesAnswer { count: messages.len(), cursor: cursor.map(HookMessageId::uuid), messages }))
}

/// Send a message again that nobody tries any more
#[document::path(post, path = "/tools/connections/hooks/{hook_id}/messages/{message_id}/retry", operation_id = "retry_connection_hook_message", tag = "Tools",
    security(("key" = ["edit_tools"])), params(("hook_id" = Uuid, Path), ("message_id" = Uuid, Path)),
    responses((status = 204, description = "It will be sent"), (status = 404, description = "No such message that is dead")))]
pub(crate) async fn retry(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf((hook, message)): PathOf<(HookId, HookMessageId)>,
) -> ApiResult<StatusCode> {
    app.connections.retry_hook_message(scope.project, hook, message).await?;
    Ok(StatusCode::NO_CONTENT)
}
