//! Time as whole microseconds, and a clock that tests can hold.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::{Serialize, Serializer};

/// A moment in UTC, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }
}

/// RFC 3339 in UTC.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(moment) => moment.fmt(f),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where the time comes from.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// The clock of the machine.
    pub const fn system() -> Self {
        Self(None)
    }

    /// A clock that stands still until it is moved.
    pub fn fixed(at: Timestamp) -> Self {
        Self(Some(Arc::new(AtomicI64::new(at.0))))
    }

    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Some(held) => Timestamp(held.load(Ordering::SeqCst)),
            None => Timestamp(jiff::Timestamp::now().as_microsecond()),
        }
    }

    /// Moves a fixed clock; the machine's clock goes its own way.
    pub fn advance(&self, by: Duration) {
        if let Some(held) = &self.0 {
            held.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_rfc_3339() {
        assert_eq!(Timestamp::from_micros(1_767_225_600_250_000).to_string(), "2026-01-01T00:00:00.25Z");
    }

    #[test]
    fn a_fixed_clock_moves_when_told() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        clock.advance(Duration::from_secs(2));
        assert_eq!(clock.now().seconds(), 2);
    }
}
