//! Schedules: made, changed, started, stopped, run by hand, previewed.

use kernel::{DeliveryId, ScheduleId, Scope, Timestamp};
use serde_json::Value;
use store::{Page, Usage};

use crate::clock::run_of;
use crate::context;
use crate::model::{Actor, Delivery, Labels, Lifecycle, Schedule};
use crate::schedule::Timing;
use crate::store::{self as rows, ParentQuery};
use crate::target::{SCHEDULE, check_spelling, read_plan};
use crate::{RowKind, TriggerError, Triggers};

const UPCOMING: usize = 10;

/// What a schedule shall be.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    pub labels: Labels,
    pub data: Value,
    pub is_active: bool,
}

impl Triggers {
    #[kernel::boxed]
    pub async fn create_schedule(&self, scope: Scope, new: NewSchedule) -> Result<Schedule, TriggerError> {
        let plan = self.check_schedule(scope, &new).await?;
        let now = self.0.clock.now();
        let mut row = Schedule {
            id: ScheduleId::new(),
            project: scope.project,
            event_key: event_key(&new.data)?,
            labels: new.labels,
            data: new.data,
            is_active: new.is_active,
            next_fire_at: None,
            actor: scope.into(),
            life: Lifecycle {
                created_at: now,
                updated_at: now,
                deleted_at: None,
                created_by: Some(scope.author()),
                updated_by: Some(scope.author()),
                deleted_by: None,
            },
        };
        self.check_room(&row).await?;
        let run_at = plan_ahead(&mut row, &plan, now);
        rows::insert_schedule(&self.0.db, &row, run_at).await?;
        self.0.scheduled.notify_one();
        Ok(row)
    }

    /// Replaces everything that its owner wrote.
    #[kernel::boxed]
    pub async fn edit_schedule(&self, scope: Scope, id: ScheduleId, new: NewSchedule) -> Result<Schedule, TriggerError> {
        let mut row = self.live_schedule(scope, id).await?;
        let plan = self.check_schedule(scope, &new).await?;
        let now = self.0.clock.now();
        let same = row.is_active && new.is_active && read_plan(&row.data).is_ok_and(|(old, _)| old == plan);
        row.event_key = event_key(&new.data)?;
        row.labels = new.labels;
        row.data = new.data;
        row.is_active = new.is_active;
        row.actor = Actor { end_user: scope.end_user().or(row.actor.end_user), ..scope.into() };
        row.life.updated_at = now;
        row.life.updated_by = Some(scope.author());
        self.check_room(&row).await?;
        // A slot that is due and not yet fired survives an edit of other things.
        let run_at = match row.next_fire_at.filter(|_| same) {
            Some(planned) => Some(plan.run_at(id.uuid(), planned)),
            None => plan_ahead(&mut row, &plan, now),
        };
        let saved = rows::update_schedule(&self.0.db, &row, run_at).await?;
        self.0.scheduled.notify_one();
        saved.ok_or(TriggerError::NotFound(RowKind::Schedule))
    }

    /// Refuses a schedule for which the project has no room beside its others.
    async fn check_room(&self, row: &Schedule) -> Result<(), TriggerError> {
        let sql = "select count(*) as many, cast(coalesce(sum(length(data)), 0) as bigint) as long from trigger_schedules \
                   where project_id = $1 and id <> $2 and deleted_at is null";
        let others = self.0.db.measure(sql, store::args![row.project, row.id]).await?;
        Ok(self.0.settings.schedules.admit(others, Usage::row(row.data.to_string().len()))?)
    }

    /// Starts or stops a schedule. What was due while it was stopped does not come back.
    #[kernel::boxed]
    pub async fn switch_schedule(&self, scope: Scope, id: ScheduleId, is_active: bool) -> Result<Schedule, TriggerError> {
        let mut row = self.live_schedule(scope, id).await?;
        let (plan, _) = read_plan(&row.data)?;
        let now = self.0.clock.now();
        if is_active && plan.window.is_over(now) {
            return Err(TriggerError::Invalid("The schedule's window is over; give it another `end_time` first.".to_owned()));
        }
        if row.is_active == is_active {
            return Ok(row);
        }
        row.is_active = is_active;
        row.life.updated_at = now;
        row.life.updated_by = Some(scope.author());
        let run_at = plan_ahead(&mut row, &plan, now);
        let saved = rows::update_schedule(&self.0.db, &row, run_at).await?;
        self.0.scheduled.notify_one();
        saved.ok_or(TriggerError::NotFound(RowKind::Schedule))
    }

