//! Deliveries: what became of events, run again on request, ended from outside, forgotten after a while.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use kernel::{Budget, DeliveryId, EventId, ProjectId, ScheduleId, Scope, SubscriptionId, Timestamp, json, suggest};
use serde_json::{Value, json};
use store::{Page, PageSize, Row, StoreError, args, page_bytes, page_sql};
use uuid::Uuid;
use work::LARGE;

use crate::context;
use crate::engine::CANCELLED;
use crate::mapping::{Mapped, Mapping, MappingError};
use crate::model::{Attempt, Delivery, DeliveryLabels, EventRow, Parent, State};
use crate::store::{self as rows, delivery_columns};
use crate::{RowKind, TriggerError, Triggers};

const MAX_REPLAY: i64 = 10_000;

/// Which deliveries to list or replay.
#[derive(Clone, Debug, Default)]
pub struct DeliveryQuery {
    pub code: Option<String>,
    pub state: Option<String>,
    pub subscription: Option<SubscriptionId>,
    pub schedule: Option<ScheduleId>,
    pub event_id: Option<String>,
    pub newest: Option<Timestamp>,
    pub oldest: Option<Timestamp>,
    pub next: Option<Uuid>,
    /// Whether the oldest come first.
    pub ascending: bool,
    pub size: PageSize,
}

/// How a dispatched run ended.
#[derive(Clone, Debug)]
pub struct Completion {
    pub code: i64,
    pub message: Option<String>,
    pub outputs: Option<Value>,
}

impl DeliveryQuery {
    fn state(&self) -> Result<Option<State>, TriggerError> {
        let read = |state: &str| {
            State::named(state).ok_or_else(|| {
                let names = State::ALL.map(State::name).join(", ");
                let hint = suggest::did_you_mean(state, State::ALL.map(State::name));
                TriggerError::Invalid(format!("`{state}` is not a state; there are: {names}.{hint}"))
            })
        };
        self.state.as_deref().map(read).transpose()
    }
}

