//! How much a project keeps of something: counters that are changed with the rows they count, and the bounds they are held against.

use kernel::ProjectId;
use uuid::Uuid;

use crate::{Arg, Db, StoreError, Tx};

/// Rows that are removed in one transaction, so that no other write waits long.
const BATCH: usize = 100;

/// What a project keeps of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub rows: i64,
    pub bytes: i64,
}

impl Usage {
    /// One row of so many bytes.
    pub fn row(bytes: usize) -> Self {
        Self { rows: 1, bytes: i64::try_from(bytes).unwrap_or(i64::MAX) }
    }
}

/// The most that a project may keep of something.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// What they are, in the plural.
    pub what: &'static str,
    pub rows: i64,
    pub bytes: i64,
    /// The settings that say so.
    pub rows_setting: &'static str,
    pub bytes_setting: &'static str,
    /// What makes room.
    pub remedy: &'static str,
}

/// A project keeps as much of something as it may.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("This project may keep {limit} (the setting `{setting}`), and has as many. {remedy}; or ask the operator to raise the setting.")]
pub struct Full {
    pub limit: String,
    pub setting: &'static str,
    pub remedy: &'static str,
}

impl Quota {
    /// Whether this much more may be kept.
    pub fn admit(&self, usage: Usage, more: Usage) -> Result<(), Full> {
        let full = |limit: String, setting: &'static str| Full { limit, setting, remedy: self.remedy };
        if usage.rows.saturating_add(more.rows) > self.rows {
            return Err(full(format!("{} {}", self.rows, self.what), self.rows_setting));
        }
        if usage.bytes.saturating_add(more.bytes) > self.bytes {
            return Err(full(format!("{} bytes of {}", self.bytes, self.what), self.bytes_setting));
        }
        Ok(())
    }

    /// Whether more than so many tenths of it are used.
    pub fn is_above(&self, usage: Usage, tenths: i64) -> bool {
        let above = |used: i64, most: i64| used > most / 10 * tenths + most % 10 * tenths / 10;
        above(usage.rows, self.rows) || above(usage.bytes, self.bytes)
    }
}

impl Db {
    /// What a project keeps of something that is counted.
    pub async fn usage(&self, project: ProjectId, kind: &'static str) -> Result<Usage, StoreError> {
        let sql = "select row_count, byte_count from project_usage where project_id = $1 and kind = $2";
        let row = self.optional(sql, [Arg::from(project), Arg::from(kind)]).await?;
        row.map_or(Ok(Usage::default()), |row| Ok(Usage { rows: row.get("row_count")?, bytes: row.get("byte_count")? }))
    }

    /// What a project keeps of something that is not counted: a query for `many` rows and how `long` they are together.
    pub async fn measure<'a>(&self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Result<Usage, StoreError> {
        let row = self.optional(sql, args).await?;
        row.map_or(Ok(Usage::default()), |row| Ok(Usage { rows: row.get("many")?, bytes: row.get("long")? }))
    }

    /// Removes rows with a statement that takes project and id and returns `size`, a few at a time, and counts them off. A row that somebody
    /// else removed meanwhile is not counted twice.
    pub async fn remove_counted(
        &self,
        project: ProjectId,
        kind: Option<&'static str>,
        delete: &'static str,
        ids: &[Uuid],
    ) -> Result<u64, StoreError> {
        let mut removed = 0;
        for some in ids.chunks(BATCH) {
            let mut gone = Usage::default();
            let mut tx = self.begin().await?;
            for id in some {
                if let Some(row) = tx.optional(delete, [Arg::from(project), Arg::from(*id)]).await? {
                    gone.rows += 1;
                    gone.bytes += row.get::<i64>("size")?;
                }
            }
            if let Some(kind) = kind {
                tx.count(project, kind, Usage { rows: -gone.rows, bytes: -gone.bytes }).await?;
            }
            tx.commit().await?;
            removed += u64::try_from(gone.rows).unwrap_or_default();
        }
        Ok(removed)
    }
}

impl Tx {
    /// Counts rows that come in this transaction, or go.
    pub async fn count(&mut self, project: ProjectId, kind: &'static str, more: Usage) -> Result<(), StoreError> {
        let sql = "insert into project_usage (project_id, kind, row_count, byte_count) values ($1, $2, $3, $4) on conflict (project_id, kind) \
                   do update set row_count = project_usage.row_count + excluded.row_count, byte_count = project_usage.byte_count + excluded.byte_count";
        self.execute(sql, [Arg::from(project), Arg::from(kind), Arg::from(more.rows), Arg::from(more.bytes)]).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_says_which_and_what_to_do() {
        let quota = Quota {
            what: "runs",
            rows: 10,
            bytes: 1000,
            rows_setting: "runs_per_project",
            bytes_setting: "run_bytes_per_project",
            remedy: "Wait a little",
        };
        let used = |rows, bytes| Usage { rows, bytes };
        assert!(quota.admit(used(9, 0), used(1, 1000)).is_ok());
        let full = quota.admit(used(10, 0), used(1, 0)).unwrap_err().to_string();
        assert!(full.contains("10 runs") && full.contains("`runs_per_project`") && full.contains("Wait a little"), "{full}");
        assert!(quota.admit(used(1, 999), used(1, 2)).unwrap_err().to_string().contains("1000 bytes of runs"));
        assert!(!quota.is_above(used(9, 900), 9) && quota.is_above(used(10, 0), 9) && quota.is_above(used(0, 901), 9));
    }
}
