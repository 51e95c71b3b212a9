//! `/triggers/subscriptions`

use std::time::Duration;

use axum::extract::State;
use document::ToSchema;
use http::StatusCode;
use kernel::{ConnectionId, Scope, SubscriptionId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use triggers::{Labels, NewSubscription, ParentQuery, Subscription, TargetKind, TriggerError};
use uuid::Uuid;

use super::bodies::{DeliveryBody, PageParams, SubscriptionBody, Windowing, data, same_id};
use super::deliveries;
use crate::App;
use crate::edge::auth::{EditTriggers, ViewTriggers, while_good};
use crate::edge::{ApiResult, Json, PathOf, Payload, QueryOf, Scoped, Unused};

/// How long a test waits, if nothing shorter is asked for.
const TEST_WAIT: u64 = 300;

/// A request to make or change a subscription.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionRequest {
    pub subscription: NewSubscriptionBody,
}

/// What a subscription shall be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSubscriptionBody {
    /// Needed to change one; must be the id in the path.
    pub id: Option<Uuid>,
    /// Left out only for `WEBHOOK_RECEIVED`, the plain inbound webhook.
    pub connection_id: Option<Uuid>,
    #[schema(value_type = SubscriptionData)]
    pub data: Map<String, Value>,
    #[serde(default)]
    pub flags: NewFlags,
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
    #[schema(ignore)]
    pub provider_key: Unused,
    #[schema(ignore)]
    pub integration_key: Unused,
    #[schema(ignore)]
    pub trigger_id: Unused,
    #[schema(ignore)]
    pub target: Unused,
    #[schema(ignore)]
    pub url: Unused,
    #[schema(ignore)]
    pub reason: Unused,
    #[schema(ignore)]
    pub created_at: Unused,
    #[schema(ignore)]
    pub updated_at: Unused,
    #[schema(ignore)]
    pub deleted_at: Unused,
    #[schema(ignore)]
    pub created_by_id: Unused,
    #[schema(ignore)]
    pub updated_by_id: Unused,
    #[schema(ignore)]
    pub deleted_by_id: Unused,
}

/// What is watched and what it runs. Other members are kept as they are.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "the domain reads it as a document")]
pub struct SubscriptionData {
    #[schema(min_length = 1, example = "WEBHOOK_RECEIVED")]
    event_key: String,
    #[schema(value_type = Option<Object>)]
    trigger_config: Option<Value>,
    /// From the event to the inputs: an object, or a selector.
    #[schema(value_type = Option<crate::shapes::ObjectOrText>)]
    inputs_fields: Option<Value>,
    /// What runs: `workflow` and so on, as in a run.
    #[schema(value_type = Option<Object>)]
    references: Option<Value>,
    #[schema(value_type = Option<Object>)]
    selector: Option<Value>,
    /// Whether events run one after the other.
    ordered: Option<bool>,
    /// Where the sender chose one.
    secret: Option<String>,
}

/// The state to begin in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewFlags {
    pub is_active: bool,
    pub is_valid: bool,
    pub is_test: bool,
}

impl Default for NewFlags {
    fn default() -> Self {
        Self { is_active: true, is_valid: true, is_test: false }
    }
}

impl From<NewSubscriptionBody> for NewSubscription {
    fn from(body: NewSubscriptionBody) -> Self {
        Self {
            connection: body.connection_id.map(ConnectionId::from),
            labels: Labels { name: body.name, description: body.description, tags: body.tags, meta: body.meta.map(Value::Object) },
            target: TargetKind::Workflow,
            data: data(body.data),
            is_active: body.flags.is_active,
            is_valid: body.flags.is_valid,
            is_test: body.flags.is_test,
        }
    }
}

/// One subscription in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct SubscriptionAnswer {
    pub count: usize,
    pub subscription: SubscriptionBody,
    /// Shown once: what the sender signs with, where a person has to carry it there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// What a person has to do at the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
}

