//! `/triggers/schedules`

use axum::extract::State;
use document::{IntoParams, ToSchema};
use http::StatusCode;
use kernel::{ScheduleId, Scope, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use triggers::{Labels, NewSchedule, ParentQuery, Schedule};
use uuid::Uuid;

use super::bodies::{PageParams, ScheduleBody, Windowing, data, same_id};
use super::deliveries::{self, DeliveryAnswer};
use crate::App;
use crate::edge::auth::{EditTriggers, Operator, ViewTriggers};
use crate::edge::{ApiError, ApiResult, Json, PathOf, Payload, QueryOf, Scoped, Unused};

/// A request to make or change a schedule.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRequest {
    pub schedule: NewScheduleBody,
}

/// What a schedule shall be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewScheduleBody {
    /// Needed to change one; must be the id in the path.
    pub id: Option<Uuid>,
    #[schema(value_type = ScheduleData)]
    pub data: Map<String, Value>,
    #[serde(default)]
    pub flags: NewScheduleFlags,
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
    #[schema(ignore)]
    pub next_fire_at: Unused,
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

/// When it fires and what it runs. Other members are kept as they are.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "the domain reads it as a document")]
pub struct ScheduleData {
    #[schema(min_length = 1, example = "tick")]
    event_key: String,
    /// Five cron fields.
    #[schema(min_length = 9, example = "0 9 * * mon-fri")]
    schedule: String,
    /// A name of the time zone database; `UTC` by default.
    timezone: Option<String>,
    start_time: Option<String>,
    end_time: Option<String>,
    /// `skip`, `fire_once`, or `{"policy": "catch_up", "limit": 10}`.
    #[schema(value_type = Option<crate::shapes::ObjectOrText>)]
    misfire: Option<Value>,
    #[schema(minimum = 0)]
    jitter_seconds: Option<u32>,
    /// From the slot to the inputs: an object, or a selector.
    #[schema(value_type = Option<crate::shapes::ObjectOrText>)]
    inputs_fields: Option<Value>,
    /// What runs: `workflow` and so on, as in a run.
    #[schema(value_type = Option<Object>)]
    references: Option<Value>,
    #[schema(value_type = Option<Object>)]
    selector: Option<Value>,
}

/// The state to begin in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewScheduleFlags {
    pub is_active: bool,
}

impl Default for NewScheduleFlags {
    fn default() -> Self {
        Self { is_active: true }
    }
}

impl From<NewScheduleBody> for NewSchedule {
    fn from(body: NewScheduleBody) -> Self {
        Self {
            labels: Labels { name: body.name, description: body.description, tags: body.tags, meta: body.meta.map(Value::Object) },
            data: data(body.data),
            is_active: body.flags.is_active,
        }
    }
}

/// One schedule in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScheduleAnswer {
    pub count: usize,
    pub schedule: ScheduleBody,
}

impl From<Schedule> for ScheduleAnswer {
    fn from(row: Schedule) -> Self {
        Self { count: 1, schedule: row.into() }
    }
}

/// Schedules in an answer, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct SchedulesAnswer {
    pub count: usize,
    pub schedules: Vec<ScheduleBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
}

/// Which schedules to list.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuerySchedules {
    pub schedule: Option<ScheduleFilter>,
    pub windowing: Option<Windowing>,
}

/// What schedules must have.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleFilter {
    /// Part of the name.
    pub name: Option<String>,
    pub event_key: Option<String>,
}

/// The next times of a schedule.
#[derive(Debug, Serialize, ToSchema)]
pub struct UpcomingAnswer {
    pub count: usize,
    pub times: Vec<String>,
}

async fn list_of(app: &App, scope: Scope, filter: ScheduleFilter, window: Windowing) -> ApiResult<Json<SchedulesAnswer>> {
    let query = ParentQuery { name: filter.name, event_key: filter.event_key, ..window.query(app)? };
    let page = app.triggers.schedules(scope, &query).await?;
    let cursor = page.cursor(|row| row.id.uuid());
    let schedules: Vec<ScheduleBody> = page.rows.into_iter().map(Into::into).collect();
    Ok(Json(SchedulesAnswer { count: schedules.len(), schedules, cursor }))
}

/// Make a schedule
#[document::path(post, path = "/triggers/schedules", operation_id = "create_trigger_schedule", tag = "Triggers", security(("key" = ["edit_triggers"])),
    request_body = ScheduleRequest, responses((status = 200, body = ScheduleAnswer), (status = 409, description = "The project has as many schedules as it may"), (status = 422, description = "Bad cron expression, time zone, window, mapping or target")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    Payload(body): Payload<ScheduleRequest>,
) -> ApiResult<Json<ScheduleAnswer>> {
    Ok(Json(app.triggers.create_schedule(scope, body.schedule.into()).await?.into()))
}

/// List schedules, newest first
#[document::path(get, path = "/triggers/schedules", operation_id = "list_trigger_schedules", tag = "Triggers", security(("key" = ["view_triggers"])),
    params(PageParams), responses((status = 200, body = SchedulesAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    QueryOf(params): QueryOf<PageParams>,
) -> ApiResult<Json<SchedulesAnswer>> {
    list_of(&app, scope, ScheduleFilter::default(), params.into()).await
}

/// Query schedules
#[document::path(post, path = "/triggers/schedules/query", operation_id = "query_trigger_schedules", tag = "Triggers", security(("key" = ["view_triggers"])),
    request_body = QuerySchedules, responses((status = 200, body = SchedulesAnswer)))]
pub(crate) async fn query(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    Payload(body): Payload<QuerySchedules>,
) -> ApiResult<Json<SchedulesAnswer>> {
    list_of(&app, scope, body.schedule.unwrap_or_default(), body.windowing.unwrap_or_default()).await
}

