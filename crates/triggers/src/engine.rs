//! The engine: leases deliveries, runs them, writes how they ended. A node that dies gives its work back when its leases run out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{ApprovalId, DeliveryId, Origin, Permission, ProjectId, Scope, Timestamp};
use serde_json::{Map, Value, json};
use store::{Db, Row, StoreError, args};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use work::WorkError;
use workflows::{InvokeRequest, NotRun, WorkflowError};

use crate::backoff::{AttemptOutcome, RetryDecision};
use crate::context;
use crate::model::{Actor, Attempt, Delivery, Parent, State, Subscription, TargetKind};
use crate::store::{self as rows, Finished, delivery_columns};
use crate::target::RunTarget;
use crate::{TriggerError, Triggers};

/// How often a node looks for work that nobody told it about.
const LOOK: Duration = Duration::from_millis(500);
/// The same for a node of several that has nothing to do.
const IDLE: Duration = Duration::from_secs(2);
/// How many projects with work are looked at in one round.
const PROJECTS: i64 = 64;
/// How long a dispatched run may take to end, and a person to approve one.
const WAITING: Duration = Duration::from_hours(24);

/// How many bytes of large events one project has in hand at once: what a run makes of an event takes many times its size.
const LARGE_EVENTS: u32 = 1 << 20;

/// The code of a delivery that was cancelled.
pub(crate) const CANCELLED: i64 = 499;

/// A delivery and the number of its attempt.
type Try = (DeliveryId, i64);

/// What this node is running, for which project, and how to call it off.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<HashMap<Try, (ProjectId, CancellationToken)>>);

impl Running {
    fn held(&self) -> MutexGuard<'_, HashMap<Try, (ProjectId, CancellationToken)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, project: ProjectId) -> usize {
        self.held().values().filter(|(other, _)| *other == project).count()
    }

    fn total(&self) -> usize {
        self.held().len()
    }

    fn all(&self) -> Vec<(Try, ProjectId)> {
        self.held().iter().map(|(attempt, (project, _))| (*attempt, *project)).collect()
    }

    /// Ends the runs of a delivery that was cancelled.
    pub(crate) fn call_off(&self, delivery: DeliveryId) {
        self.held().iter().filter(|((running, _), _)| *running == delivery).for_each(|(_, (_, cancelled))| cancelled.cancel());
    }
}

/// The place of one run, given back however the run ends.
struct RunSlot {
    triggers: Triggers,
    attempt: Try,
    cancelled: CancellationToken,
}

impl RunSlot {
    fn occupy(triggers: &Triggers, delivery: &Delivery) -> Self {
        let (attempt, cancelled) = ((delivery.id, delivery.attempts), CancellationToken::new());
        triggers.0.running.held().insert(attempt, (delivery.project, cancelled.clone()));
        Self { triggers: triggers.clone(), attempt, cancelled }
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        self.triggers.0.running.held().remove(&self.attempt);
        self.triggers.0.wake.notify_one();
    }
}

/// A delivery that is this node's to run, and how large its event is.
struct Leased {
    delivery: Delivery,
    event_bytes: usize,
}

impl Leased {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let bytes: Option<i64> = row.get("event_bytes")?;
        Ok(Self { delivery: rows::delivery(row)?, event_bytes: bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0) })
    }
}

/// How a run ended, before it is written.
pub(crate) struct AttemptEnd {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) run: Option<kernel::RunId>,
    /// What it waits for, if it has to be approved.
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) data: Map<String, Value>,
    pub(crate) outcome: AttemptOutcome,
}

impl AttemptEnd {
    pub(crate) fn with(code: i64, message: impl Into<String>) -> Self {
        let status = u16::try_from(code).unwrap_or(500);
        Self { code, message: message.into(), run: None, approval: None, data: Map::new(), outcome: AttemptOutcome::Status(status) }
    }

    /// A person has to allow the run, or a step of it, before it goes on.
    fn waiting(approval: ApprovalId, message: String) -> Self {
        Self { approval: Some(approval), ..Self::with(202, message) }
    }
}

