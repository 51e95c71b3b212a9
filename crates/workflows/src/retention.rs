//! How many runs a project keeps, and for how long.

use std::time::Duration;

use kernel::{ProjectId, RunId, Timestamp};
use store::{Quota, StoreError, Usage, args};

use crate::{WorkflowError, Workflows};

pub(crate) const RUNS: &str = "runs";
/// Runs that are looked at in one go.
const BATCH: i64 = 500;

/// What is kept of runs.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    pub quota: Quota,
    pub retention: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        let quota = Quota {
            what: "runs",
            rows: 1_000_000,
            bytes: 4 << 30,
            rows_setting: "runs_per_project",
            bytes_setting: "run_bytes_per_project",
            remedy: "The oldest are dropped every few minutes, so try again then",
        };
        Self { quota, retention: Duration::from_hours(90 * 24) }
    }
}

impl Workflows {
    /// Refuses a run that could not be kept.
    #[kernel::boxed]
    pub async fn check_room(&self, project: ProjectId) -> Result<(), WorkflowError> {
        let usage = self.0.db.usage(project, RUNS).await?;
        Ok(self.0.limits.quota.admit(usage, Usage { rows: 1, bytes: 0 })?)
    }

    /// For how long the deployment keeps runs.
    pub fn run_retention(&self) -> Duration {
        self.0.limits.retention
    }

    /// Drops the runs of a project that were kept for so long, and the oldest of one that keeps nearly as many as it may; how many.
    #[kernel::boxed]
    pub async fn forget_runs(&self, project: ProjectId, kept_for: Duration) -> Result<u64, StoreError> {
        let quota = self.0.limits.quota;
        let before = self.0.clock.now().minus(kept_for);
        let is_crowded = quota.is_above(self.0.db.usage(project, RUNS).await?, 9);
        let mut forgotten = 0;
        loop {
            let usage = self.0.db.usage(project, RUNS).await?;
            let makes_room = is_crowded && quota.is_above(usage, 8);
            let batch = if makes_room { usage.rows.div_euclid(10).clamp(1, BATCH / 10) } else { BATCH };
            let sql = "select id, created_at from workflow_runs where project_id = $1 order by id limit $2";
            let mut old = Vec::new();
            for row in self.0.db.all(sql, args![project, batch]).await? {
                if !makes_room && row.get::<Timestamp>("created_at")? >= before {
                    break;
                }
                old.push(row.get::<RunId>("id")?.uuid());
            }
            if old.is_empty() {
                return Ok(forgotten);
            }
            let delete = "delete from workflow_runs where project_id = $1 and id = $2 returning size";
            forgotten += self.0.db.remove_counted(project, Some(RUNS), delete, &old).await?;
        }
    }
}
