//! Time as whole microseconds, and a clock that tests can hold.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Span;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
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

    /// An ISO 8601 time. One without an offset is UTC, a date alone is its beginning.
    pub fn read_iso(text: &str) -> Option<Self> {
        let moment = text.parse::<jiff::Timestamp>().ok();
        let civil = || TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok();
        Some(Self(moment.or_else(civil)?.as_microsecond()))
    }

    /// A time as people say it: ISO 8601, `now`, `today`, `yesterday`, or how long ago it was, such as `2h` or `3 days ago`. Days are UTC's.
    pub fn read(text: &str, now: Self) -> Result<Self, NotATime> {
        let text = text.trim();
        let spoken = || {
            let now = jiff::Timestamp::from_microsecond(now.0).ok()?.to_zoned(TimeZone::UTC);
            let moment = match text.to_ascii_lowercase().as_str() {
                "now" => now,
                "today" => now.start_of_day().ok()?,
                "yesterday" => now.yesterday().ok()?.start_of_day().ok()?,
                ago => now.checked_sub(ago.parse::<Span>().ok()?.abs()).ok()?,
            };
            Some(Self(moment.timestamp().as_microsecond()))
        };
        Self::read_iso(text).or_else(spoken).ok_or_else(|| NotATime(text.to_owned()))
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

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time; use ISO 8601 such as 2026-11-16T08:00:00Z, `today`, `yesterday`, or how long ago, such as 2h")]
pub struct NotATime(pub String);

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

    /// Sets a fixed clock, to an earlier time too; the machine's clock goes its own way.
    pub fn set(&self, at: Timestamp) {
        if let Some(held) = &self.0 {
            held.store(at.0, Ordering::SeqCst);
        }
    }

    /// Moves a fixed clock; the machine's clock goes its own way.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
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
    fn times_are_read_as_people_say_them() {
        let now = Timestamp::read_iso("2026-11-16T08:30:00Z").unwrap();
        for (said, meant) in [
            ("2026-11-16T10:00:00+02:00", "2026-11-16T08:00:00Z"),
            ("2026-11-16T08:00:00", "2026-11-16T08:00:00Z"),
            ("2026-11-16", "2026-11-16T00:00:00Z"),
            ("now", "2026-11-16T08:30:00Z"),
            ("today", "2026-11-16T00:00:00Z"),
            (" Yesterday ", "2026-11-15T00:00:00Z"),
            ("2h", "2026-11-16T06:30:00Z"),
            ("90 minutes ago", "2026-11-16T07:00:00Z"),
            ("1w", "2026-11-09T08:30:00Z"),
        ] {
            assert_eq!(Timestamp::read(said, now).map(|moment| moment.to_string()), Ok(meant.to_owned()), "{said}");
        }
        for said in ["", "soon", "2026-13-01", "h", "99999999999999w"] {
            assert!(Timestamp::read(said, now).is_err(), "{said}");
        }
    }

    #[test]
    fn a_fixed_clock_moves_when_told() {
        let clock = Clock::fixed(Timestamp::from_micros(0));
        clock.advance(Duration::from_secs(2));
        assert_eq!(clock.now().seconds(), 2);
    }
}
