//! How many runs a project made over a time, and how they ended.

use std::collections::BTreeMap;

use kernel::{Period, Scope, Timestamp};
use store::{Row, StoreError, args};

use crate::runs::{RunState, state_sql};
use crate::{WorkflowError, Workflows};

/// The runs of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStats {
    pub period: Period,
    pub runs: u64,
    pub states: BTreeMap<&'static str, u64>,
    pub buckets: Vec<RunBucket>,
}

/// The runs that began in a part of the time, and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunBucket {
    pub from: Timestamp,
    pub runs: u64,
    pub failed: u64,
}

impl Workflows {
    /// Counts runs by when they began, along an index.
    #[kernel::boxed]
    pub async fn run_stats(&self, scope: Scope, period: Period) -> Result<RunStats, WorkflowError> {
        let sql = concat!(
            "select (created_at - $2) / $4 as part, ",
            state_sql!(),
            " as state, count(*) as found from workflow_runs where project_id = $1 and created_at >= $2 and created_at < $3 group by part, state"
        );
        let mut stats = RunStats {
            period,
            runs: 0,
            states: RunState::ALL.into_iter().map(|state| (state.name(), 0)).collect(),
            buckets: period.starts().map(|from| RunBucket { from, runs: 0, failed: 0 }).collect(),
        };
        for row in &self.0.db.all(sql, args![scope.project, period.since, period.until, period.width()]).await? {
            stats.add(row)?;
        }
        Ok(stats)
    }
}

impl RunStats {
    fn add(&mut self, row: &Row) -> Result<(), StoreError> {
        let (part, state, found): (i64, String, i64) = (row.get("part")?, row.get("state")?, row.get("found")?);
        let missing = |column: &str| StoreError::Column(column.to_owned());
        let state = RunState::named(&state).ok_or_else(|| missing("state"))?;
        let bucket = usize::try_from(part).ok().and_then(|part| self.buckets.get_mut(part)).ok_or_else(|| missing("part"))?;
        let found = found.unsigned_abs();
        self.runs += found;
        *self.states.entry(state.name()).or_default() += found;
        bucket.runs += found;
        if state == RunState::Failed {
            bucket.failed += found;
        }
        Ok(())
    }
}
