//! `/triggers/deliveries`, `/triggers/events` and `/triggers/preview`

use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use document::ToSchema;
use kernel::{DeliveryId, EventId, ScheduleId, Scope, SubscriptionId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use triggers::{Attempt, Completion, Delivery, DeliveryQuery};
use uuid::Uuid;

use super::bodies::{DeliveryBody, PageParams, Windowing};
use crate::App;
use crate::edge::auth::{EditTriggers, RunTriggers, ViewTriggers};
use crate::edge::{ApiResult, Json, PathOf, Payload, QueryOf, Scoped};

/// One delivery in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryAnswer {
    pub count: usize,
    pub delivery: DeliveryBody,
}

/// Deliveries in an answer, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveriesAnswer {
    pub count: usize,
    pub deliveries: Vec<DeliveryBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
}

/// Which deliveries to list.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryDeliveries {
    pub delivery: Option<DeliveryFilter>,
    pub windowing: Option<Windowing>,
}

/// What deliveries must have.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryFilter {
    pub status: Option<StatusFilter>,
    #[schema(value_type = Option<crate::shapes::DeliveryWord>)]
    pub state: Option<String>,
    pub subscription_id: Option<Uuid>,
    pub schedule_id: Option<Uuid>,
    pub event_id: Option<String>,
}

/// A status to look for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusFilter {
    pub code: Option<String>,
}

/// How many deliveries are run again.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReplayAnswer {
    pub count: u64,
}

/// How a dispatched run ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteDelivery {
    pub status: EndStatus,
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Value>,
}

/// The end of a run, as an HTTP status says it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndStatus {
    #[schema(example = 200)]
    pub code: i64,
    pub message: Option<String>,
}

/// An event as it came in.
#[derive(Debug, Serialize, ToSchema)]
pub struct StoredEventAnswer {
    pub count: usize,
    pub event: StoredEvent,
}

/// An event with its raw payload.
#[derive(Debug, Serialize, ToSchema)]
pub struct StoredEvent {
    pub id: Uuid,
    pub subscription_id: Uuid,
    pub event_id: String,
    pub event_type: String,
    #[schema(value_type = Object)]
    pub headers: Value,
    /// The body as it came, where it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The body in Base64, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    #[schema(value_type = Object)]
    pub attributes: Value,
    pub received_at: String,
}

/// A mapping and an event to try it on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    #[schema(value_type = Option<crate::shapes::ObjectOrText>)]
    pub inputs_fields: Option<Value>,
    /// The delivery whose event to map.
    pub delivery_id: Option<Uuid>,
    /// Or an event's attributes.
    #[schema(value_type = Option<Object>)]
    pub event: Option<Map<String, Value>>,
}

/// What a mapping makes of an event.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewAnswer {
    #[schema(value_type = Object)]
    pub inputs: Value,
    /// Selectors that found nothing: where they stand and what they say.
    #[schema(value_type = Vec<Object>)]
    pub missed: Vec<Value>,
}

fn query_of(app: &App, filter: DeliveryFilter, window: &Windowing) -> ApiResult<DeliveryQuery> {
    Ok(DeliveryQuery {
        code: filter.status.and_then(|status| status.code),
        state: filter.state,
        subscription: filter.subscription_id.map(SubscriptionId::from),
        schedule: filter.schedule_id.map(ScheduleId::from),
        event_id: filter.event_id,
        newest: window.newest(app)?,
        oldest: window.oldest(app)?,
        next: window.next,
        ascending: window.ascending()?,
        size: window.size(),
    })
}

async fn list_of(app: &App, scope: Scope, filter: DeliveryFilter, window: Windowing) -> ApiResult<Json<DeliveriesAnswer>> {
    let page = app.triggers.deliveries(scope, &query_of(app, filter, &window)?).await?;
    let cursor = page.cursor(|(row, _)| row.id.uuid());
    let deliveries: Vec<DeliveryBody> = page.rows.into_iter().map(|(row, about)| DeliveryBody::new(row, about, None)).collect();
    Ok(Json(DeliveriesAnswer { count: deliveries.len(), deliveries, cursor }))
}

/// One delivery, with what it belongs to.
pub(super) async fn body_of(app: &App, scope: Scope, delivery: Delivery, attempts: Option<Vec<Attempt>>) -> ApiResult<DeliveryBody> {
    let about = app.triggers.about(scope, &delivery).await?;
    Ok(DeliveryBody::new(delivery, about, attempts))
}

pub(super) async fn answer(app: &App, scope: Scope, delivery: Delivery) -> ApiResult<Json<DeliveryAnswer>> {
    Ok(Json(DeliveryAnswer { count: 1, delivery: body_of(app, scope, delivery, None).await? }))
}

/// List deliveries, newest first
#[document::path(get, path = "/triggers/deliveries", operation_id = "list_trigger_deliveries", tag = "Triggers", security(("key" = ["view_triggers"])),
    params(PageParams), responses((status = 200, body = DeliveriesAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    QueryOf(params): QueryOf<PageParams>,
) -> ApiResult<Json<DeliveriesAnswer>> {
    list_of(&app, scope, DeliveryFilter::default(), params.into()).await
}

/// Query deliveries
#[document::path(post, path = "/triggers/deliveries/query", operation_id = "query_trigger_deliveries", tag = "Triggers", security(("key" = ["view_triggers"])),
    request_body = QueryDeliveries, responses((status = 200, body = DeliveriesAnswer), (status = 422, description = "Bad state or time")))]
