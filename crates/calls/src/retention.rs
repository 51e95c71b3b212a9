//! How many approvals a project keeps, and for how long approvals and the record of calls are kept.

use std::time::Duration;

use accounts::kept_for;
use kernel::{ApprovalId, CallId, ProjectId, Timestamp};
use store::{Quota, StoreError, args};
use uuid::Uuid;

use crate::Calls;
use crate::idempotency::KEPT_FOR;

pub(crate) const APPROVALS: &str = "approvals";
/// Rows that are looked at in one go.
const BATCH: i64 = 500;

/// What is kept of calls and approvals.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub approvals: Quota,
    pub approval_retention: Duration,
    pub call_retention: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let approvals = Quota {
            what: "approvals",
            rows: 100_000,
            bytes: 256 << 20,
            rows_setting: "approvals_per_project",
            bytes_setting: "approval_bytes_per_project",
            remedy: "Those that nobody needs any more are dropped every few minutes, and those that wait end after a day",
        };
        Self { approvals, approval_retention: Duration::from_hours(90 * 24), call_retention: Duration::from_hours(365 * 24) }
    }
}

/// What was dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub calls: u64,
    pub approvals: u64,
}

impl Calls {
    /// Drops what a project kept for long enough. What is in use stays: calls under way, approvals that somebody may still decide or use, and
    /// answers that are kept for their keys.
    #[kernel::boxed]
    pub async fn forget(&self, project: ProjectId) -> Result<Forgotten, StoreError> {
        let kept_answers = "delete from tool_idempotency where project_id = $1 and created_at < $2";
        self.0.db.execute(kept_answers, args![project, self.0.clock.now().minus(KEPT_FOR)]).await?;
        let own = self.0.accounts.retention(project).await?;
        let Limits { call_retention, approval_retention, .. } = self.0.limits;
        let (calls, approvals) = (kept_for(own.calls, call_retention), kept_for(own.approvals, approval_retention));
        self.forget_kept(project, calls).await?;
        Ok(Forgotten { calls: self.forget_calls(project, calls).await?, approvals: self.forget_approvals(project, approvals).await? })
    }

    /// For how long the deployment keeps calls and approvals.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    async fn forget_calls(&self, project: ProjectId, kept_for: Duration) -> Result<u64, StoreError> {
        let before = self.0.clock.now().minus(kept_for);
        let (mut last, mut forgotten) = (CallId::from(Uuid::nil()), 0);
        loop {
            let sql = "select id, created_at, node_id from tool_calls where project_id = $1 and id > $2 order by id limit $3";
            let rows = self.0.db.all(sql, args![project, last, BATCH]).await?;
            let (mut old, mut is_over) = (Vec::new(), rows.is_empty());
            for row in &rows {
                if row.get::<Timestamp>("created_at")? >= before {
                    is_over = true;
                    break;
                }
                last = row.get("id")?;
                if row.get::<Option<Uuid>>("node_id")?.is_none() {
                    old.push(last.uuid());
                }
            }
            // A call that is under way, or that began again meanwhile, has a node.
            let delete = "delete from tool_calls where project_id = $1 and id = $2 and node_id is null returning cast(0 as bigint) as size";
            forgotten += self.0.db.remove_counted(project, None, delete, &old).await?;
            if is_over {
                return Ok(forgotten);
            }
        }
    }

    async fn forget_approvals(&self, project: ProjectId, kept_for: Duration) -> Result<u64, StoreError> {
        let quota = self.0.limits.approvals;
        let now = self.0.clock.now();
        let before = now.minus(kept_for);
        let is_crowded = quota.is_above(self.0.db.usage(project, APPROVALS).await?, 9);
        let (mut last, mut forgotten) = (ApprovalId::from(Uuid::nil()), 0);
        loop {
            let usage = self.0.db.usage(project, APPROVALS).await?;
            let makes_room = is_crowded && quota.is_above(usage, 8);
            let batch = if makes_room { usage.rows.div_euclid(10).clamp(1, BATCH / 10) } else { BATCH };
            let sql = "select id, created_at, expires_at from tool_approvals where project_id = $1 and id > $2 order by id limit $3";
            let rows = self.0.db.all(sql, args![project, last, batch]).await?;
            let (mut old, mut is_over) = (Vec::new(), rows.is_empty());
            for row in &rows {
                if !makes_room && row.get::<Timestamp>("created_at")? >= before {
                    is_over = true;
                    break;
                }
                last = row.get("id")?;
                if row.get::<Timestamp>("expires_at")? < now {
                    old.push(last.uuid());
                }
            }
            let delete = "delete from tool_approvals where project_id = $1 and id = $2 returning size";
            forgotten += self.0.db.remove_counted(project, Some(APPROVALS), delete, &old).await?;
            if is_over {
                return Ok(forgotten);
            }
        }
    }
}
