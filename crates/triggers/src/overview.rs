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

/// How many rows of a table each part of the time has. Each part is a piece of an index by project and time, which is counted; to group the
/// rows would sort all of them.
macro_rules! counted_by {
    ($table:literal, $time:literal) => {
        concat!(
            "with recursive parts (part, low, high) as ( \
               select cast(0 as bigint), cast($2 as bigint), cast($2 as bigint) + $4 \
               union all select part + 1, low + $4, high + $4 from parts where part + 1 < $5) \
             select part, (select count(*) from ",
            $table,
            " where project_id = $1 and ",
            $time,
            " >= parts.low and ",
            $time,
            " < parts.high and ",
            $time,
            " < $3) as found from parts"
        )
    };
}

/// The deliveries of a time in states that few have, of which each has an index of its own; times are not looked for by their index, because
/// it leads to all the others too.
macro_rules! rare {
    ($($which:literal),*) => {
        concat!("select state, part, count(*) as found from (", rare!(@each $($which),*), ") rare group by state, part")
    };
    (@each $first:literal $(, $which:literal)*) => {
        concat!(rare!(@one $first) $(, " union all ", rare!(@one $which))*)
    };
    (@one $which:literal) => {
        concat!(
            "select state, (created_at - $2) / $4 as part from trigger_deliveries where project_id = $1 and ",
            $which,
            " and created_at + 0 >= $2 and created_at + 0 < $3"
        )
    };
}

impl Triggers {
    /// Counts the events and deliveries of a project by time. Most deliveries are done, so those that are not are counted and taken away.
    #[kernel::boxed]
    pub async fn overview(&self, project: ProjectId, period: Period) -> Result<Overview, TriggerError> {
        let Period { since, until, .. } = period;
        let mut buckets: Vec<Bucket> = period.starts().map(|from| Bucket { from, events: 0, dead: 0 }).collect();
        let mut deliveries: BTreeMap<&'static str, u64> = State::ALL.into_iter().map(|state| (state.name(), 0)).collect();
        let counted = || args![project, since, until, period.width(), period.parts()];
        let rare = rare!(
            "state in ('ready', 'leased', 'waiting') and subscription_id is not null",
            "state in ('ready', 'leased', 'waiting') and subscription_id is null",
            "state = 'dead'",
            "state = 'cancelled'"
        );
        let (came, made, rare) = tokio::try_join!(
            self.0.db.all(counted_by!("trigger_events", "received_at"), counted()),
            self.0.db.all(counted_by!("trigger_deliveries", "created_at"), counted()),
            self.0.db.all(rare, args![project, since, until, period.width()])
        )?;
        let mut events = 0;
        for row in &came {
            let found = found(row)?;
            events += found;
            part(&mut buckets, row)?.events += found;
        }
        let mut done = 0;
        for row in &made {
            done += found(row)?;
        }
        for row in &rare {
            let (state, found) = (row.get::<String>("state")?, found(row)?);
            let state = State::named(&state).ok_or_else(|| StoreError::Column("state".to_owned()))?;
            *deliveries.entry(state.name()).or_default() += found;
            done = done.saturating_sub(found);
            if state == State::Dead {
                part(&mut buckets, row)?.dead += found;
            }
        }
        deliveries.insert(State::Done.name(), done);
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
