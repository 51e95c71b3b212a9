//! `/v3.1/webhook_subscriptions`

use axum::extract::State;
use composio_api::page::Page;
use composio_api::webhooks::{EventTypes, RotatedSecret, WebhookBody, WebhookChange, event_types};
use document::{IntoParams, ToSchema};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{ApiAnswer, Asked, ByKey};
use crate::App;
use crate::edge::auth::{EditTriggers, ViewTriggers};
use crate::edge::{Json, PathOf, Payload};

/// A page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioWebhooksQuery {
    limit: Option<String>,
    cursor: Option<String>,
}

/// List the webhook subscription of the project
#[document::path(get, path = "/v3.1/webhook_subscriptions", operation_id = "composio_list_webhooks", tag = "Composio's API",
    security(("key" = ["view_triggers"]), ("composio_key" = [])), params(ComposioWebhooksQuery), responses((status = 200, body = inline(Page<WebhookBody>))))]
pub(crate) async fn list(
    ByKey(scope, _): ByKey<ViewTriggers>,
    State(app): State<App>,
    Asked(query): Asked<ComposioWebhooksQuery>,
) -> ApiAnswer<Json<Page<WebhookBody>>> {
    Ok(Json(app.composio_api.webhooks(scope, query.limit.as_deref(), query.cursor.as_deref()).await?))
}

/// What a webhook subscription shall be.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::ChangeWebhookSubscription)]
pub struct ChangeWebhookBody {
    /// `https`, or what the operator opened.
    pub webhook_url: Option<String>,
    /// One kind of event at least.
    pub enabled_events: Option<Vec<String>>,
    /// `V1`, `V2` or `V3`, which it is where nothing is said.
    pub version: Option<String>,
}

impl From<ChangeWebhookBody> for WebhookChange {
    fn from(body: ChangeWebhookBody) -> Self {
        Self { url: body.webhook_url, events: body.enabled_events, version: body.version }
    }
}

/// Make the webhook subscription of the project
#[document::path(post, path = "/v3.1/webhook_subscriptions", operation_id = "composio_create_webhook", tag = "Composio's API",
    security(("key" = ["edit_triggers"]), ("composio_key" = [])), request_body = ChangeWebhookBody,
    responses((status = 201, body = WebhookBody), (status = 400, description = "A bad address, event or version"), (status = 409, description = "There is one already")))]
pub(crate) async fn create(
    ByKey(scope, _): ByKey<EditTriggers>,
    State(app): State<App>,
    Payload(body): Payload<ChangeWebhookBody>,
) -> ApiAnswer<(StatusCode, Json<WebhookBody>)> {
    Ok((StatusCode::CREATED, Json(app.composio_api.create_webhook(scope, body.into()).await?)))
}

/// List the kinds of events that a webhook can be sent
#[document::path(get, path = "/v3.1/webhook_subscriptions/event_types", operation_id = "composio_list_webhook_events", tag = "Composio's API",
    security(("key" = ["view_triggers"]), ("composio_key" = [])), responses((status = 200, body = EventTypes)))]
pub(crate) async fn events(ByKey(..): ByKey<ViewTriggers>) -> Json<EventTypes> {
    Json(event_types())
}

/// Read the webhook subscription
#[document::path(get, path = "/v3.1/webhook_subscriptions/{webhook_id}", operation_id = "composio_fetch_webhook", tag = "Composio's API",
    security(("key" = ["view_triggers"]), ("composio_key" = [])), params(("webhook_id" = String, Path)),
    responses((status = 200, body = WebhookBody), (status = 404, description = "No such webhook subscription")))]
pub(crate) async fn fetch(
    ByKey(scope, _): ByKey<ViewTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<WebhookBody>> {
    Ok(Json(app.composio_api.read_webhook(scope, &id).await?))
}

/// Change the webhook subscription; what is left out stays
#[document::path(patch, path = "/v3.1/webhook_subscriptions/{webhook_id}", operation_id = "composio_change_webhook", tag = "Composio's API",
    security(("key" = ["edit_triggers"]), ("composio_key" = [])), params(("webhook_id" = String, Path)), request_body = ChangeWebhookBody,
    responses((status = 200, body = WebhookBody), (status = 400, description = "A bad address, event or version"), (status = 404, description = "No such webhook subscription")))]
pub(crate) async fn change(
    ByKey(scope, _): ByKey<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<ChangeWebhookBody>,
) -> ApiAnswer<Json<WebhookBody>> {
    Ok(Json(app.composio_api.change_webhook(scope, &id, body.into()).await?))
}

/// It was done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = composio::DeletedWebhookSubscription)]
pub struct DeletedWebhook {
    pub id: String,
    pub success: bool,
}

/// Delete the webhook subscription, with what it was still to be told
#[document::path(delete, path = "/v3.1/webhook_subscriptions/{webhook_id}", operation_id = "composio_delete_webhook", tag = "Composio's API",
    security(("key" = ["edit_triggers"]), ("composio_key" = [])), params(("webhook_id" = String, Path)),
    responses((status = 200, body = DeletedWebhook), (status = 404, description = "No such webhook subscription")))]
pub(crate) async fn delete(
    ByKey(scope, _): ByKey<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<DeletedWebhook>> {
    app.composio_api.delete_webhook(scope, &id).await?;
    Ok(Json(DeletedWebhook { id, success: true }))
}

/// Sign with another secret; the one before signs too for a day
#[document::path(post, path = "/v3.1/webhook_subscriptions/{webhook_id}/rotate_secret", operation_id = "composio_rotate_webhook_secret", tag = "Composio's API",
    security(("key" = ["edit_triggers"]), ("composio_key" = [])), params(("webhook_id" = String, Path)),
    responses((status = 200, body = RotatedSecret), (status = 404, description = "No such webhook subscription"), (status = 409, description = "It was changed meanwhile")))]
pub(crate) async fn rotate(
    ByKey(scope, _): ByKey<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<RotatedSecret>> {
    Ok(Json(app.composio_api.rotate_webhook_secret(scope, &id).await?))
}
