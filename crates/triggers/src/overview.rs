//! What came in to a project over a time, and what became of it.

use std::collections::BTreeMap;

use kernel::{ProjectId, Timestamp};
use store::{Row, StoreError, args};

use crate::model::State;
use crate::{TriggerError, Triggers};

/// The most parts that a time is cut into.
const MAX_BUCKETS: usize = 200;

/// Which time, and into how many parts it is cut.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    since: Timestamp,
    until: Timestamp,
    buckets: usize,
}

impl Window {
    pub fn new(since: Timestamp, until: Timestamp, buckets: i64) -> Result<Self, TriggerError> {
        if since >= until {
            return Err(TriggerError::Filter("`since` must be before `until`".to_owned()));
        }
        match usize::try_from(buckets) {
            Ok(buckets @ 1..=MAX_BUCKETS) => Ok(Self { since, until, buckets }),
            _ => Err(TriggerError::Filter(format!("`buckets` is {buckets}; it must be 1 to {MAX_BUCKETS}"))),
        }
    }

    /// How long a part is, in microseconds; parts of a time that cannot be divided evenly reach a little further than the time.
    fn width(&self) -> i64 {
        let (length, buckets) = (self.until.micros().saturating_sub(self.since.micros()), i64::try_from(self.buckets).unwrap_or(1));
        (length / buckets + i64::from(length % buckets > 0)).max(1)
    }

    fn parts(&self) -> Vec<Bucket> {
        let from = |part: usize| self.since.micros().saturating_add(self.width().saturating_mul(i64::try_from(part).unwrap_or(0)));
        (0..self.buckets).map(|part| Bucket { from: Timestamp::from_micros(from(part)), events: 0, dead: 0 }).collect()
    }

    /// Which part a row of a grouped query is about; the end itself belongs to the last.
    fn part(&self, row: &Row) -> Result<usize, StoreError> {
        Ok(usize::try_from(row.get::<i64>("part")?).unwrap_or(0).min(self.buckets - 1))
    }
}

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
    pub async fn overview(&self, project: ProjectId, window: Window) -> Result<Overview, TriggerError> {
        let Window { since, until, .. } = window;
        let mut buckets = window.parts();
        let mut deliveries: BTreeMap<&'static str, u64> = State::ALL.into_iter().map(|state| (state.name(), 0)).collect();
        let sql = "select (received_at - $2) / $4 as part, count(*) as found from trigger_events \
                   where project_id = $1 and received_at >= $2 and received_at <= $3 group by part";
        let mut events = 0;
        for row in &self.0.db.all(sql, args![project, since, until, window.width()]).await? {
            let found = found(row)?;
            events += found;
            buckets[window.part(row)?].events += found;
        }
        let sql = "select state, (created_at - $2) / $4 as part, count(*) as found from trigger_deliveries \
                   where project_id = $1 and created_at >= $2 and created_at <= $3 group by state, part";
        for row in &self.0.db.all(sql, args![project, since, until, window.width()]).await? {
            let (state, found) = (row.get::<String>("state")?, found(row)?);
            let state = State::named(&state).ok_or_else(|| StoreError::Column("state".to_owned()))?;
            *deliveries.entry(state.name()).or_default() += found;
            if state == State::Dead {
                buckets[window.part(row)?].dead += found;
            }
        }
        Ok(Overview { since, until, events, deliveries, buckets })
    }
}

fn found(row: &Row) -> Result<u64, StoreError> {
    Ok(row.get::<i64>("found")?.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(since: i64, until: i64, buckets: i64) -> Result<Window, TriggerError> {
        Window::new(Timestamp::from_micros(since), Timestamp::from_micros(until), buckets)
    }

    #[test]
    fn a_time_is_cut_into_parts_that_cover_it() {
        let from = |window: Window| window.parts().iter().map(|part| part.from.micros()).collect::<Vec<_>>();
        assert_eq!(from(window(0, 100, 4).unwrap()), [0, 25, 50, 75]);
        assert_eq!(from(window(10, 20, 3).unwrap()), [10, 14, 18]);
        assert_eq!(from(window(0, 1, 3).unwrap()), [0, 1, 2]);
        for (since, until, buckets) in [(1, 1, 1), (2, 1, 1), (0, 1, 0), (0, 1, -1), (0, 1, 201), (0, 1, i64::MAX)] {
            assert!(window(since, until, buckets).is_err(), "{since} {until} {buckets}");
        }
        assert!(window(i64::MIN, i64::MAX, 200).is_ok_and(|window| window.parts().len() == 200));
    }
}
