//! How much waits, how late the clock is, and how deliveries ended here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kernel::Timestamp;
use store::{Row, StoreError, args};

use crate::Triggers;
use crate::model::State;

/// What waits in all projects, on all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// To be run now.
    pub due: u64,
    /// To be run at a later time.
    pub later: u64,
    pub leased: u64,
    pub waiting: u64,
    /// How long the oldest of what is due has waited.
    pub queue_lag: Duration,
    /// How late the schedule is that should have fired first.
    pub schedule_lag: Duration,
}

/// How many deliveries ended on this node since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedDeliveries {
    pub done: u64,
    pub dead: u64,
    pub cancelled: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Ended {
    done: AtomicU64,
    dead: AtomicU64,
    cancelled: AtomicU64,
}

impl Ended {
    pub(crate) fn add(&self, state: State, count: u64) {
        let counter = match state {
            State::Done => &self.done,
            State::Dead => &self.dead,
            State::Cancelled => &self.cancelled,
            State::Ready | State::Leased | State::Waiting => return,
        };
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

impl Triggers {
    pub fn ended(&self) -> EndedDeliveries {
        let Ended { done, dead, cancelled } = &self.0.ended;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EndedDeliveries { done: read(done), dead: read(dead), cancelled: read(cancelled) }
    }

    /// Counts what waits.
    #[kernel::boxed]
    pub async fn stats(&self) -> Result<Stats, StoreError> {
        let now = self.0.clock.now();
        let mut stats = Stats::default();
        let due = "select count(*) as found, min(due_at) as oldest from trigger_deliveries where state = 'ready' and due_at <= $1";
        if let Some(row) = self.0.db.optional(due, args![now]).await? {
            stats.due = count(&row)?;
            stats.queue_lag = late(now, row.get("oldest")?);
        }
        let later = "select count(*) as found from trigger_deliveries where state = 'ready' and due_at > $1";
        if let Some(row) = self.0.db.optional(later, args![now]).await? {
            stats.later = count(&row)?;
        }
        let held = "select state, count(*) as found from trigger_deliveries where state in ('leased', 'waiting') group by state";
        for row in self.0.db.all(held, args![]).await? {
            let field = if row.get::<String>("state")? == State::Leased.name() { &mut stats.leased } else { &mut stats.waiting };
            *field = count(&row)?;
        }
        let sql = "select min(run_at) as first from trigger_schedules where run_at is not null and run_at <= $1";
        if let Some(row) = self.0.db.optional(sql, args![now]).await? {
            stats.schedule_lag = late(now, row.get("first")?);
        }
        Ok(stats)
    }

    /// How many deliveries of all projects ended dead and are still kept; an index has no others.
    #[kernel::boxed]
    pub async fn dead(&self) -> Result<u64, StoreError> {
        let row = self.0.db.optional("select count(*) as found from trigger_deliveries where state = 'dead'", args![]).await?;
        row.as_ref().map_or(Ok(0), count)
    }
}

fn count(row: &Row) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.get::<i64>("found")?).unwrap_or_default())
}

fn late(now: Timestamp, planned: Option<Timestamp>) -> Duration {
    planned.map_or(Duration::ZERO, |planned| Duration::from_micros(u64::try_from(now.micros() - planned.micros()).unwrap_or_default()))
}
