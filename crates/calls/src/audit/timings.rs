//! Where the time of a call went, as far as it is known.

use std::time::Duration;

use store::{Row, StoreError};

/// The parts of a call that were measured; nothing where there was no such part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// From the question to a person's yes; it lies before the call.
    pub approval: Option<Duration>,
    /// Waiting for the connection's rate limit.
    pub queue: Option<Duration>,
    /// Waiting for a new credential.
    pub renewal: Option<Duration>,
    /// The provider at work.
    pub upstream: Option<Duration>,
}

impl Timings {
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let part = |column: &str| {
            let micros: Option<i64> = row.get(column)?;
            Ok::<_, StoreError>(micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
        };
        Ok(Self { approval: part("approval_us")?, queue: part("queue_us")?, renewal: part("renewal_us")?, upstream: part("upstream_us")? })
    }

    /// Adds one try of the provider, of which a part was waiting for its rate limit.
    pub(crate) fn add_attempt(&mut self, took: Duration, queued: Duration) {
        if !queued.is_zero() {
            self.queue = Some(self.queue.unwrap_or_default() + queued);
        }
        self.upstream = Some(self.upstream.unwrap_or_default() + took.saturating_sub(queued));
    }

    pub(crate) fn add_renewal(&mut self, took: Duration) {
        if !took.is_zero() {
            self.renewal = Some(self.renewal.unwrap_or_default() + took);
        }
    }
}
