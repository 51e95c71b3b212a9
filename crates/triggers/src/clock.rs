//! The clock: fires the schedules whose slot has come, each slot once, whoever looks first.

use std::time::Duration;

use kernel::{DeliveryId, Timestamp};
use store::{Db, StoreError, Tx, args};
use tokio_util::sync::CancellationToken;

use crate::model::{Parent, Schedule};
use crate::schedule::{self, due};
use crate::store::{self as rows, NewDelivery, schedule_columns};
use crate::target::read_plan;
use crate::{TriggerError, Triggers};

const TICK: Duration = Duration::from_millis(200);
/// Schedules that are fired in one transaction.
const BATCH: i64 = 500;

impl Triggers {
    pub(crate) async fn run_clock(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(TICK) => {}
            }
            if let Err(error) = self.fire_due(self.clock.now()).await {
                tracing::error!(%error, "due schedules could not be fired");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    /// Fires everything that is due at `now`; how many runs that makes.
    pub async fn fire_due(&self, now: Timestamp) -> Result<usize, TriggerError> {
        let mut fired = 0;
        loop {
            let (schedules, runs) = self.fire_some(now).await?;
            fired += runs;
            if runs > 0 {
                self.0.wake.notify_one();
            }
            if i64::try_from(schedules).is_ok_and(|schedules| schedules < BATCH) {
                return Ok(fired);
            }
        }
    }

    /// The same on an outside clock's word, which is never ahead of ours.
    pub async fn fire_until(&self, tick: Timestamp) -> Result<usize, TriggerError> {
        self.require_running()?;
        self.fire_due(tick.min(self.clock.now())).await
    }

    async fn fire_some(&self, now: Timestamp) -> Result<(usize, usize), StoreError> {
        let any = "select 1 as found from trigger_schedules where run_at is not null and run_at <= $1 limit 1";
        if self.db.optional(any, args![now]).await?.is_none() {
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
        let sql = match &self.db {
            Db::Sqlite(_) => due!(""),
            Db::Postgres(_) => due!(" for update skip locked"),
        };
        let mut tx = self.db.begin_durable().await?;
        let found = tx.all(sql, args![now, BATCH]).await?;
        let mut runs = 0;
        for row in &found {
            runs += self.fire(&mut tx, &rows::schedule(row)?, now).await?;
        }
        tx.commit().await?;
        Ok((found.len(), runs))
    }

    /// Makes the runs of one schedule and sets it to its next slot.
    async fn fire(&self, tx: &mut Tx, row: &Schedule, now: Timestamp) -> Result<usize, StoreError> {
        let mut runs = 0;
        let (is_active, next, run_at) = match (read_plan(&row.data), row.next_fire_at) {
            (Ok((plan, misfire)), Some(planned)) if row.is_active && row.life.deleted_at.is_none() => {
                let due = due(&plan, misfire, planned, now);
                for slot in due.fire {
                    let start = plan.run_at(row.id.uuid(), slot).max(now);
                    runs += usize::from(rows::insert_delivery(tx, &run_of(row, slot, start, now)).await?);
                }
                let is_over = due.next.is_none() && plan.window.is_over(now);
                (!is_over, due.next, due.next.map(|next| plan.run_at(row.id.uuid(), next)))
            }
            _ => (row.is_active, None, None),
        };
        let sql = "update trigger_schedules set is_active = $3, next_fire_at = $4, run_at = $5 where project_id = $1 and id = $2";
        tx.execute(sql, args![row.project, row.id, is_active, next, run_at]).await?;
        Ok(runs)
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
