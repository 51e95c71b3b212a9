//! The queries of this room. Every one names the project.

pub(crate) mod agents;
pub(crate) mod apps;
pub(crate) mod assignments;
pub(crate) mod history;

use kernel::ProjectId;
use store::{StoreError, Tx, args};

/// The next number of a kind; numbers are never given twice.
pub(crate) async fn next_number(tx: &mut Tx, project: ProjectId, kind: &str) -> Result<i64, StoreError> {
    let sql = "insert into agent_numbers (project_id, kind, last) values ($1, $2, 1) \
               on conflict (project_id, kind) do update set last = agent_numbers.last + 1 returning last";
    let row = tx.optional(sql, args![project, kind]).await?;
    row.ok_or_else(|| StoreError::Column("last".to_owned()))?.get("last")
}
