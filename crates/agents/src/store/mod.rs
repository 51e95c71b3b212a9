//! The queries of this room. Every one names the project.

pub(crate) mod agents;
pub(crate) mod apps;
pub(crate) mod assignments;
pub(crate) mod history;
pub(crate) mod keys;

use kernel::ProjectId;
use store::{StoreError, Tx, args};

/// Waits until nobody else changes agents of the project. Every transaction of this room begins with it, so no two can wait for each other.
pub(crate) async fn take_turn(tx: &mut Tx, project: ProjectId) -> Result<(), StoreError> {
    let sql = "insert into agent_numbers (project_id, kind, last) values ($1, 'agent', 0) \
               on conflict (project_id, kind) do update set last = agent_numbers.last";
    tx.execute(sql, args![project]).await.map(|_| ())
}

/// The next number of a kind; numbers are never given twice.
pub(crate) async fn next_number(tx: &mut Tx, project: ProjectId, kind: &str) -> Result<i64, StoreError> {
    let sql = "insert into agent_numbers (project_id, kind, last) values ($1, $2, 1) \
               on conflict (project_id, kind) do update set last = agent_numbers.last + 1 returning last";
    let row = tx.optional(sql, args![project, kind]).await?;
    row.ok_or_else(|| StoreError::Column("last".to_owned()))?.get("last")
}
