//! How many calls there were, how many of them failed and how long they took, over a time. Every call has a bin for its duration, and the
//! database counts along an index by bin and time, so that no row is read: a hundred thousand calls take some milliseconds.

use std::time::Duration;

use kernel::{Period, ProjectId, Timestamp};
use store::{Row, StoreError, args};

use super::Outcome;
use crate::{CallError, Calls};

/// Bins to each doubling of a duration in microseconds; what lies within one differs by less than a fifth.
const PER_DOUBLING: f64 = 4.0;
/// The bin of whatever takes longer than an hour.
const LONGEST: i64 = 126;
/// How many bins there are.
const BINS: usize = 127;
/// A call whose duration nobody knows.
const NO_DURATION: i64 = 127;
/// What is added to the bin of a call that did not succeed.
const ERROR: i64 = 128;
/// The bin of a call that was under way when its node went away.
pub(super) const LOST: i64 = ERROR + NO_DURATION;
const FAILING: i64 = 10;

/// The bin in which a call is counted; none while it is under way, and none where it was not made because a person is asked first.
pub(super) fn bin_of(outcome: Outcome, duration: Duration) -> Option<i64> {
    match outcome {
        Outcome::Running | Outcome::Waiting => None,
        Outcome::Unknown => Some(LOST),
        Outcome::Ok => Some(bin(duration)),
        Outcome::Error | Outcome::Failed => Some(ERROR + bin(duration)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a logarithm of a duration is small")]
fn bin(duration: Duration) -> i64 {
    let micros = (duration.as_secs_f64() * 1e6).max(1.0);
    ((micros.log2() * PER_DOUBLING).floor() as i64).clamp(0, LONGEST)
}

/// Where a bin begins, in milliseconds.
fn start_of(bin: u32) -> f64 {
    (f64::from(bin) / PER_DOUBLING).exp2() / 1000.0
}

/// What happened in a time.
#[derive(Clone, Debug)]
pub struct CallStats {
    pub period: Period,
    pub all: StatBucket,
    pub buckets: Vec<StatBucket>,
    /// The tools with most errors, the worst first.
    pub failing: Vec<FailingTool>,
}

/// The calls that began in a part of the time, and ended.
#[derive(Clone, Debug, PartialEq)]
pub struct StatBucket {
    pub from: Timestamp,
    pub calls: i64,
    /// Those that did not succeed.
    pub errors: i64,
    /// How long half of them took at most, in milliseconds.
    pub p50_ms: Option<f64>,
    /// How long nineteen of twenty took at most.
    pub p95_ms: Option<f64>,
}

/// A tool with errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingTool {
    pub tool: String,
    pub calls: i64,
    pub errors: i64,
    /// What the newest of them said.
    pub last_message: Option<String>,
}

/// How many calls lie in which bin.
#[derive(Clone, Debug)]
struct Histogram {
    /// By duration; calls without one are in none.
    bins: [i64; BINS],
    calls: i64,
    errors: i64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: [0; BINS], calls: 0, errors: 0 }
    }
}

impl Histogram {
    fn add(&mut self, bin: i64, calls: i64) {
        self.calls += calls;
        if bin >= ERROR {
            self.errors += calls;
        }
        if let Some(held) = usize::try_from(bin % ERROR).ok().and_then(|bin| self.bins.get_mut(bin)) {
            *held += calls;
        }
    }

    /// Below what so large a part of the calls stayed, in milliseconds; within a bin they are taken to lie evenly.
    #[expect(clippy::cast_precision_loss, reason = "nobody makes so many calls that it shows")]
    fn percentile(&self, part: f64) -> Option<f64> {
        let mut left = self.bins.iter().sum::<i64>() as f64 * part;
        for (bin, calls) in (0_u32..).zip(&self.bins).filter(|(_, calls)| **calls > 0) {
            let calls = *calls as f64;
            if left <= calls {
                let (low, high) = (start_of(bin), start_of(bin + 1));
                return Some(low + (high - low) * (left / calls));
            }
            left -= calls;
        }
        None
    }

    fn read(&self, from: Timestamp) -> StatBucket {
        let (p50_ms, p95_ms) = (self.percentile(0.5), self.percentile(0.95));
        StatBucket { from, calls: self.calls, errors: self.errors, p50_ms, p95_ms }
    }
}