impl Triggers {
    /// Runs deliveries until it is told to stop, then finishes what it has begun.
    pub(crate) async fn run_engine(self, stop: CancellationToken) {
        let mut after = Uuid::nil();
        let (mut decisions, mut looked): (_, Option<Instant>) = (self.0.runs.decisions(), None);
        let mut took_back: Option<Instant> = None;
        while !stop.is_cancelled() {
            // What is decided on this node is heard; another may have stopped before it woke anybody.
            if looked.is_none_or(|at| at.elapsed() >= IDLE) {
                looked = Some(Instant::now());
                match self.ready_the_decided().await {
                    Ok(0) => {}
                    Ok(_) => self.0.news.notify_one(),
                    Err(error) => tracing::error!(%error, "deliveries that wait for an approval could not be looked at"),
                }
            }
            // Leases run out within seconds, and a busy node makes a round for every few events.
            let takes_back = took_back.is_none_or(|at| at.elapsed() >= LOOK);
            if takes_back {
                took_back = Some(Instant::now());
            }
            if let Err(error) = self.round(&mut after, takes_back).await {
                tracing::error!(%error, "deliveries could not be leased");
                tokio::time::sleep(LOOK).await;
            }
            // Where others tell of their deliveries, what is left to find has lost its node.
            let may_rest = self.0.running.total() == 0 && matches!(self.0.db, Db::Postgres(_));
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.0.wake.notified() => {}
                Ok(()) = decisions.changed() => looked = None,
                () = tokio::time::sleep(if may_rest { IDLE } else { LOOK }) => {}
            }
        }
    }

    /// Gives free places to projects in turn, so that a busy one waits for the others and not they for it.
    async fn round(&self, after: &mut Uuid, takes_back: bool) -> Result<(), StoreError> {
        let now = self.0.clock.now();
        if takes_back {
            self.take_back(now).await?;
        }
        loop {
            let mut free = self.0.settings.concurrency.saturating_sub(self.0.running.total());
            if free == 0 {
                return Ok(());
            }
            let projects = with_work(&self.0.db, *after, now).await?;
            let mut leased = 0;
            for project in &projects {
                let share = self.0.settings.project_concurrency.saturating_sub(self.0.running.of(*project)).min(free);
                if share == 0 {
                    continue;
                }
                for leased_now in self.lease(*project, share, now).await? {
                    leased += 1;
                    free = free.saturating_sub(1);
                    self.spawn_delivery(leased_now);
                }
            }
            let more = i64::try_from(projects.len()).is_ok_and(|found| found == PROJECTS);
            *after = if more { projects.last().map_or(Uuid::nil(), |last| last.uuid()) } else { Uuid::nil() };
            if leased == 0 && !more {
                return Ok(());
            }
        }
    }

    /// Runs a delivery in a task of its own: one over a large event where such tasks run, when its project has room for it.
    fn spawn_delivery(&self, Leased { delivery, event_bytes }: Leased) {
        let (this, place) = (self.clone(), RunSlot::occupy(self, &delivery));
        if event_bytes <= work::SMALL {
            self.0.tasks.spawn(async move {
                this.deliver(delivery, &place.cancelled).await;
                drop(place);
            });
            return;
        }
        let room = self.0.large_events.of(&delivery.project, || Semaphore::new(LARGE_EVENTS as usize));
        let bytes = u32::try_from(event_bytes).unwrap_or(u32::MAX).min(LARGE_EVENTS);
        self.0.tasks.spawn(async move {
            let _room = room.acquire_many_owned(bytes).await;
            let workers = this.0.workers.clone();
            workers.host(event_bytes, Box::pin(async move { this.deliver(delivery, &place.cancelled).await })).await;
        });
    }

    async fn lease(&self, project: ProjectId, limit: usize, now: Timestamp) -> Result<Vec<Leased>, StoreError> {
        let sql = lease_sql(&self.0.db);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let leased = self.0.db.returning_all(sql, args![project, limit, now, now.plus(self.0.settings.lease), self.0.node]).await?;
        let mut leased: Vec<Leased> = leased.iter().map(Leased::read).collect::<Result<_, _>>()?;
        leased.sort_by_key(|Leased { delivery, .. }| (delivery.due_at, delivery.id.uuid()));
        Ok(leased)
    }

    /// Makes deliveries ready again whose node went away, and ends those that were dispatched and never ended.
    async fn take_back(&self, now: Timestamp) -> Result<(), StoreError> {
        // Rows that another node has in hand are left to it: to wait for them while holding others is how two nodes wait for each other.
        macro_rules! lost {
            ($lock:literal) => {
                concat!(
                    "with picked as materialized (select project_id, id from trigger_deliveries where state = 'leased' and lease_until < $1",
                    $lock,
                    ") update trigger_deliveries set state = 'ready', due_at = $1, lease_owner = null, code = '102', \
                     message = 'the node that ran it went away' where (project_id, id) in (select project_id, id from picked) \
                     returning project_id, id, attempts, updated_at"
                )
            };
        }
        let lost = match &self.0.db {
            Db::Sqlite(_) => lost!(""),
            Db::Postgres(_) => lost!(" for update skip locked"),
        };
        // The try that was cut off is a row like any other.
        let cut = "insert into trigger_attempts (project_id, delivery_id, number, started_at, ended_at, code, message) \
                   values ($1, $2, $3, $4, $5, '102', 'the node that ran it went away') on conflict do nothing";
        let late = "update trigger_deliveries set state = 'dead', code = '504', updated_at = $1, message = \
                    case when approval_id is null then 'the dispatched run did not end in time' else 'nobody approved the run in time' end \
                    where state = 'waiting' and due_at < $1";
        // In the order of each index: PostgreSQL then forgets on its way what is there no longer, and stops at the first that is.
        let any = "select 1 as found from (select id from trigger_deliveries where state = 'leased' and lease_until < $1 order by lease_until limit 1) as lost \
                   union all \
                   select 1 as found from (select id from trigger_deliveries where state = 'waiting' and due_at < $1 order by due_at limit 1) as late";
        if self.0.db.optional(any, args![now]).await?.is_some() {
            let mut tx = self.0.db.begin().await?;
            for row in tx.all(lost, args![now]).await? {
                let (project, delivery): (ProjectId, DeliveryId) = (row.get("project_id")?, row.get("id")?);
                let (number, started): (i64, Timestamp) = (row.get("attempts")?, row.get("updated_at")?);
                tx.execute(cut, args![project, delivery, number, started, now]).await?;
            }
            tx.commit().await?;
            let late = self.0.db.execute(late, args![now]).await?;
            if late > 0 {
                tracing::warn!(deliveries = late, "dispatched runs did not end in time; their deliveries are dead");
                self.0.ended.add(State::Dead, late);
            }
        }
        Ok(())
    }

    /// Gives back at once what an earlier process left behind; a SQLite file has one process, so there is nobody else to wait for.
    pub(crate) async fn reclaim(&self) -> Result<(), StoreError> {
        if let Db::Sqlite(_) = &self.0.db {
            self.0
                .db
                .execute("update trigger_deliveries set lease_until = 0 where state = 'leased' and lease_owner <> $1", args![self.0.node])
                .await?;
        }
        Ok(())
    }

    /// Keeps alive the leases of what this node runs, and of nothing else: what it took and then lost sight of comes back by itself. One
    /// statement for each, so that none is locked while another is waited for.
    pub(crate) async fn beat(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.0.settings.lease / 3) => {}
            }
            let until = self.0.clock.now().plus(self.0.settings.lease);
            let sql = "update trigger_deliveries set lease_until = $5 \
                       where project_id = $1 and id = $2 and attempts = $3 and lease_owner = $4 and state = 'leased'";
            for ((delivery, number), project) in self.0.running.all() {
                match self.0.db.execute(sql, args![project, delivery, number, self.0.node, until]).await {
                    Ok(0) => self.end_if_cancelled(project, delivery).await,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "leases could not be extended");
                        break;
                    }
                }
            }
        }
    }

    /// A delivery may be cancelled at another node than the one that runs it.
    async fn end_if_cancelled(&self, project: ProjectId, delivery: DeliveryId) {
        if let Ok(Some(Delivery { state: State::Cancelled, .. })) = rows::delivery_by_id(&self.0.db, project, delivery).await {
            self.0.running.call_off(delivery);
        }
    }

    async fn deliver(self, delivery: Delivery, cancelled: &CancellationToken) {
        let started_at = self.0.clock.now();
        let ending = match cancelled.run_until_cancelled(Box::pin(self.attempt(&delivery))).await {
            Some(Ok(ending)) => ending,
            Some(Err(error)) => {
                let code = if matches!(error, TriggerError::Work(WorkError::Busy)) { 429 } else { 500 };
                AttemptEnd { outcome: AttemptOutcome::Unreachable, ..AttemptEnd::with(code, error.to_string()) }
            }
            None => AttemptEnd::with(CANCELLED, "cancelled"),
        };
        let ended_at = self.0.clock.now();
        let number = delivery.attempts;
        let verdict = if ending.code == 202 { None } else { Some(ending.outcome.verdict()) };
        let wait = self.0.settings.backoff.next(u32::try_from(number).unwrap_or(u32::MAX), delivery.id.uuid());
        let (state, due_at) = match (verdict, wait) {
            (None, _) => (State::Waiting, ended_at.plus(WAITING)),
            (Some(RetryDecision::Delivered), _) => (State::Done, delivery.due_at),
            (Some(RetryDecision::Retry), Some(wait)) => (State::Ready, ended_at.plus(wait)),
            (Some(RetryDecision::Retry | RetryDecision::Final), _) => (State::Dead, delivery.due_at),
        };
        let mut data = ending.data;
        data.insert("event_key".to_owned(), json!(delivery.event_key));
        data.insert("session_id".to_owned(), json!(session(delivery.id)));
        if let Some(approval) = ending.approval {
            data.insert("approval_id".to_owned(), json!(approval));
        }
        if state == State::Dead && ending.code != CANCELLED {
            tracing::warn!(
                delivery = %delivery.id, trigger = %delivery.parent, project = %delivery.project, code = ending.code, attempts = number,
                reason = ending.message, "a delivery was given up"
            );
        }
        let attempt =
            Attempt { number, started_at, ended_at, code: ending.code.to_string(), message: Some(ending.message), run: ending.run };
        let (project, owner) = (delivery.project, self.0.node);
        let approval = ending.approval;
        let finished = Finished {
            project,
            delivery: delivery.id,
            owner,
            attempt,
            state,
            approval,
            due_at,
            data: kernel::json::text(&Value::Object(data)),
        };
        if self.0.inbox.finish(finished).await {
            self.0.ended.add(state, 1);
        }
        // One that waits longer is found by looking.
        if let (State::Ready, Some(wait)) = (state, wait.filter(|wait| *wait < IDLE * 5)) {
            let this = self.clone();
            self.0.tasks.spawn(async move {
                if this.0.stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
                    this.0.wake.notify_one();
                }
            });
        }
    }

    async fn attempt(&self, delivery: &Delivery) -> Result<AttemptEnd, TriggerError> {
        let Some(parent) = self.parent(delivery).await? else { return Ok(AttemptEnd::with(409, "The trigger is deleted or paused.")) };
        let event = match delivery.event {
            Some(id) => rows::event_by_id(&self.0.db, delivery.project, id).await?,
            None => None,
        };
        let target = match &parent.target {
            Target::Webhook(row) => return Ok(self.tell_webhook(row, delivery, event.as_ref()).await?),
            Target::Run(target) => target,
        };
        let context = context::of(delivery, event.as_ref(), &parent.about, self.0.clock.now());
        let target = match target {
            Ok(target) => target,
            Err(error) => return Ok(AttemptEnd::with(400, error.clone())),
        };
        let mapped = match self.map(delivery.project, target.mapping.clone(), context).await? {
            Ok(mapped) => mapped,
            Err(error) => return Ok(AttemptEnd::with(400, error.to_string())),
        };
        let mut data = Map::from_iter([("inputs".to_owned(), mapped.inputs.clone())]);
        if !mapped.missed.is_empty() {
            data.insert("missed".to_owned(), context::misses(&mapped.missed));
        }
        if parent.is_test {
            data.insert("is_test".to_owned(), json!(true));
            return Ok(AttemptEnd { data, ..AttemptEnd::with(200, "captured") });
        }
        if target.references.is_empty() {
            return Ok(AttemptEnd { data, ..AttemptEnd::with(400, "No workflow is bound to this trigger.") });
        }
        let acting = self.0.accounts.acting(delivery.project, parent.actor.key, parent.actor.user).await?;
        let Some(scope) = acting.map(|scope| Scope { acts_for: parent.actor.end_user.into(), ..scope }) else {
            return Ok(AttemptEnd {
                data,
                ..AttemptEnd::with(403, "The key that saved this trigger is revoked. Save the trigger again with another key.")
            });
        };
        if !scope.may(Permission::RunWorkflows) {
            return Ok(AttemptEnd { data, ..AttemptEnd::with(403, "Whoever saved this trigger may not run workflows any more.") });
        }
        let request = InvokeRequest {
            references: target.references.clone(),
            key: target.key.clone(),
            inputs: mapped.inputs,
            session_id: Some(session(delivery.id)),
            idempotency_key: Some(delivery.id.to_string()),
            // Whoever held the lease before has let go of it.
            resumes: delivery.attempts > 1,
            origin: Origin { delivery: Some(delivery.id), ..Origin::default() },
            ..InvokeRequest::default()
        };
        let reply = match self.0.runs.run(scope, request).await {
            Ok(reply) => reply,
            Err(NotRun::Workflow(WorkflowError::Store(error))) => return Err(error.into()),
            // There is room again once older runs or approvals are gone.
            Err(NotRun::Workflow(error @ WorkflowError::Full(_))) => {
                return Ok(AttemptEnd { data, ..AttemptEnd::with(429, error.to_string()) });
            }
            Err(NotRun::Workflow(error)) => return Ok(AttemptEnd { data, ..AttemptEnd::with(404, error.to_string()) }),
            Err(NotRun::Denied(why)) => return Ok(AttemptEnd { data, ..AttemptEnd::with(403, why) }),
            Err(NotRun::Waiting { approval, message }) => return Ok(AttemptEnd { data, ..AttemptEnd::waiting(approval, message) }),
        };
        data.insert("references".to_owned(), reply.references);
        if let Some(approval) = reply.waits_for {
            data.insert("result".to_owned(), json!({"run_id": reply.run}));
            return Ok(AttemptEnd { run: Some(reply.run), data, ..AttemptEnd::waiting(approval, reply.message) });
        }
        let result = match reply.code {
            202 => json!({"run_id": reply.run}),
            _ => json!({"run_id": reply.run, "outputs": reply.outputs}),
        };
        data.insert("result".to_owned(), result);
        let code = if (200..300).contains(&reply.code) && reply.code != 202 { 200 } else { reply.code };
        let message = if code == 200 { "success".to_owned() } else { reply.message };
        // 424 is what a service that cannot be reached reads as; it may be there the next time.
        let outcome = if code == 424 { AttemptOutcome::Unreachable } else { AttemptOutcome::Status(u16::try_from(code).unwrap_or(500)) };
        Ok(AttemptEnd { run: Some(reply.run), outcome, data, ..AttemptEnd::with(code, message) })
    }

    /// What a delivery belongs to, if it still fires.
    async fn parent(&self, delivery: &Delivery) -> Result<Option<Arc<ActiveTrigger>>, StoreError> {
        let (project, parent) = (delivery.project, delivery.parent);
        self.0.fired.or_find((project, parent), || async { Ok(self.read_parent(project, parent).await?.map(Arc::new)) }).await
    }

    async fn read_parent(&self, project: ProjectId, parent: Parent) -> Result<Option<ActiveTrigger>, StoreError> {
        match parent {
            Parent::Subscription(id) => {
                let row = rows::subscription_by_id(&self.0.db, project, id).await?;
                let row = row.filter(|row| row.life.deleted_at.is_none() && row.is_active && row.is_valid);
                Ok(row.map(ActiveTrigger::subscription))
            }
            Parent::Schedule(id) => {
                let row = rows::schedule_by_id(&self.0.db, project, id).await?;
                // A schedule that ended with its last slot still owes that run, and a run by hand needs no clock.
                let row = row.filter(|row| row.life.deleted_at.is_none());
                Ok(row.map(|row| ActiveTrigger::new(context::schedule(&row), &row.data, row.actor, false)))
            }
        }
    }
}