/// Subscriptions in an answer, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct SubscriptionsAnswer {
    pub count: usize,
    pub subscriptions: Vec<SubscriptionBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
}

/// Which subscriptions to list.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuerySubscriptions {
    pub subscription: Option<SubscriptionFilter>,
    pub windowing: Option<Windowing>,
}

/// What subscriptions must have.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionFilter {
    /// Part of the name.
    pub name: Option<String>,
    pub connection_id: Option<Uuid>,
    pub event_key: Option<String>,
}

/// A test's outcome; without a delivery when no event came.
#[derive(Debug, Serialize, ToSchema)]
pub struct TestAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryBody>,
}

/// How long to wait.
#[derive(Debug, Default, Deserialize, document::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct TestParams {
    /// Seconds to wait for an event; 300 by default and at most.
    pub wait: Option<u64>,
}

fn answer(app: &App, row: Subscription) -> Json<SubscriptionAnswer> {
    let url = app.triggers.address(&row);
    Json(SubscriptionAnswer { count: 1, subscription: SubscriptionBody::new(row, url), secret: None, setup: None })
}

async fn list_of(app: &App, scope: Scope, filter: SubscriptionFilter, window: Windowing) -> ApiResult<Json<SubscriptionsAnswer>> {
    let query = ParentQuery {
        name: filter.name,
        connection: filter.connection_id.map(ConnectionId::from),
        event_key: filter.event_key,
        ..window.query(app)?
    };
    let page = app.triggers.subscriptions(scope, &query).await?;
    let cursor = page.cursor(|row| row.id.uuid());
    let body = |row: Subscription| {
        let url = app.triggers.address(&row);
        SubscriptionBody::new(row, url)
    };
    let subscriptions: Vec<SubscriptionBody> = page.rows.into_iter().map(body).collect();
    Ok(Json(SubscriptionsAnswer { count: subscriptions.len(), subscriptions, cursor }))
}

/// Subscribe to an event
#[document::path(post, path = "/triggers/subscriptions", operation_id = "create_trigger_subscription", tag = "Triggers", security(("key" = ["edit_triggers"])),
    request_body = SubscriptionRequest, responses((status = 200, body = SubscriptionAnswer), (status = 404, description = "No such connection"),
        (status = 409, description = "This connection, event and configuration is watched already"), (status = 422, description = "Bad event, configuration, mapping or target"),
        (status = 424, description = "The provider refused"), (status = 502, description = "The provider failed")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    Payload(body): Payload<SubscriptionRequest>,
) -> ApiResult<Json<SubscriptionAnswer>> {
    let made = app.triggers.subscribe(scope, body.subscription.into()).await?;
    let Json(shown) = answer(&app, made.subscription);
    Ok(Json(SubscriptionAnswer { secret: made.secret, setup: made.setup, ..shown }))
}

/// List subscriptions, newest first
#[document::path(get, path = "/triggers/subscriptions", operation_id = "list_trigger_subscriptions", tag = "Triggers", security(("key" = ["view_triggers"])),
    params(PageParams), responses((status = 200, body = SubscriptionsAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    QueryOf(params): QueryOf<PageParams>,
) -> ApiResult<Json<SubscriptionsAnswer>> {
    list_of(&app, scope, SubscriptionFilter::default(), params.into()).await
}

/// Query subscriptions
#[document::path(post, path = "/triggers/subscriptions/query", operation_id = "query_trigger_subscriptions", tag = "Triggers", security(("key" = ["view_triggers"])),
    request_body = QuerySubscriptions, responses((status = 200, body = SubscriptionsAnswer)))]
pub(crate) async fn query(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    Payload(body): Payload<QuerySubscriptions>,
) -> ApiResult<Json<SubscriptionsAnswer>> {
    list_of(&app, scope, body.subscription.unwrap_or_default(), body.windowing.unwrap_or_default()).await
}

