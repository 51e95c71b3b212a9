//! Schedules: made, changed, started, stopped, run by hand, previewed.

use kernel::{DeliveryId, ScheduleId, Scope, Timestamp};
use serde_json::Value;

use crate::clock::run_of;
use crate::context;
use crate::model::{Delivery, Lifecycle, Schedule, Words};
use crate::schedule::Plan;
use crate::store::{self as rows, ParentQuery};
use crate::target::{SCHEDULE, check_spelling, read_plan};
use crate::{TriggerError, Triggers};

const UPCOMING: usize = 10;

/// What a schedule shall be.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    pub words: Words,
    pub data: Value,
    pub is_active: bool,
}

impl Triggers {
    pub async fn create_schedule(&self, scope: Scope, new: NewSchedule) -> Result<Schedule, TriggerError> {
        let plan = self.check_schedule(scope, &new).await?;
        let now = self.clock.now();
        let mut row = Schedule {
            id: ScheduleId::new(),
            project: scope.project,
            event_key: event_key(&new.data)?,
            words: new.words,
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
        let run_at = plan_ahead(&mut row, &plan, now);
        rows::insert_schedule(&self.db, &row, run_at).await?;
        Ok(row)
    }

    /// Replaces everything that its owner wrote.
    pub async fn edit_schedule(&self, scope: Scope, id: ScheduleId, new: NewSchedule) -> Result<Schedule, TriggerError> {
        let mut row = self.live_schedule(scope, id).await?;
        let plan = self.check_schedule(scope, &new).await?;
        let now = self.clock.now();
        let same = row.is_active && new.is_active && read_plan(&row.data).is_ok_and(|(old, _)| old == plan);
        row.event_key = event_key(&new.data)?;
        row.words = new.words;
        row.data = new.data;
        row.is_active = new.is_active;
        row.actor = scope.into();
        row.life.updated_at = now;
        row.life.updated_by = Some(scope.author());
        // A slot that is due and not yet fired survives an edit of other things.
        let run_at = match row.next_fire_at.filter(|_| same) {
            Some(planned) => Some(plan.run_at(id.uuid(), planned)),
            None => plan_ahead(&mut row, &plan, now),
        };
        rows::update_schedule(&self.db, &row, run_at).await?.ok_or(TriggerError::NotFound("Schedule"))
    }

    /// Starts or stops a schedule. What was due while it was stopped does not come back.
    pub async fn switch_schedule(&self, scope: Scope, id: ScheduleId, is_active: bool) -> Result<Schedule, TriggerError> {
        let mut row = self.live_schedule(scope, id).await?;
        let (plan, _) = read_plan(&row.data)?;
        let now = self.clock.now();
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
        rows::update_schedule(&self.db, &row, run_at).await?.ok_or(TriggerError::NotFound("Schedule"))
    }

    pub async fn delete_schedule(&self, scope: Scope, id: ScheduleId) -> Result<(), TriggerError> {
        let sql = "update trigger_schedules set deleted_at = $3, deleted_by_id = $4, updated_at = $3, updated_by_id = $4, \
                   next_fire_at = null, run_at = null where project_id = $1 and id = $2 and deleted_at is null";
        match self.db.execute(sql, store::args![scope.project, id, self.clock.now(), scope.author()]).await? {
            0 => Err(TriggerError::NotFound("Schedule")),
            _ => Ok(()),
        }
    }

    /// Also one that was deleted, so that its deliveries can be understood.
    pub async fn schedule(&self, scope: Scope, id: ScheduleId) -> Result<Schedule, TriggerError> {
        rows::schedule_by_id(&self.db, scope.project, id).await?.ok_or(TriggerError::NotFound("Schedule"))
    }

    async fn live_schedule(&self, scope: Scope, id: ScheduleId) -> Result<Schedule, TriggerError> {
        let row = self.schedule(scope, id).await?;
        if row.life.deleted_at.is_some() { Err(TriggerError::NotFound("Schedule")) } else { Ok(row) }
    }

    pub async fn schedules(&self, scope: Scope, query: &ParentQuery) -> Result<Vec<Schedule>, TriggerError> {
        Ok(rows::schedules(&self.db, scope.project, query).await?)
    }

    /// Runs a schedule now, besides its slots.
    pub async fn run_schedule(&self, scope: Scope, id: ScheduleId) -> Result<Delivery, TriggerError> {
        let row = self.live_schedule(scope, id).await?;
        let now = self.clock.now();
        let new = rows::NewDelivery {
            id: DeliveryId::new(),
            event_id: format!("{id}:manual:{}", DeliveryId::new()),
            ..run_of(&row, now, now, now)
        };
        let mut tx = self.db.begin_durable().await?;
        rows::insert_delivery(&mut tx, &new).await?;
        tx.commit().await?;
        self.0.wake.notify_one();
        rows::delivery_by_id(&self.db, scope.project, new.id).await?.ok_or(TriggerError::NotFound("Trigger delivery"))
    }

    /// The next ten times of a schedule that is, or that may be.
    pub fn upcoming(&self, data: &Value) -> Result<Vec<Timestamp>, TriggerError> {
        let (plan, _) = read_plan(data)?;
        Ok(plan.upcoming(self.clock.now(), UPCOMING))
    }

    async fn check_schedule(&self, scope: Scope, new: &NewSchedule) -> Result<Plan, TriggerError> {
        check_spelling(&new.data, SCHEDULE)?;
        event_key(&new.data)?;
        let (plan, _) = read_plan(&new.data)?;
        self.check_target(scope, &new.data, &context::known_of_schedule()).await?;
        Ok(plan)
    }
}

/// Sets the slot that the schedule waits for, and says when its run begins.
fn plan_ahead(row: &mut Schedule, plan: &Plan, now: Timestamp) -> Option<Timestamp> {
    row.next_fire_at = if row.is_active { plan.next_after(now) } else { None };
    row.next_fire_at.map(|slot| plan.run_at(row.id.uuid(), slot))
}

fn event_key(data: &Value) -> Result<String, TriggerError> {
    match data.get("event_key").and_then(Value::as_str) {
        Some(key) if !key.is_empty() => Ok(key.to_owned()),
        _ => Err(TriggerError::Invalid("`data.event_key` is required".to_owned())),
    }
}