/// The next ten times of a schedule that may be
#[document::path(post, path = "/triggers/schedules/preview", operation_id = "preview_trigger_schedule", tag = "Triggers", security(("key" = ["view_triggers"])),
    request_body = ScheduleRequest, responses((status = 200, body = UpcomingAnswer), (status = 422, description = "Bad cron expression, time zone or window")))]
pub(crate) async fn preview(
    _: Scoped<ViewTriggers>,
    State(app): State<App>,
    Payload(body): Payload<ScheduleRequest>,
) -> ApiResult<Json<UpcomingAnswer>> {
    let times: Vec<String> = app.triggers.upcoming(&data(body.schedule.data))?.iter().map(ToString::to_string).collect();
    Ok(Json(UpcomingAnswer { count: times.len(), times }))
}

/// Read a schedule
#[document::path(get, path = "/triggers/schedules/{schedule_id}", operation_id = "fetch_trigger_schedule", tag = "Triggers", security(("key" = ["view_triggers"])),
    params(("schedule_id" = Uuid, Path)), responses((status = 200, body = ScheduleAnswer), (status = 404, description = "No such schedule")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<ScheduleAnswer>> {
    Ok(Json(app.triggers.schedule(scope, ScheduleId::from(id)).await?.into()))
}

/// Replace a schedule
#[document::path(put, path = "/triggers/schedules/{schedule_id}", operation_id = "edit_trigger_schedule", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(("schedule_id" = Uuid, Path)), request_body = ScheduleRequest, responses((status = 200, body = ScheduleAnswer), (status = 400, description = "The ids differ"), (status = 404, description = "No such schedule"), (status = 409, description = "The project has no room for a larger one"), (status = 422, description = "Bad cron expression, time zone, window, mapping or target")))]
pub(crate) async fn edit(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
    Payload(body): Payload<ScheduleRequest>,
) -> ApiResult<Json<ScheduleAnswer>> {
    same_id(id, body.schedule.id)?;
    Ok(Json(app.triggers.edit_schedule(scope, ScheduleId::from(id), body.schedule.into()).await?.into()))
}

/// Delete a schedule; its deliveries stay
#[document::path(delete, path = "/triggers/schedules/{schedule_id}", operation_id = "delete_trigger_schedule", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(("schedule_id" = Uuid, Path)), responses((status = 204), (status = 404, description = "No such schedule")))]
pub(crate) async fn delete(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<StatusCode> {
    app.triggers.delete_schedule(scope, ScheduleId::from(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start a schedule
#[document::path(post, path = "/triggers/schedules/{schedule_id}/start", operation_id = "start_trigger_schedule", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(("schedule_id" = Uuid, Path)), responses((status = 200, body = ScheduleAnswer), (status = 404, description = "No such schedule"), (status = 422, description = "Its window is over")))]
pub(crate) async fn start(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<ScheduleAnswer>> {
    Ok(Json(app.triggers.switch_schedule(scope, ScheduleId::from(id), true).await?.into()))
}

/// Pause a schedule
#[document::path(post, path = "/triggers/schedules/{schedule_id}/stop", operation_id = "stop_trigger_schedule", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(("schedule_id" = Uuid, Path)), responses((status = 200, body = ScheduleAnswer), (status = 404, description = "No such schedule")))]
pub(crate) async fn stop(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<ScheduleAnswer>> {
    Ok(Json(app.triggers.switch_schedule(scope, ScheduleId::from(id), false).await?.into()))
}

/// Run a schedule now
#[document::path(post, path = "/triggers/schedules/{schedule_id}/run", operation_id = "run_trigger_schedule", tag = "Triggers", security(("key" = ["edit_triggers"])),
    params(("schedule_id" = Uuid, Path)), responses((status = 200, body = DeliveryAnswer), (status = 404, description = "No such schedule")))]
pub(crate) async fn run(
    Scoped(scope, _): Scoped<EditTriggers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<DeliveryAnswer>> {
    let delivery = app.triggers.run_schedule(scope, ScheduleId::from(id)).await?;
    deliveries::answer(&app, scope, delivery).await
}

/// An outside clock's tick.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Tick {
    /// Minutes between ticks.
    #[param(minimum = 1, maximum = 60)]
    pub trigger_interval: Option<i64>,
    /// The time of the tick.
    pub trigger_datetime: Option<String>,
}

/// What a tick came to.
#[derive(Debug, Serialize, ToSchema)]
pub struct TickAnswer {
    /// `success`, `failure` or `error`.
    pub status: &'static str,
}

/// Fire what is due, on an outside clock's word
///
/// Toolyard keeps its own clock, so nobody needs to call this; a tick for what was fired already does nothing.
#[document::path(post, path = "/admin/triggers/schedules/refresh", operation_id = "refresh_trigger_schedules", tag = "Admin", security(("operator" = [])),
    params(Tick), responses((status = 200, body = TickAnswer), (status = 422, description = "Bad interval")))]
pub(crate) async fn tick(_: Operator, State(app): State<App>, QueryOf(tick): QueryOf<Tick>) -> ApiResult<Json<TickAnswer>> {
    let interval = tick.trigger_interval.unwrap_or(1);
    if !(1..=60).contains(&interval) {
        return Err(ApiError::unprocessable("`trigger_interval` must be 1 to 60"));
    }
    let Some(at) = tick.trigger_datetime.as_deref().and_then(Timestamp::read_iso) else { return Ok(Json(TickAnswer { status: "error" })) };
    let status = match app.triggers.fire_until(at).await {
        Ok(_) => "success",
        Err(error) => {
            tracing::error!(%error, "a tick could not be fired");
            "failure"
        }
    };
    Ok(Json(TickAnswer { status }))
}