/// Wait for one event without running anything
#[document::path(post, path = "/triggers/subscriptions/test", operation_id = "test_trigger_subscription", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(TestParams), request_body = SubscriptionRequest, responses((status = 200, body = TestAnswer), (status = 404, description = "No such connection"), (status = 409, description = "Triggers are paused here"), (status = 424, description = "The provider refused")))]
pub(crate) async fn test(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    QueryOf(params): QueryOf<TestParams>,
    Payload(body): Payload<SubscriptionRequest>,
) -> ApiResult<Json<TestAnswer>> {
    let wait = Duration::from_secs(params.wait.unwrap_or(TEST_WAIT).min(TEST_WAIT));
    let found = while_good(&app, scope, Box::pin(app.triggers.test_subscription(scope, body.subscription.into(), wait))).await??;
    let delivery = match found {
        Some(found) => Some(deliveries::body_of(&app, scope, found, None).await?),
        None => None,
    };
    Ok(Json(TestAnswer { count: usize::from(delivery.is_some()), delivery }))
}

/// Read a subscription
#[document::path(get, path = "/triggers/subscriptions/{subscription_id}", operation_id = "fetch_trigger_subscription", tag = "Triggers", security(("key" = ["view_triggers"])),
    params(("subscription_id" = Uuid, Path)), responses((status = 200, body = SubscriptionAnswer), (status = 404, description = "No such subscription")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<SubscriptionAnswer>> {
    let row = app.triggers.subscription(scope, SubscriptionId::from(id)).await?;
    Ok(answer(&app, row))
}

/// Replace a subscription
#[document::path(put, path = "/triggers/subscriptions/{subscription_id}", operation_id = "edit_trigger_subscription", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(("subscription_id" = Uuid, Path)), request_body = SubscriptionRequest, responses((status = 200, body = SubscriptionAnswer), (status = 400, description = "The ids differ"), (status = 404, description = "No such subscription"), (status = 422, description = "Bad event, configuration, mapping or target")))]
pub(crate) async fn edit(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
    Payload(body): Payload<SubscriptionRequest>,
) -> ApiResult<Json<SubscriptionAnswer>> {
    same_id(id, body.subscription.id)?;
    let row = app.triggers.edit_subscription(scope, SubscriptionId::from(id), body.subscription.into()).await?;
    Ok(answer(&app, row))
}

/// Delete a subscription; its deliveries stay
#[document::path(delete, path = "/triggers/subscriptions/{subscription_id}", operation_id = "delete_trigger_subscription", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(("subscription_id" = Uuid, Path)), responses((status = 204), (status = 404, description = "No such subscription")))]
pub(crate) async fn delete(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<StatusCode> {
    app.triggers.unsubscribe(scope, SubscriptionId::from(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

macro_rules! switch {
    ($name:ident, $verb:literal, $summary:literal, $call:ident) => {
        #[document::path(post, path = concat!("/triggers/subscriptions/{subscription_id}/", $verb), operation_id = concat!($verb, "_trigger_subscription"), summary = $summary, tag = "Triggers",
            security(("key" = ["edit_triggers"])), params(("subscription_id" = Uuid, Path)), responses((status = 200, body = SubscriptionAnswer), (status = 404, description = "No such subscription"), (status = 424, description = "The provider refused")))]
        pub(crate) async fn $name(Scoped(scope, _): Scoped<EditTriggers>, State(app): State<App>, PathOf(id): PathOf<Uuid>) -> ApiResult<Json<SubscriptionAnswer>> {
            let row: Result<Subscription, TriggerError> = app.triggers.$call(scope, SubscriptionId::from(id)).await;
            Ok(answer(&app, row?))
        }
    };
}

switch!(start, "start", "Start a subscription", start_subscription);
switch!(stop, "stop", "Pause a subscription", stop_subscription);
switch!(refresh, "refresh", "Make a subscription valid again", refresh_subscription);
switch!(revoke, "revoke", "Make a subscription invalid, which stops it", revoke_subscription);
