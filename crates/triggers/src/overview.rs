//! What came in to a project over a time, and what became of it.

use std::collections::BTreeMap;

use kernel::{Period, ProjectId, Timestamp};
use store::{Row, StoreError, args};

use crate::model::State;
use crate::{TriggerError, Triggers};

/// What came in during one part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub from: Timestamp,
    pub events: u64,
    /// Of the deliveries that were made then, how many are dead now.
    pub dead: u64,
}

/// What came in, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    pub since: Timestamp,
    pub until: Timestamp,
    pub events: u64,
    /// The deliveries that were made in this time, by the state that they have now.
    pub deliveries: BTreeMap<&'static str, u64>,
    pub buckets: Vec<Bucket>,
}

impl Triggers {
    /// Counts the events and deliveries of a project by time, each with one query over an index by project and time.
    pub async fn overview(&self, project: ProjectId, period: Period) -> Result<Overview, TriggerError> {
        let Period { since, until, .. } = period;
        let mut buckets: Vec<Bucket> = period.starts().map(|from| Bucket { from, events: 0, dead: 0 }).collect();
        let mut deliveries: BTreeMap<&'static str, u64> = State::ALL.into_iter().map(|state| (state.name(), 0)).collect();
        let sql = "select (received_at - $2) / $4 as part, count(*) as found from trigger_events \
                   where project_id = $1 and received_at >= $2 and received_at < $3 group by part";
        let mut events = 0;
        for row in &self.0.db.all(sql, args![project, since, until, period.width()]).await? {
            let found = found(row)?;
            events += found;
            part(&mut buckets, row)?.events += found;
        }
        let sql = "select state, (created_at - $2) / $4 as part, count(*) as found from trigger_deliveries \
                   where project_id = $1 and created_at >= $2 and created_at < $3 group by state, part";
        for row in &self.0.db.all(sql, args![project, since, until, period.width()]).await? {
            let (state, found) = (row.get::<String>("state")?, found(row)?);
            let state = State::named(&state).ok_or_else(|| StoreError::Column("state".to_owned()))?;
            *deliveries.entry(state.name()).or_default() += found;
            if state == State::Dead {
                part(&mut buckets, row)?.dead += found;
            }
        }
        Ok(Overview { since, until, events, deliveries, buckets })
    }
}

/// The part of the time that a row of a grouped query is about.
fn part<'a>(buckets: &'a mut [Bucket], row: &Row) -> Result<&'a mut Bucket, StoreError> {
    let part = usize::try_from(row.get::<i64>("part")?).ok();
    part.and_then(|part| buckets.get_mut(part)).ok_or_else(|| StoreError::Column("part".to_owned()))
}

fn found(row: &Row) -> Result<u64, StoreError> {
    Ok(row.get::<i64>("found")?.unsigned_abs())
}
