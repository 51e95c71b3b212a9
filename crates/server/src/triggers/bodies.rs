//! Triggers on the wire.

use document::{IntoParams, ToSchema};
use kernel::{ConnectionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::PageSize;
use triggers::{Attempt, Delivery, DeliveryLabels, Labels, Lifecycle, ParentQuery, Schedule, Subscription};
use uuid::Uuid;

use crate::App;
use crate::edge::{ApiError, ApiResult, Code, Unused, moment};

const DEFAULT_PAGE: i64 = 100;
const MAX_PAGE: i64 = 1000;

/// What every trigger row has.
#[derive(Debug, Serialize, ToSchema)]
pub struct RowBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Value>,
    pub created_at: String,
    pub updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_by_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_by_id: Option<Uuid>,
}

impl RowBody {
    fn new(labels: Labels, life: Lifecycle) -> Self {
        Self {
            name: labels.name,
            description: labels.description,
            tags: labels.tags,
            meta: labels.meta,
            created_at: life.created_at.to_string(),
            updated_at: life.updated_at.to_string(),
            deleted_at: life.deleted_at.map(|at| at.to_string()),
            created_by_id: life.created_by,
            updated_by_id: life.updated_by,
            deleted_by_id: life.deleted_by,
        }
    }
}

/// A subscription.
#[derive(Debug, Serialize, ToSchema)]
pub struct SubscriptionBody {
    pub id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<Uuid>,
    pub provider_key: String,
    pub integration_key: String,
    /// The provider's name for the webhook it made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
    pub flags: SubscriptionFlags,
    /// `workflow`, or `webhook` where events go to the webhook of the project in Composio's API.
    #[schema(value_type = String)]
    pub target: &'static str,
    /// As it was given, without its secret.
    #[schema(value_type = Object)]
    pub data: Value,
    /// Where its events are sent.
    pub url: String,
    /// Why it is paused, or what went wrong the last time its events were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(flatten)]
    pub row: RowBody,
}

/// The state of a subscription.
#[derive(Debug, Serialize, ToSchema)]
pub struct SubscriptionFlags {
    pub is_active: bool,
    pub is_valid: bool,
    pub is_test: bool,
}

impl SubscriptionBody {
    pub(crate) fn new(row: Subscription, url: String) -> Self {
        Self {
            id: row.id.uuid(),
            connection_id: row.connection.map(ConnectionId::uuid),
            provider_key: row.provider,
            integration_key: row.integration,
            trigger_id: row.trigger_id,
            flags: SubscriptionFlags { is_active: row.is_active, is_valid: row.is_valid, is_test: row.is_test },
            target: row.target.name(),
            data: row.data,
            url,
            reason: row.reason,
            row: RowBody::new(row.labels, row.life),
        }
    }
}

/// A schedule.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScheduleBody {
    pub id: Uuid,
    pub flags: ScheduleFlags,
    #[schema(value_type = Object)]
    pub data: Value,
    /// The slot it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_fire_at: Option<String>,
    #[serde(flatten)]
    pub row: RowBody,
}

/// The state of a schedule.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScheduleFlags {
    pub is_active: bool,
}

impl From<Schedule> for ScheduleBody {
    fn from(row: Schedule) -> Self {
        Self {
            id: row.id.uuid(),
            flags: ScheduleFlags { is_active: row.is_active },
            data: row.data,
            next_fire_at: row.next_fire_at.map(|at| at.to_string()),
            row: RowBody::new(row.labels, row.life),
        }
    }
}

/// A delivery.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryBody {
    pub id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<Uuid>,
    pub event_id: String,
    /// The stored event; `GET /triggers/events/{event_id}` shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_row_id: Option<Uuid>,
    /// The name of its subscription or schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_name: Option<String>,
    /// The slug of the workflow that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    pub status: DeliveryStatus,
    /// `ready`, `leased`, `waiting`, `done`, `dead` or `cancelled`.
    pub state: &'static str,
    /// When it is run next, while it is `ready`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
    /// Whoever cancelled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_by_id: Option<Uuid>,
    pub attempts_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<AttemptBody>>,
    /// `event_key`, `inputs`, `missed`, `references`, `result`, `session_id`.
    #[schema(value_type = Object)]
    pub data: Value,
    pub created_at: String,
    pub updated_at: String,
}

/// How a delivery stands, as an HTTP status would say it.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryStatus {
    pub timestamp: String,
    pub code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One try of a delivery.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttemptBody {
    pub number: i64,
    pub code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Uuid>,
    pub started_at: String,
    pub ended_at: String,
}

