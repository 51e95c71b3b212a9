//! Deliveries whose runs have to be approved: they wait, and are tried again when somebody has decided.

use std::collections::HashMap;

use kernel::{ApprovalId, ProjectId};
use store::{Many, StoreError, args, row};

use crate::Triggers;

impl Triggers {
    /// Makes deliveries ready whose approval was decided; how many. Approved, they run; denied, their next try says so.
    pub(crate) async fn ready_the_decided(&self) -> Result<u64, StoreError> {
        let sql = "select distinct project_id, approval_id from trigger_deliveries where state = 'waiting' and approval_id is not null";
        let mut waiting: HashMap<ProjectId, Vec<ApprovalId>> = HashMap::new();
        for row in self.0.db.all(sql, args![]).await? {
            waiting.entry(row.get("project_id")?).or_default().push(row.get("approval_id")?);
        }
        let mut readied = 0;
        for (project, approvals) in waiting {
            let undecided = self.0.runs.undecided(project).await?;
            let now = self.0.clock.now();
            let decided = approvals.into_iter().filter(|approval| !undecided.contains(approval));
            let rows = decided.map(|approval| row! { project_id: project, approval_id: approval, now: now });
            let sql = "update trigger_deliveries as d set state = 'ready', due_at = v.now, updated_at = v.now from v \
                       where d.project_id = v.project_id and d.approval_id = v.approval_id and d.state = 'waiting'";
            let decided = Many::with(rows, sql);
            if !decided.is_empty() {
                readied += self.0.db.write_many(decided).await?;
            }
        }
        Ok(readied)
    }
}