impl Triggers {
    /// Each with what it belongs to.
    #[kernel::boxed]
    pub async fn deliveries(&self, scope: Scope, query: &DeliveryQuery) -> Result<Page<(Delivery, DeliveryLabels)>, TriggerError> {
        let state = query.state()?;
        macro_rules! page {
            ($state:literal, $beyond:literal, $order:literal) => {
                page_sql!(
                    select concat!(
                        delivery_columns!(),
                        ", coalesce((select s.name from trigger_subscriptions s where s.project_id = $1 and s.id = subscription_id), \
                         (select s.name from trigger_schedules s where s.project_id = $1 and s.id = schedule_id)) as trigger_name"
                    ),
                    bytes "octet_length(data) + coalesce(octet_length(message), 0)",
                    from "trigger_deliveries",
                    where concat!(
                        "project_id = $1 and ($2 is null or code = $2) and ",
                        $state,
                        " and ($4 is null or subscription_id = $4) and ($5 is null or schedule_id = $5) and ($6 is null or event_id = $6) \
                         and ($7 is null or created_at <= $7) and ($8 is null or created_at >= $8) and ($9 is null or id ",
                        $beyond,
                        " $9)"
                    ),
                    by id $order,
                    limit "$10"
                )
            };
        }
        // Dead and cancelled ones are few, and an index has only them; it is found by the word in the text.
        let sql = match (state, query.ascending) {
            (Some(State::Dead), true) => page!("state = 'dead' and state = $3", ">", "asc"),
            (Some(State::Dead), false) => page!("state = 'dead' and state = $3", "<", "desc"),
            (Some(State::Cancelled), true) => page!("state = 'cancelled' and state = $3", ">", "asc"),
            (Some(State::Cancelled), false) => page!("state = 'cancelled' and state = $3", "<", "desc"),
            (_, true) => page!("($3 is null or state = $3)", ">", "asc"),
            (_, false) => page!("($3 is null or state = $3)", "<", "desc"),
        };
        let args = args![
            scope.project,
            query.code.as_deref(),
            query.state.as_deref(),
            query.subscription,
            query.schedule,
            query.event_id.as_deref(),
            query.newest,
            query.oldest,
            query.next,
            query.size.rows()
        ];
        let read = |row: &Row| {
            let delivery = rows::delivery(row)?;
            let about = DeliveryLabels { trigger: row.get("trigger_name")?, workflow: workflow_named(&delivery.data) };
            Ok((delivery, about))
        };
        let mut page = self.page(scope.project, query.size, self.0.db.all(sql, args).await?, read).await?;
        // What has not run names no workflow. Its trigger does, in data that may be large: read once for all of its deliveries.
        let mut named: HashMap<Parent, Option<String>> = HashMap::new();
        for (delivery, about) in page.rows.iter_mut().filter(|(_, about)| about.workflow.is_none()) {
            about.workflow = match named.entry(delivery.parent) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(unknown) => unknown.insert(self.trigger_of(scope.project, delivery.parent).await?.workflow).clone(),
            };
        }
        Ok(page)
    }

    /// Reads a page where there is room for it.
    pub(crate) async fn page<T: Send + 'static>(
        &self,
        project: ProjectId,
        size: PageSize,
        rows: Vec<Row>,
        read: fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Page<T>, TriggerError> {
        self.0.workers.run(project, page_bytes(&rows), move |_| Ok(size.read(&rows, read)?)).await
    }

    /// What a delivery belongs to.
    #[kernel::boxed]
    pub async fn about(&self, scope: Scope, delivery: &Delivery) -> Result<DeliveryLabels, TriggerError> {
        let trigger = self.trigger_of(scope.project, delivery.parent).await?;
        Ok(DeliveryLabels { workflow: workflow_named(&delivery.data).or(trigger.workflow), ..trigger })
    }

    /// The name of a trigger, and the workflow that it names.
    async fn trigger_of(&self, project: ProjectId, parent: Parent) -> Result<DeliveryLabels, StoreError> {
        let (name, data) = match parent {
            Parent::Subscription(id) => {
                let row = rows::subscription_by_id(&self.0.db, project, id).await?;
                row.map_or((None, Value::Null), |row| (row.labels.name, row.data))
            }
            Parent::Schedule(id) => {
                let row = rows::schedule_by_id(&self.0.db, project, id).await?;
                row.map_or((None, Value::Null), |row| (row.labels.name, row.data))
            }
        };
        Ok(DeliveryLabels { trigger: name, workflow: workflow_named(&data) })
    }

    #[kernel::boxed]
    pub async fn delivery(&self, scope: Scope, id: DeliveryId) -> Result<(Delivery, Vec<Attempt>), TriggerError> {
        let found = rows::delivery_by_id(&self.0.db, scope.project, id).await?.ok_or(TriggerError::NotFound(RowKind::Delivery))?;
        Ok((found, rows::attempts(&self.0.db, scope.project, id).await?))
    }

    #[kernel::boxed]
    pub async fn event(&self, scope: Scope, id: EventId) -> Result<EventRow, TriggerError> {
        rows::event_by_id(&self.0.db, scope.project, id).await?.ok_or(TriggerError::NotFound(RowKind::Event))
    }

    /// Runs a delivery that ended once more, under the same idempotency key.
    #[kernel::boxed]
    pub async fn retry(&self, scope: Scope, id: DeliveryId) -> Result<Delivery, TriggerError> {
        let sql = concat!(
            "update trigger_deliveries set state = 'ready', due_at = $3, updated_at = $3, code = '102', message = 'claimed', \
             cancelled_by_id = null where project_id = $1 and id = $2 and (state in ('done', 'dead', 'cancelled') or (state = 'ready' and attempts > 0)) returning ",
            delivery_columns!()
        );
        if let Some(row) = self.0.db.returning(sql, args![scope.project, id, self.0.clock.now()]).await? {
            self.wake_all();
            return Ok(rows::delivery(&row)?);
        }
        let (found, _) = self.delivery(scope, id).await?;
        Err(TriggerError::State(format!("The delivery is {}; it can be retried when it has ended.", found.state.name())))
    }

    /// Runs everything again that failed for good and fits the filter; how many.
    #[kernel::boxed]
    pub async fn replay(&self, scope: Scope, query: &DeliveryQuery) -> Result<u64, TriggerError> {
        if query.state()?.is_some_and(|state| state != State::Dead) {
            return Ok(0);
        }
        let sql = "update trigger_deliveries set state = 'ready', due_at = $2, updated_at = $2, code = '102', message = 'claimed' \
                   where project_id = $1 and id in (select id from trigger_deliveries where project_id = $1 and state = 'dead' \
                   and ($3 is null or code = $3) and ($4 is null or subscription_id = $4) and ($5 is null or schedule_id = $5) \
                   and ($6 is null or created_at <= $6) and ($7 is null or created_at >= $7) and ($8 is null or event_id = $8) order by id limit $9)";
        let args = args![
            scope.project,
            self.0.clock.now(),
            query.code.as_deref(),
            query.subscription,
            query.schedule,
            query.newest,
            query.oldest,
            query.event_id.as_deref(),
            MAX_REPLAY
        ];
        let replayed = self.0.db.execute(sql, args).await?;
        self.wake_all();
        Ok(replayed)
    }

    /// Ends a delivery that was dispatched.
    #[kernel::boxed]
    pub async fn complete(&self, scope: Scope, id: DeliveryId, end: Completion) -> Result<Delivery, TriggerError> {
        let (found, _) = self.delivery(scope, id).await?;
        if found.state != State::Waiting {
            return Err(TriggerError::State(format!(
                "The delivery is {}; only one that was dispatched can be completed.",
                found.state.name()
            )));
        }
        if let Some(approval) = found.approval {
            return Err(TriggerError::State(format!("The delivery waits for approval {approval}; approve or deny that.")));
        }
        if !(200..600).contains(&end.code) || end.code == 202 {
            return Err(TriggerError::Invalid("`status.code` must say how the run ended: 200 to 599, and not 202.".to_owned()));
        }
        let state = if end.code < 300 { State::Done } else { State::Dead };
        let mut data = found.data;
        data["result"]["outputs"] = end.outputs.unwrap_or(Value::Null);
        let sql = concat!(
            "update trigger_deliveries set state = $3, code = $4, message = $5, data = $6, updated_at = $7 \
             where project_id = $1 and id = $2 and state = 'waiting' returning ",
            delivery_columns!()
        );
        let code = if end.code < 300 { 200 } else { end.code }.to_string();
        let message = end.message.unwrap_or_else(|| if end.code < 300 { "success" } else { "failed" }.to_owned());
        let args = args![scope.project, id, state.name(), code, message, &data, self.0.clock.now()];
        let row =
            self.0.db.returning(sql, args).await?.ok_or_else(|| TriggerError::State("The delivery has ended meanwhile.".to_owned()))?;
        self.wake_all();
        self.0.ended.add(state, 1);
        let ended = rows::delivery(&row)?;
        if state == State::Dead {
            let reason = ended.message.as_deref();
            tracing::warn!(delivery = %id, trigger = %ended.parent, project = %scope.project, code = ended.code, reason, "a dispatched run failed");
        }
        Ok(ended)
    }

    /// Calls off a delivery that has not ended: it is not tried again, and a run under way is cut off.
    #[kernel::boxed]
    pub async fn cancel(&self, scope: Scope, id: DeliveryId) -> Result<Delivery, TriggerError> {
        let sql = concat!(
            "update trigger_deliveries set state = 'cancelled', code = $3, message = 'cancelled', cancelled_by_id = $4, updated_at = $5, \
             lease_until = null, lease_owner = null where project_id = $1 and id = $2 and state in ('ready', 'leased', 'waiting') returning ",
            delivery_columns!()
        );
        let args = args![scope.project, id, CANCELLED.to_string(), scope.author(), self.0.clock.now()];
        let Some(row) = self.0.db.returning(sql, args).await? else {
            let (found, _) = self.delivery(scope, id).await?;
            return Err(TriggerError::State(format!("The delivery is {}; it has ended already.", found.state.name())));
        };
        self.0.running.call_off(id);
        self.wake_all();
        self.0.ended.add(State::Cancelled, 1);
        tracing::info!(delivery = %id, project = %scope.project, by = %scope.author(), "a delivery was cancelled");
        Ok(rows::delivery(&row)?)
    }

    /// What a mapping makes of a delivery's event, or of one that is pasted.
    #[kernel::boxed]
    pub async fn preview(
        &self,
        scope: Scope,
        fields: Option<Value>,
        delivery: Option<DeliveryId>,
        pasted: Option<Value>,
    ) -> Result<Mapped, TriggerError> {
        let invalid = |error: MappingError| TriggerError::Invalid(error.to_string());
        let fields = fields.filter(|fields| !fields.is_null());
        let size = fields.as_ref().map_or(0, |fields| json::size(fields, LARGE));
        let read = move |_: &Budget| fields.map_or_else(|| Ok(Mapping::default()), |fields| Mapping::compile(&fields).map_err(invalid));
        let mapping = self.0.workers.run(scope.project, size, read).await?;
        let context = match (delivery, pasted) {
            (Some(id), _) => self.stored_context(scope, id).await?,
            (None, Some(event)) => context::pasted(WORD, event, &json!({}), &json!(scope.project), self.0.clock.now()),
            (None, None) => return Err(TriggerError::BadRequest("Give `delivery_id` or `event`.".to_owned())),
        };
        self.map(scope.project, Arc::new(mapping), context).await?.map_err(invalid)
    }

    /// Fills a mapping in; what is wrong with it is told apart from a lack of room.
    pub(crate) async fn map(
        &self,
        project: ProjectId,
        mapping: Arc<Mapping>,
        context: Value,
    ) -> Result<Result<Mapped, MappingError>, TriggerError> {
        let size = mapping.weigh(&context);
        self.0.workers.run(project, size, move |budget| Ok(mapping.apply(&context, budget))).await
    }

    async fn stored_context(&self, scope: Scope, id: DeliveryId) -> Result<Value, TriggerError> {
        let (delivery, _) = self.delivery(scope, id).await?;
        let event = match delivery.event {
            Some(event) => rows::event_by_id(&self.0.db, scope.project, event).await?,
            None => None,
        };
        let about = match delivery.parent {
            Parent::Subscription(id) => rows::subscription_by_id(&self.0.db, scope.project, id).await?.as_ref().map(context::subscription),
            Parent::Schedule(id) => rows::schedule_by_id(&self.0.db, scope.project, id).await?.as_ref().map(context::schedule),
        };
        Ok(context::of(&delivery, event.as_ref(), &about.unwrap_or_else(|| json!({})), self.0.clock.now()))
    }

    /// Forgets what ended long ago, of every project.
    pub(crate) async fn forget(&self) -> Result<(), StoreError> {
        let now = self.0.clock.now();
        let before = now.minus(self.0.settings.retention);
        let ended =
            "select project_id, id from trigger_deliveries where state in ('done', 'dead', 'cancelled') and updated_at < $1 limit 1000";
        loop {
            let old = self.0.db.all(ended, args![before]).await?;
            if old.is_empty() {
                break;
            }
            let mut tx = self.0.db.begin().await?;
            for row in &old {
                let (project, id): (ProjectId, DeliveryId) = (row.get("project_id")?, row.get("id")?);
                tx.execute("delete from trigger_attempts where project_id = $1 and delivery_id = $2", args![project, id]).await?;
                tx.execute("delete from trigger_deliveries where project_id = $1 and id = $2", args![project, id]).await?;
            }
            tx.commit().await?;
        }
        let unused = "delete from trigger_events where received_at < $1 and not exists (select 1 from trigger_deliveries d \
                      where d.project_id = trigger_events.project_id and d.event_row_id = trigger_events.id)";
        self.0.db.execute(unused, args![before]).await?;
        for stale in ["delete from trigger_signatures where seen_at < $1", "delete from hub_signatures where seen_at < $1"] {
            self.0.db.execute(stale, args![now.minus(std::time::Duration::from_hours(1))]).await?;
        }
        Ok(())
    }
}

/// The workflow that a delivery ran, or that a trigger names, by its data.
fn workflow_named(data: &Value) -> Option<String> {
    let part = |field: &str, part: &str| data.pointer(&format!("/references/{part}/{field}")).and_then(Value::as_str).map(str::to_owned);
    let families = ["workflow", "application", "evaluator"];
    let parts = || families.iter().flat_map(|family| ["", "_variant", "_revision"].map(|level| format!("{family}{level}")));
    let key = || data.pointer("/selector/key").and_then(Value::as_str).map(str::to_owned);
    parts().find_map(|name| part("slug", &name)).or_else(key).or_else(|| parts().find_map(|name| part("id", &name)))
}

/// What a pasted event calls itself.
const WORD: &str = "preview";