pub(crate) async fn query(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    Payload(body): Payload<QueryDeliveries>,
) -> ApiResult<Json<DeliveriesAnswer>> {
    list_of(&app, scope, body.delivery.unwrap_or_default(), body.windowing.unwrap_or_default()).await
}

/// Run again everything that failed for good and fits
#[document::path(post, path = "/triggers/deliveries/replay", operation_id = "replay_trigger_deliveries", tag = "Triggers", security(("key" = ["edit_triggers"])),
    request_body = QueryDeliveries, responses((status = 200, body = ReplayAnswer), (status = 422, description = "Bad time")))]
pub(crate) async fn replay(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    Payload(body): Payload<QueryDeliveries>,
) -> ApiResult<Json<ReplayAnswer>> {
    let query = query_of(&app, body.delivery.unwrap_or_default(), &body.windowing.unwrap_or_default())?;
    Ok(Json(ReplayAnswer { count: app.triggers.replay(scope, &query).await? }))
}

/// Read a delivery with its attempts
#[document::path(get, path = "/triggers/deliveries/{delivery_id}", operation_id = "fetch_trigger_delivery", tag = "Triggers", security(("key" = ["view_triggers"])),
    params(("delivery_id" = Uuid, Path)), responses((status = 200, body = DeliveryAnswer), (status = 404, description = "No such delivery")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<DeliveryAnswer>> {
    let (delivery, attempts) = app.triggers.delivery(scope, DeliveryId::from(id)).await?;
    Ok(Json(DeliveryAnswer { count: 1, delivery: body_of(&app, scope, delivery, Some(attempts)).await? }))
}

/// Run a delivery that has ended once more
#[document::path(post, path = "/triggers/deliveries/{delivery_id}/retry", operation_id = "retry_trigger_delivery", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(("delivery_id" = Uuid, Path)), responses((status = 200, body = DeliveryAnswer), (status = 404, description = "No such delivery"), (status = 409, description = "It is under way")))]
pub(crate) async fn retry(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<DeliveryAnswer>> {
    let delivery = app.triggers.retry(scope, DeliveryId::from(id)).await?;
    answer(&app, scope, delivery).await
}

/// Cancel a delivery that has not ended
///
/// It is not tried again, and a run under way is cut off. What the run did already stays done.
#[document::path(post, path = "/triggers/deliveries/{delivery_id}/cancel", operation_id = "cancel_trigger_delivery", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(("delivery_id" = Uuid, Path)), responses((status = 200, body = DeliveryAnswer), (status = 404, description = "No such delivery"), (status = 409, description = "It has ended")))]
pub(crate) async fn cancel(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<DeliveryAnswer>> {
    let delivery = app.triggers.cancel(scope, DeliveryId::from(id)).await?;
    app.agent_runs.cancel_of(scope, delivery.id).await?;
    answer(&app, scope, delivery).await
}

/// Say how a dispatched run ended
#[document::path(post, path = "/triggers/deliveries/{delivery_id}/complete", operation_id = "complete_trigger_delivery", tag = "Triggers", security(("key" = ["run_triggers"])),
    params(("delivery_id" = Uuid, Path)), request_body = CompleteDelivery, responses((status = 200, body = DeliveryAnswer), (status = 404, description = "No such delivery"), (status = 409, description = "It was not dispatched, or has ended")))]
pub(crate) async fn complete(
    Scoped(scope, _): Scoped<RunTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
    Payload(body): Payload<CompleteDelivery>,
) -> ApiResult<Json<DeliveryAnswer>> {
    let end = Completion { code: body.status.code, message: body.status.message, outputs: body.outputs };
    let delivery = app.triggers.complete(scope, DeliveryId::from(id), end).await?;
    answer(&app, scope, delivery).await
}

/// Read an event as it came in
#[document::path(get, path = "/triggers/events/{event_row_id}", operation_id = "fetch_trigger_stored_event", tag = "Triggers", security(("key" = ["view_triggers"])),
    params(("event_row_id" = Uuid, Path)), responses((status = 200, body = StoredEventAnswer), (status = 404, description = "No such event")))]
pub(crate) async fn event(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<StoredEventAnswer>> {
    let event = app.triggers.event(scope, EventId::from(id)).await?;
    let (body, body_base64) = match String::from_utf8(event.body) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
    };
    let event = StoredEvent {
        id: event.id.uuid(),
        subscription_id: event.subscription.uuid(),
        event_id: event.event_id,
        event_type: event.event_type,
        headers: event.headers,
        body,
        body_base64,
        attributes: event.attributes,
        received_at: event.received_at.to_string(),
    };
    Ok(Json(StoredEventAnswer { count: 1, event }))
}

/// See what a mapping makes of an event
#[document::path(post, path = "/triggers/preview", operation_id = "preview_trigger_inputs", tag = "Triggers", security(("key" = ["view_triggers"])),
    request_body = PreviewRequest, responses((status = 200, body = PreviewAnswer), (status = 400, description = "No event is named"), (status = 404, description = "No such delivery"), (status = 422, description = "The mapping cannot be read")))]
pub(crate) async fn preview(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    Payload(body): Payload<PreviewRequest>,
) -> ApiResult<Json<PreviewAnswer>> {
    let event = body.event.map(Value::Object);
    let mapped = app.triggers.preview(scope, body.inputs_fields, body.delivery_id.map(DeliveryId::from), event).await?;
    let missed = mapped.missed.iter().map(|miss| json!({"place": miss.place, "selector": miss.selector})).collect();
    Ok(Json(PreviewAnswer { inputs: mapped.inputs, missed }))
}