/// What a run needs of its trigger, read and compiled once.
#[derive(Debug)]
pub(crate) struct ActiveTrigger {
    about: Value,
    target: Target,
    actor: Actor,
    is_test: bool,
}

/// Where events of a trigger go.
#[derive(Debug)]
enum Target {
    Run(Result<Box<RunTarget>, String>),
    Webhook(Box<Subscription>),
}

impl ActiveTrigger {
    fn new(about: Value, data: &Value, actor: Actor, is_test: bool) -> Self {
        let target = RunTarget::read(data).map(Box::new).map_err(|error| error.to_string());
        Self { about, target: Target::Run(target), actor, is_test }
    }

    fn subscription(row: Subscription) -> Self {
        match row.target {
            TargetKind::Workflow => Self::new(context::subscription(&row), &row.data, row.actor, row.is_test),
            TargetKind::Webhook => {
                let (actor, is_test) = (row.actor, row.is_test);
                Self { about: Value::Null, target: Target::Webhook(Box::new(row)), actor, is_test }
            }
        }
    }
}

fn session(delivery: DeliveryId) -> String {
    delivery.uuid().simple().to_string()
}

/// Picks and takes in one statement. PostgreSQL may read a subquery once per row, and then takes more than the limit; a materialized one is
/// read once. The rows that are picked are nobody else's, so their state is not asked again: if it were, SQLite would look for them among all
/// that are ready.
fn lease_sql(db: &Db) -> &'static str {
    macro_rules! lease {
        ($lock:literal) => {
            concat!(
                "with picked as materialized (select d.id from trigger_deliveries d where d.project_id = $1 \
                 and d.state = 'ready' and d.due_at <= $3 and (not d.is_ordered or not exists (select 1 from trigger_deliveries e \
                 where e.project_id = $1 and e.subscription_id = d.subscription_id and e.id < d.id and e.state in ('ready', 'leased', 'waiting'))) \
                 order by d.due_at, d.id limit $2",
                $lock,
                ") update trigger_deliveries set state = 'leased', attempts = attempts + 1, updated_at = $3, lease_until = $4, lease_owner = $5 \
                 where project_id = $1 and id in (select id from picked) returning ",
                delivery_columns!(),
                ", (select cast(octet_length(body) as bigint) from trigger_events e where e.project_id = $1 and e.id = trigger_deliveries.event_row_id) as event_bytes"
            )
        };
    }
    match db {
        Db::Sqlite(_) => lease!(""),
        Db::Postgres(_) => lease!(" for update skip locked"),
    }
}

