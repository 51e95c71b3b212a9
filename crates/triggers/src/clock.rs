//! The clock: fires the schedules whose slot has come, each slot once, whoever looks first.

use std::time::Duration;

use kernel::{DeliveryId, Timestamp};
use store::{Db, Many, StoreError, args, row};
use tokio_util::sync::CancellationToken;

use crate::model::{Parent, Schedule};
use crate::schedule::{self, due};
use crate::store::{self as rows, NewDelivery, schedule_columns};
use crate::target::read_plan;
use crate::{TriggerError, Triggers};

const TICK: Duration = Duration::from_millis(200);
/// How often a node looks for schedules that another one saved.
const IDLE: Duration = Duration::from_secs(1);
/// Schedules that are fired in one transaction.
const BATCH: i64 = 500;

impl Triggers {
    pub(crate) async fn run_clock(self, stop: CancellationToken) {
        // It may also have gone back while no server ran.
        let mut last = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.next_look().await) => {}
                () = self.0.scheduled.notified() => {}
            }
            let now = self.0.clock.now();
            let went_back = last.is_none_or(|last| now < last);
            let looked = if went_back { self.replan(now).await.map(|_| ()) } else { Ok(()) };
            match looked {
                Ok(()) => last = Some(now),
                Err(error) => tracing::error!(%error, "what the clock left behind could not be planned again"),
            }
            if let Err(error) = self.fire_due(now).await {
                tracing::error!(%error, "due schedules could not be fired");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    /// How long nothing is due, as far as this node knows. A look at SQLite costs nothing.
    async fn next_look(&self) -> Duration {
        let Db::Postgres(_) = &self.0.db else { return TICK };
        let sql = "select min(run_at) as next from trigger_schedules where run_at is not null";
        let next =
            self.0.db.optional(sql, args![]).await.ok().flatten().and_then(|row| row.get::<Option<Timestamp>>("next").ok().flatten());
        let wait = next.map(|next| u64::try_from(next.micros().saturating_sub(self.0.clock.now().micros())).unwrap_or(0));
        wait.map_or(IDLE, Duration::from_micros).clamp(TICK, IDLE)
    }

    /// Fires everything that is due at `now`; how many runs that makes.
    #[kernel::boxed]
    pub async fn fire_due(&self, now: Timestamp) -> Result<usize, TriggerError> {
        let mut fired = 0;
        loop {
            let (schedules, runs) = self.fire_some(now).await?;
            fired += runs;
            if runs > 0 {
                self.wake_all();
            }
            if i64::try_from(schedules).is_ok_and(|schedules| schedules < BATCH) {
                return Ok(fired);
            }
        }
    }

    /// The same on an outside clock's word, which is never ahead of ours.
    #[kernel::boxed]
    pub async fn fire_until(&self, tick: Timestamp) -> Result<usize, TriggerError> {
        self.require_running()?;
        self.fire_due(tick.min(self.0.clock.now())).await
    }

    async fn fire_some(&self, now: Timestamp) -> Result<(usize, usize), StoreError> {
        // In the order of the index: PostgreSQL would otherwise read the table, in the hope to find one soon.
        let any = "select 1 as found from trigger_schedules where run_at is not null and run_at <= $1 order by run_at limit 1";
        if self.0.db.optional(any, args![now]).await?.is_none() {
            return Ok((0, 0));
        }
        macro_rules! due {
            ($lock:literal) => {
                concat!(
                    "select ",
                    schedule_columns!(),
                    " from trigger_schedules where run_at is not null and run_at <= $1 order by run_at limit $2",
                    $lock
                )
            };
        }
        let sql = match &self.0.db {
            Db::Sqlite(_) => due!(""),
            Db::Postgres(_) => due!(" for update skip locked"),
        };
        let mut tx = self.0.db.begin_durable().await?;
        let found = tx.all(sql, args![now, BATCH]).await?;
        let schedules: Vec<Schedule> = found.iter().map(rows::schedule).collect::<Result<_, _>>()?;
        let (runs, slots): (Vec<Vec<NewDelivery>>, Vec<Slot>) = schedules.iter().map(|row| fire(row, now)).unzip();
        let runs: Vec<&NewDelivery> = runs.iter().flatten().collect();
        let made = rows::insert_deliveries(&mut tx, &runs).await?;
        let slots = schedules.iter().zip(slots).map(|(row, Slot { is_active, next, run_at })| {
            row! { project_id: row.project, id: row.id, is_active: is_active, next_fire_at: next, run_at: run_at }
        });
        let sql = "update trigger_schedules as s set is_active = v.is_active, next_fire_at = v.next_fire_at, run_at = v.run_at from v \
                   where s.project_id = v.project_id and s.id = v.id";
        tx.write_many(Many::with(slots, sql)).await?;
        tx.commit().await?;
        Ok((found.len(), usize::try_from(made).unwrap_or(usize::MAX)))
    }
}

/// What comes next for a schedule.
struct Slot {
    is_active: bool,
    next: Option<Timestamp>,
    run_at: Option<Timestamp>,
}

/// The runs of one schedule that are due, and its next slot.
fn fire(row: &Schedule, now: Timestamp) -> (Vec<NewDelivery>, Slot) {
    match (read_plan(&row.data), row.next_fire_at) {
        (Ok((plan, misfire)), Some(planned)) if row.is_active && row.life.deleted_at.is_none() => {
            let due = due(&plan, misfire, planned, now);
            let runs = due.fire.into_iter().map(|slot| run_of(row, slot, plan.run_at(row.id.uuid(), slot).max(now), now)).collect();
            let is_over = due.next.is_none() && plan.window.is_over(now);
            let run_at = due.next.map(|next| plan.run_at(row.id.uuid(), next));
            (runs, Slot { is_active: !is_over, next: due.next, run_at })
        }
        _ => (Vec::new(), Slot { is_active: row.is_active, next: None, run_at: None }),
    }
}

/// The run of one slot; its event id is the same on every node.
pub(crate) fn run_of(row: &Schedule, slot: Timestamp, due_at: Timestamp, now: Timestamp) -> NewDelivery {
    NewDelivery {
        id: DeliveryId::new(),
        project: row.project,
        parent: Parent::Schedule(row.id),
        event: None,
        event_id: schedule::event_id(row.id.uuid(), slot),
        event_key: row.event_key.clone(),
        is_ordered: false,
        due_at,
        created_at: now,
    }
}
