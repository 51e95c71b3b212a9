//! How many calls per time may go out for a key, kept in this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const MOST_KEYS: usize = 10_000;
const LONGEST: Duration = Duration::from_hours(24 * 366);

/// At most `requests` calls in any `per` for all calls with the same `key`; they may come in one burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub key: String,
    /// Zero counts as one.
    pub requests: u32,
    pub per: Duration,
}

/// For each key the time at which its allowance is whole again (GCRA); a time in the past is the same as no entry.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    whole_at: Mutex<HashMap<String, Instant>>,
}

impl Limits {
    /// Takes a slot and says how long to wait for it, or says how long it would take if that is more than `patience`.
    pub(crate) fn take(&self, limit: &RateLimit, now: Instant, patience: Duration) -> Result<Duration, Duration> {
        let mut whole_at = self.whole_at.lock().unwrap_or_else(PoisonError::into_inner);
        let per = limit.per.min(LONGEST);
        let slot = per / limit.requests.max(1);
        let next = whole_at.get(&limit.key).map_or(now, |at| (*at).max(now)) + slot;
        let wait = next.saturating_duration_since(now + per);
        if wait > patience {
            return Err(wait);
        }
        if let Some(at) = whole_at.get_mut(&limit.key) {
            *at = next;
        } else {
            make_room(&mut whole_at, now);
            whole_at.insert(limit.key.clone(), next);
        }
        Ok(wait)
    }
}

fn make_room(whole_at: &mut HashMap<String, Instant>, now: Instant) {
    if whole_at.len() < MOST_KEYS {
        return;
    }
    whole_at.retain(|_, at| *at > now);
    if whole_at.len() < MOST_KEYS {
        return;
    }
    // Every key is in use: the one nearest to idle loses the least by being forgotten.
    if let Some(key) = whole_at.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone()) {
        whole_at.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limit(key: &str) -> RateLimit {
        RateLimit { key: key.to_owned(), requests: 4, per: SECOND }
    }

    #[test]
    fn lets_a_burst_through_then_spaces_calls_out() {
        let (limits, now) = (Limits::default(), Instant::now());
        let waits: Vec<_> = (0..6).map(|_| limits.take(&limit("a"), now, SECOND).unwrap().as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 250, 500]);
        assert_eq!(limits.take(&limit("b"), now, SECOND), Ok(Duration::ZERO));
    }

    #[test]
    fn a_refused_call_takes_no_slot() {
        let (limits, now) = (Limits::default(), Instant::now());
        for _ in 0..4 {
            limits.take(&limit("a"), now, Duration::ZERO).unwrap();
        }
        for _ in 0..3 {
            assert_eq!(limits.take(&limit("a"), now, SECOND / 10), Err(SECOND / 4));
        }
        assert_eq!(limits.take(&limit("a"), now + SECOND / 4, Duration::ZERO), Ok(Duration::ZERO));
    }

    #[test]
    fn keeps_a_bounded_number_of_keys() {
        let (limits, now) = (Limits::default(), Instant::now());
        let keys = || limits.whole_at.lock().unwrap().len();
        for key in 0..=MOST_KEYS {
            limits.take(&limit(&key.to_string()), now, SECOND).unwrap();
        }
        assert_eq!(keys(), MOST_KEYS);
        limits.take(&limit("late"), now + SECOND, SECOND).unwrap();
        assert_eq!(keys(), 1);
    }

    #[test]
    fn odd_limits_do_no_harm() {
        let (limits, now) = (Limits::default(), Instant::now());
        let none = RateLimit { key: "none".to_owned(), requests: 0, per: SECOND };
        assert_eq!(limits.take(&none, now, SECOND), Ok(Duration::ZERO));
        assert_eq!(limits.take(&none, now, Duration::ZERO), Err(SECOND));
        let endless = RateLimit { key: "endless".to_owned(), requests: 1, per: Duration::MAX };
        assert_eq!(limits.take(&endless, now, SECOND), Ok(Duration::ZERO));
        assert_eq!(limits.take(&endless, now, SECOND), Err(LONGEST));
        let free = RateLimit { key: "free".to_owned(), requests: 1, per: Duration::ZERO };
        assert_eq!(limits.take(&free, now, Duration::ZERO), Ok(Duration::ZERO));
        assert_eq!(limits.take(&free, now, Duration::ZERO), Ok(Duration::ZERO));
    }
}
