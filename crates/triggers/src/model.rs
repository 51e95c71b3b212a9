//! What is watched, what the clock starts, and what became of it.

use kernel::{
    ApprovalId, ConnectionId, DeliveryId, EndUserId, EventId, KeyId, ProjectId, RunId, ScheduleId, Scope, SubscriptionId, Timestamp, UserId,
};
use serde_json::{Value, json};
use uuid::Uuid;

/// The integration whose events anybody may send: a plain inbound webhook, without a connection.
pub const WEBHOOK: &str = "webhook";
/// Its one event.
pub const WEBHOOK_EVENT: &str = "WEBHOOK_RECEIVED";

/// Who a run acts for: whoever saved the trigger last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    pub key: KeyId,
    pub user: Option<UserId>,
    /// The end user with whose accounts it acts.
    pub end_user: Option<EndUserId>,
}

impl From<Scope> for Actor {
    fn from(scope: Scope) -> Self {
        Self { key: scope.key, user: scope.user, end_user: scope.end_user() }
    }
}

/// Who made and changed a row, and when.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
    pub created_by: Option<Uuid>,
    pub updated_by: Option<Uuid>,
    pub deleted_by: Option<Uuid>,
}

/// Words that the owner of a row chose.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Option<Value>,
    pub meta: Option<Value>,
}

/// Where events of a subscription go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetKind {
    /// To a workflow, which runs.
    #[default]
    Workflow,
    /// To the webhook of the project.
    Webhook,
}

impl TargetKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Webhook => "webhook",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Workflow, Self::Webhook].into_iter().find(|kind| kind.name() == name)
    }
}

/// An event that is watched.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub id: SubscriptionId,
    pub project: ProjectId,
    /// None for a plain inbound webhook.
    pub connection: Option<ConnectionId>,
    pub provider: String,
    pub integration: String,
    pub event_key: String,
    pub labels: Labels,
    pub target: TargetKind,
    /// As its owner wrote it: `event_key`, `trigger_config`, `inputs_fields`, `references`, `selector`, `ordered`.
    pub data: Value,
    pub is_active: bool,
    pub is_valid: bool,
    pub is_test: bool,
    /// Why it is not active or not valid.
    pub reason: Option<String>,
    /// The last part of its address.
    pub token: String,
    pub trigger_id: Option<String>,
    pub actor: Actor,
    pub life: Lifecycle,
    /// When it stopped with its connection, with which it starts again.
    pub(crate) suspended_at: Option<Timestamp>,
    pub(crate) secret: Option<Vec<u8>>,
    pub(crate) poll_cursor: Option<Value>,
}

/// A clock that starts runs.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub id: ScheduleId,
    pub project: ProjectId,
    pub event_key: String,
    pub labels: Labels,
    /// As its owner wrote it: `schedule`, `timezone`, `start_time`, `end_time`, `misfire`, `jitter_seconds`, and what a subscription has.
    pub data: Value,
    pub is_active: bool,
    /// The slot it waits for.
    pub next_fire_at: Option<Timestamp>,
    pub actor: Actor,
    pub life: Lifecycle,
}

/// An event as it came in.
#[derive(Clone, Debug)]
pub struct EventRow {
    pub id: EventId,
    pub project: ProjectId,
    pub subscription: SubscriptionId,
    pub event_id: String,
    pub event_type: String,
    pub headers: Value,
    pub body: Vec<u8>,
    pub attributes: Value,
    pub received_at: Timestamp,
}

impl EventRow {
    /// An event for a subscription, with nothing in it yet.
    pub(crate) fn of(row: &Subscription, event_id: String, received_at: Timestamp) -> Self {
        Self {
            id: EventId::new(),
            project: row.project,
            subscription: row.id,
            event_id,
            event_type: row.event_key.clone(),
            headers: json!({}),
            body: Vec::new(),
            attributes: Value::Null,
            received_at,
        }
    }
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// To be run, now or at its time.
    Ready,
    /// A node is running it.
    Leased,
    /// It was dispatched and ends later.
    Waiting,
    /// It ended.
    Done,
    /// It failed for good; it can be replayed.
    Dead,
    /// Somebody called it off.
    Cancelled,
}

impl State {
    pub const ALL: [Self; 6] = [Self::Ready, Self::Leased, Self::Waiting, Self::Done, Self::Dead, Self::Cancelled];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Leased => "leased",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What a delivery belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parent {
    Subscription(SubscriptionId),
    Schedule(ScheduleId),
}

impl Parent {
    pub fn subscription(self) -> Option<SubscriptionId> {
        match self {
            Self::Subscription(id) => Some(id),
            Self::Schedule(_) => None,
        }
    }

    pub fn schedule(self) -> Option<ScheduleId> {
        match self {
            Self::Schedule(id) => Some(id),
            Self::Subscription(_) => None,
        }
    }
}

impl std::fmt::Display for Parent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Subscription(id) => write!(f, "subscription {id}"),
            Self::Schedule(id) => write!(f, "schedule {id}"),
        }
    }
}

/// One event to one target.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: DeliveryId,
    pub project: ProjectId,
    pub parent: Parent,
    /// The event as it came in; a slot of a schedule has none.
    pub event: Option<EventId>,
    pub event_id: String,
    pub event_key: String,
    pub state: State,
    pub code: String,
    pub message: Option<String>,
    pub data: Value,
    pub attempts: i64,
    /// The approval that its run waits for.
    pub approval: Option<ApprovalId>,
    /// When it is run next, while it is ready.
    pub due_at: Timestamp,
    pub cancelled_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Delivery {
    /// When it is run next, if it will be.
    pub fn next_attempt_at(&self) -> Option<Timestamp> {
        (self.state == State::Ready).then_some(self.due_at)
    }
}

/// What a delivery belongs to, in its owner's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryLabels {
    /// The name of the subscription or schedule.
    pub trigger: Option<String>,
    /// The slug of the workflow, or its id where that is all that is known.
    pub workflow: Option<String>,
}

/// One try of a delivery.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub number: i64,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub code: String,
    pub message: Option<String>,
    pub run: Option<RunId>,
}
