//! Deliveries whose runs have to be approved: they wait, and are tried again when somebody has decided.

use std::collections::HashMap;

use kernel::{ApprovalId, ProjectId};
use store::{StoreError, args};

use crate::Triggers;

impl Triggers {
    /// Makes deliveries ready whose approval was decided. Approved, they run; denied, their next try says so.
    pub(crate) async fn ready_the_decided(&self) -> Result<(), StoreError> {
        let sql = "select distinct project_id, approval_id from trigger_deliveries where state = 'waiting' and approval_id is not null";
        let mut waiting: HashMap<ProjectId, Vec<ApprovalId>> = HashMap::new();
        for row in self.db.all(sql, args![]).await? {
            waiting.entry(row.get("project_id")?).or_default().push(row.get("approval_id")?);
        }
        for (project, approvals) in waiting {
            let undecided = self.runs.undecided(project).await?;
            for approval in approvals.into_iter().filter(|approval| !undecided.contains(approval)) {
                let sql = "update trigger_deliveries set state = 'ready', due_at = $3, updated_at = $3 \
                           where project_id = $1 and approval_id = $2 and state = 'waiting'";
                self.db.execute(sql, args![project, approval, self.clock.now()]).await?;
            }
        }
        Ok(())
    }
}
