//! A time that is counted, in parts of the same length.

use std::time::Duration;

use crate::Timestamp;

/// How many parts a time may be counted in.
const MAX_PARTS: i64 = 200;
const USUAL_PARTS: i64 = 24;
const USUAL: Duration = Duration::from_hours(24);

/// From a time until before another, in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub since: Timestamp,
    /// Before this time.
    pub until: Timestamp,
    parts: i64,
}

/// Why a time cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPeriod {
    #[error("`buckets` must be between 1 and {MAX_PARTS}.")]
    Parts,
    #[error("`since` must be before `until`.")]
    Order,
}

impl Period {
    /// A day up to now in 24 parts, where nothing else is said.
    pub fn new(since: Option<Timestamp>, until: Option<Timestamp>, parts: Option<i64>, now: Timestamp) -> Result<Self, NotAPeriod> {
        let until = until.unwrap_or(now);
        let since = since.unwrap_or_else(|| until.minus(USUAL));
        let parts = parts.unwrap_or(USUAL_PARTS);
        if !(1..=MAX_PARTS).contains(&parts) {
            return Err(NotAPeriod::Parts);
        }
        if since.micros().saturating_add(parts) > until.micros() {
            return Err(NotAPeriod::Order);
        }
        Ok(Self { since, until, parts })
    }

    /// How many parts there are.
    pub fn parts(self) -> i64 {
        self.parts
    }

    /// How long a part is, in microseconds. The last one ends where the time does, or a few microseconds later.
    pub fn width(self) -> i64 {
        self.until.micros().saturating_sub(self.since.micros()).saturating_add(self.parts - 1) / self.parts
    }

    /// Where each part begins, the oldest first.
    pub fn starts(self) -> impl Iterator<Item = Timestamp> {
        (0..self.parts).map(move |part| Timestamp::from_micros(self.since.micros().saturating_add(part.saturating_mul(self.width()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_time_cover_it() {
        let at = Timestamp::from_micros;
        let day = Period::new(None, None, None, at(200_000_000_000)).unwrap();
        assert_eq!((day.since, day.width(), day.starts().nth(1)), (at(113_600_000_000), 3_600_000_000, Some(at(117_200_000_000))));
        let odd = Period::new(Some(at(0)), Some(at(10)), Some(3), at(0)).unwrap();
        assert_eq!((odd.width(), odd.starts().collect::<Vec<_>>()), (4, vec![at(0), at(4), at(8)]));
        let longest = Period::new(Some(at(i64::MIN)), Some(at(i64::MAX)), Some(200), at(0)).unwrap();
        assert_eq!(longest.starts().count(), 200);
        for (since, until, parts) in [(5, 5, 1), (6, 5, 1), (0, 2, 3), (0, 100, 0), (0, 100, -1), (0, 1000, 201)] {
            assert!(Period::new(Some(at(since)), Some(at(until)), Some(parts), at(0)).is_err(), "{since} {until} {parts}");
        }
    }
}