impl Calls {
    /// What happened in a time: calls that ended, or whose end nobody knows, by when they began.
    #[kernel::boxed]
    pub async fn call_stats(&self, project: ProjectId, period: Period) -> Result<CallStats, CallError> {
        self.0.audit.settled().await;
        let mut buckets = vec![Histogram::default(); usize::try_from(period.parts()).unwrap_or(0)];
        let mut all = Histogram::default();
        let (counts, failing) = tokio::try_join!(self.bin_counts(project, period), self.failing_tools(project, period))?;
        for row in counts {
            let (bucket, bin, calls): (i64, i64, i64) = (row.get("bucket")?, row.get("bin")?, row.get("calls")?);
            if let Some(held) = usize::try_from(bucket).ok().and_then(|bucket| buckets.get_mut(bucket)) {
                held.add(bin, calls);
                all.add(bin, calls);
            }
        }
        let buckets = period.starts().zip(&buckets).map(|(from, held)| held.read(from)).collect();
        Ok(CallStats { period, all: all.read(period.since), buckets, failing })
    }

    /// How many calls each part of the time has in each bin. The bins that there are come one by one from the index, and each part of one is
    /// a piece of it; to group the calls would sort all of them.
    async fn bin_counts(&self, project: ProjectId, period: Period) -> Result<Vec<Row>, StoreError> {
        let sql = "with recursive buckets (number, low, high) as ( \
                     select cast(0 as bigint), cast($2 as bigint), cast($2 as bigint) + $4 \
                     union all select number + 1, low + $4, high + $4 from buckets where number + 1 < $5), \
                   bins (bin) as ( \
                     select min(stat_bin) from tool_calls where project_id = $1 and stat_bin is not null \
                     union all select (select min(stat_bin) from tool_calls where project_id = $1 and stat_bin > bins.bin) from bins \
                     where bins.bin is not null) \
                   select number as bucket, bin, (select count(*) from tool_calls where project_id = $1 and stat_bin = bins.bin \
                     and created_at >= buckets.low and created_at < buckets.high and created_at < $3) as calls \
                   from bins, buckets where bins.bin is not null";
        self.0.db.all(sql, args![project, period.since, period.until, period.width(), period.parts()]).await
    }

    /// The tools with most errors. Names that mean no tool are left out.
    async fn failing_tools(&self, project: ProjectId, period: Period) -> Result<Vec<FailingTool>, StoreError> {
        // Grouped by an expression, because SQLite would go through all calls of all times for those that come sorted by tool.
        let sql = "select worst.tool, worst.errors, \
                   (select count(*) from tool_calls where project_id = $1 and stat_bin is not null and tool = worst.tool \
                     and created_at >= $2 and created_at < $3) as calls, \
                   (select message from tool_calls where project_id = $1 and stat_bin is not null and tool = worst.tool \
                     and created_at >= worst.last_at and created_at < $3 and stat_bin >= 128 order by created_at desc, id desc limit 1) as last_message \
                   from (select coalesce(tool, '') as tool, count(*) as errors, max(created_at) as last_at from tool_calls where project_id = $1 \
                     and stat_bin >= 128 and created_at >= $2 and created_at < $3 and coalesce(tool, '') <> '' group by coalesce(tool, '') \
                     order by errors desc, coalesce(tool, '') limit $4) worst \
                   order by worst.errors desc, worst.tool";
        let rows = self.0.db.all(sql, args![project, period.since, period.until, FAILING]).await?;
        let read = |row: &Row| {
            Ok(FailingTool {
                tool: row.get("tool")?,
                calls: row.get("calls")?,
                errors: row.get("errors")?,
                last_message: row.get("last_message")?,
            })
        };
        rows.iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(calls: &[(Outcome, u64)]) -> Histogram {
        let mut held = Histogram::default();
        for (outcome, micros) in calls {
            held.add(bin_of(*outcome, Duration::from_micros(*micros)).unwrap(), 1);
        }
        held
    }

    #[test]
    fn a_percentile_is_as_near_as_its_bin() {
        let calls: Vec<_> = (1..=1000).map(|ms| (Outcome::Ok, ms * 1000)).collect();
        let held = histogram(&calls);
        for (part, exact) in [(0.5, 500.0), (0.95, 950.0), (0.01, 10.0)] {
            let found = held.percentile(part).unwrap();
            assert!((found / exact - 1.0).abs() < 0.1, "{part}: {found}");
        }
    }

    #[test]
    fn errors_count_and_lost_calls_have_no_duration() {
        let held = histogram(&[(Outcome::Ok, 0), (Outcome::Error, 1000), (Outcome::Failed, u64::MAX), (Outcome::Unknown, 0)]);
        assert_eq!((held.calls, held.errors), (4, 3));
        assert!(held.percentile(1.0).unwrap() > 3_000_000.0);
        assert_eq!(histogram(&[(Outcome::Unknown, 0)]).percentile(0.5), None);
        for uncounted in [Outcome::Running, Outcome::Waiting] {
            assert_eq!(bin_of(uncounted, Duration::ZERO), None);
        }
        assert_eq!(Histogram::default().percentile(0.5), None);
    }
}