    #[kernel::boxed]
    pub async fn delete_schedule(&self, scope: Scope, id: ScheduleId) -> Result<(), TriggerError> {
        self.live_schedule(scope, id).await?;
        let sql = "update trigger_schedules set deleted_at = $3, deleted_by_id = $4, updated_at = $3, updated_by_id = $4, \
                   next_fire_at = null, run_at = null where project_id = $1 and id = $2 and deleted_at is null";
        match self.0.db.execute(sql, store::args![scope.project, id, self.0.clock.now(), scope.author()]).await? {
            0 => Err(TriggerError::NotFound(RowKind::Schedule)),
            _ => Ok(()),
        }
    }

    /// Also one that was deleted, so that its deliveries can be understood.
    #[kernel::boxed]
    pub async fn schedule(&self, scope: Scope, id: ScheduleId) -> Result<Schedule, TriggerError> {
        let found = rows::schedule_by_id(&self.0.db, scope.project, id).await?;
        found.filter(|row| scope.sees(row.actor.end_user.into())).ok_or(TriggerError::NotFound(RowKind::Schedule))
    }

    async fn live_schedule(&self, scope: Scope, id: ScheduleId) -> Result<Schedule, TriggerError> {
        let row = self.schedule(scope, id).await?;
        if row.life.deleted_at.is_some() { Err(TriggerError::NotFound(RowKind::Schedule)) } else { Ok(row) }
    }

    #[kernel::boxed]
    pub async fn schedules(&self, scope: Scope, query: &ParentQuery) -> Result<Page<Schedule>, TriggerError> {
        let query = ParentQuery { end_user: scope.end_user().or(query.end_user), ..query.clone() };
        self.page(scope.project, query.size, rows::schedules(&self.0.db, scope.project, &query).await?, rows::schedule).await
    }

    /// Runs a schedule now, besides its slots.
    #[kernel::boxed]
    pub async fn run_schedule(&self, scope: Scope, id: ScheduleId) -> Result<Delivery, TriggerError> {
        let row = self.live_schedule(scope, id).await?;
        let now = self.0.clock.now();
        let new = rows::NewDelivery {
            id: DeliveryId::new(),
            event_id: format!("{id}:manual:{}", DeliveryId::new()),
            ..run_of(&row, now, now, now)
        };
        let mut tx = self.0.db.begin_durable().await?;
        rows::insert_deliveries(&mut tx, &[&new]).await?;
        tx.commit().await?;
        self.wake_all();
        rows::delivery_by_id(&self.0.db, scope.project, new.id).await?.ok_or(TriggerError::NotFound(RowKind::Delivery))
    }

    /// The next ten times of a schedule that is, or that may be.
    pub fn upcoming(&self, data: &Value) -> Result<Vec<Timestamp>, TriggerError> {
        let (plan, _) = read_plan(data)?;
        Ok(plan.upcoming(self.0.clock.now(), UPCOMING))
    }

    async fn check_schedule(&self, scope: Scope, new: &NewSchedule) -> Result<Timing, TriggerError> {
        check_spelling(&new.data, SCHEDULE)?;
        event_key(&new.data)?;
        let (plan, _) = read_plan(&new.data)?;
        self.check_target(scope, &new.data, &context::known_of_schedule()).await?;
        Ok(plan)
    }
}

/// Sets the slot that the schedule waits for, and says when its run begins.
fn plan_ahead(row: &mut Schedule, plan: &Timing, now: Timestamp) -> Option<Timestamp> {
    row.next_fire_at = if row.is_active { plan.next_after(now) } else { None };
    row.next_fire_at.map(|slot| plan.run_at(row.id.uuid(), slot))
}

fn event_key(data: &Value) -> Result<String, TriggerError> {
    match data.get("event_key").and_then(Value::as_str) {
        Some(key) if !key.is_empty() => Ok(key.to_owned()),
        _ => Err(TriggerError::Invalid("`data.event_key` is required".to_owned())),
    }
}