/// Projects with work that is due, after the one that was looked at last. Each step finds the next project by its index.
async fn with_work(db: &Db, after: Uuid, now: Timestamp) -> Result<Vec<ProjectId>, StoreError> {
    let sql = "with recursive p(id) as (\
               select (select project_id from trigger_deliveries where state = 'ready' and due_at <= $2 and project_id > $1 order by project_id limit 1) \
               union all \
               select (select project_id from trigger_deliveries where state = 'ready' and due_at <= $2 and project_id > p.id order by project_id limit 1) \
               from p where p.id is not null) select id from p where id is not null limit $3";
    db.all(sql, args![after, now, PROJECTS]).await?.iter().map(|row| row.get("id")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn leasing_looks_at_no_more_than_it_takes() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite://{}", dir.path().join("test.db").display())).await.unwrap();
        db.migrate().await.unwrap();
        let explain: &'static str = format!("explain query plan {}", lease_sql(&db)).leak();
        let now = Timestamp::from_micros(0);
        let rows = db.all(explain, args![ProjectId::new(), 8_i64, now, now, Uuid::nil()]).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail").unwrap()).collect();
        assert!(plan[0].contains("(project_id=? AND id=?)"), "those that were picked are found by their ids: {plan:?}");
        assert!(plan.iter().any(|step| step.contains("trigger_deliveries_ready (project_id=? AND due_at<?)")), "{plan:?}");
    }
}
