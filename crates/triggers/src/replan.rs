//! After the clock went back: what was planned by a time that has not come is planned again. A slot that was fired already is not fired
//! twice, since its event id is the same.

use std::time::Duration;

use kernel::{ProjectId, ScheduleId, Timestamp};
use store::{StoreError, args};
use uuid::Uuid;

use crate::Triggers;
use crate::store::{self as rows, schedule_columns};
use crate::target::read_plan;

/// Schedules that are looked at in one go.
const BATCH: i64 = 500;
/// Nothing waits longer than this for its next try or its next poll.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

impl Triggers {
    /// Plans again what waits for a time further ahead than it would by this clock; how many schedules, polls and deliveries that are.
    #[kernel::boxed]
    pub async fn replan(&self, now: Timestamp) -> Result<u64, StoreError> {
        let too_late = now.plus(LONGEST_WAIT);
        let mut moved = self.replan_schedules(now).await?;
        let polls = "update trigger_subscriptions set poll_at = $1 where poll_at is not null and poll_at > $2";
        moved += self.0.db.execute(polls, args![now, too_late]).await?;
        let ready = "update trigger_deliveries set due_at = $1 where state = 'ready' and due_at > $2";
        moved += self.0.db.execute(ready, args![now, too_late]).await?;
        // Whoever works on one moves its end on again; nobody else gets it before.
        let (lease, longest) = (now.plus(self.0.settings.lease), now.plus(self.0.settings.lease * 2));
        let leased = "update trigger_deliveries set lease_until = $1 where state = 'leased' and lease_until > $2";
        moved += self.0.db.execute(leased, args![lease, longest]).await?;
        if moved > 0 {
            tracing::warn!(moved, "the clock went back; what waited for a later time is planned again");
            self.wake_all();
        }
        Ok(moved)
    }

    async fn replan_schedules(&self, now: Timestamp) -> Result<u64, StoreError> {
        let sql = concat!(
            "select ",
            schedule_columns!(),
            " from trigger_schedules where run_at is not null and next_fire_at > $1 and (project_id, id) > ($2, $3) \
             order by project_id, id limit $4"
        );
        let (mut project, mut id) = (ProjectId::from(Uuid::nil()), ScheduleId::from(Uuid::nil()));
        let mut moved = 0;
        loop {
            let found = self.0.db.all(sql, args![now, project, id, BATCH]).await?;
            for row in &found {
                let row = rows::schedule(row)?;
                (project, id) = (row.project, row.id);
                let (Ok((plan, _)), Some(planned)) = (read_plan(&row.data), row.next_fire_at) else { continue };
                let Some(next) = plan.next_after(now).filter(|next| *next < planned) else { continue };
                let sql =
                    "update trigger_schedules set next_fire_at = $3, run_at = $4 where project_id = $1 and id = $2 and next_fire_at = $5";
                let run_at = plan.run_at(row.id.uuid(), next);
                moved += self.0.db.execute(sql, args![project, id, next, run_at, planned]).await?;
            }
            if i64::try_from(found.len()).is_ok_and(|found| found < BATCH) {
                return Ok(moved);
            }
        }
    }
}