impl From<Attempt> for AttemptBody {
    fn from(attempt: Attempt) -> Self {
        Self {
            number: attempt.number,
            code: attempt.code,
            message: attempt.message,
            run_id: attempt.run.map(kernel::RunId::uuid),
            started_at: attempt.started_at.to_string(),
            ended_at: attempt.ended_at.to_string(),
        }
    }
}

impl DeliveryBody {
    pub(crate) fn new(delivery: Delivery, about: DeliveryLabels, attempts: Option<Vec<Attempt>>) -> Self {
        let next_attempt_at = delivery.next_attempt_at().map(|at| at.to_string());
        let mut data = delivery.data;
        if let Value::Object(fields) = &mut data {
            // What is known before the first run.
            fields.entry("event_key").or_insert(Value::String(delivery.event_key));
        }
        Self {
            id: delivery.id.uuid(),
            subscription_id: delivery.parent.subscription().map(kernel::SubscriptionId::uuid),
            schedule_id: delivery.parent.schedule().map(kernel::ScheduleId::uuid),
            event_id: delivery.event_id,
            event_row_id: delivery.event.map(kernel::EventId::uuid),
            trigger_name: about.trigger,
            workflow: about.workflow,
            next_attempt_at,
            cancelled_by_id: delivery.cancelled_by,
            status: DeliveryStatus { timestamp: delivery.updated_at.to_string(), code: delivery.code, message: delivery.message },
            state: delivery.state.name(),
            attempts_count: delivery.attempts,
            attempts: attempts.map(|attempts| attempts.into_iter().map(Into::into).collect()),
            data,
            created_at: delivery.created_at.to_string(),
            updated_at: delivery.updated_at.to_string(),
        }
    }
}

/// Which part of a list.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Windowing {
    /// Nothing created after this: an ISO 8601 time, `today`, `yesterday`, or how long ago, such as `2h`.
    #[schema(value_type = Option<crate::shapes::TimeText>)]
    pub newest: Option<String>,
    /// Nothing created before this, said in the same ways.
    #[schema(value_type = Option<crate::shapes::TimeText>)]
    pub oldest: Option<String>,
    /// The cursor of the page before.
    pub next: Option<Uuid>,
    /// 100 by default, 1000 at most.
    pub limit: Option<i64>,
    /// Newest first by default.
    #[schema(value_type = Option<crate::shapes::OrderWord>)]
    pub order: Option<String>,
    #[schema(ignore)]
    pub interval: Unused,
    #[schema(ignore)]
    pub rate: Unused,
}

impl Windowing {
    pub(crate) fn size(&self) -> PageSize {
        PageSize::within(self.limit, DEFAULT_PAGE, MAX_PAGE)
    }

    pub(crate) fn newest(&self, app: &App) -> ApiResult<Option<Timestamp>> {
        moment(app, "windowing.newest", self.newest.as_deref())
    }

    pub(crate) fn oldest(&self, app: &App) -> ApiResult<Option<Timestamp>> {
        moment(app, "windowing.oldest", self.oldest.as_deref())
    }

    /// Whether the oldest come first.
    pub(crate) fn ascending(&self) -> ApiResult<bool> {
        match self.order.as_deref() {
            None | Some("descending") => Ok(false),
            Some("ascending") => Ok(true),
            Some(_) => Err(ApiError::unprocessable("`windowing.order` must be ascending or descending")),
        }
    }

    /// The query that this window asks for.
    pub(crate) fn query(&self, app: &App) -> ApiResult<ParentQuery> {
        Ok(ParentQuery {
            newest: self.newest(app)?,
            oldest: self.oldest(app)?,
            next: self.next,
            ascending: self.ascending()?,
            size: self.size(),
            ..ParentQuery::default()
        })
    }
}

/// A page of a list in the query string.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PageParams {
    /// 100 by default, 1000 at most.
    pub limit: Option<i64>,
    /// The `cursor` of the page before.
    pub cursor: Option<Uuid>,
}

impl From<PageParams> for Windowing {
    fn from(page: PageParams) -> Self {
        Self { limit: page.limit, next: page.cursor, ..Self::default() }
    }
}

/// `data` as an object; what it must hold is checked by the domain.
pub(crate) fn data(data: Map<String, Value>) -> Value {
    Value::Object(data)
}

/// A body that names its row must name the one in the path.
pub(crate) fn same_id(path: Uuid, body: Option<Uuid>) -> ApiResult<()> {
    if body == Some(path) { Ok(()) } else { Err(ApiError::new(Code::IdMismatch, "The id in the body must be the id in the path.")) }
}
