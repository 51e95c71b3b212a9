//! When a failed delivery is tried again, and which failures are worth it.

use std::time::Duration;

use uuid::Uuid;

use crate::spread::spread;

/// The waiting times between the attempts of one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest wait before the second attempt.
    pub base: Duration,
    /// How much longer each further wait is.
    pub factor: u32,
    /// No wait is longer than this.
    pub max: Duration,
    /// How many attempts there are in all, the first one included.
    pub attempts: u32,
}

/// Six attempts over about an hour.
impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_secs(10), factor: 4, max: Duration::from_hours(1), attempts: 6 }
    }
}

impl Backoff {
    /// How long to wait after attempt number `attempt` (the first is 1) has failed; `None` once all attempts are used up.
    ///
    /// The upper half of each wait is spread by `seed`, the id of the delivery, so that deliveries that fail together do not return together.
    pub fn next(&self, attempt: u32, seed: Uuid) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let growth = self.factor.saturating_pow(attempt.saturating_sub(1));
        let longest = u64::try_from(self.base.saturating_mul(growth).min(self.max).as_millis()).unwrap_or(u64::MAX);
        let half = longest / 2;
        let spread = spread([seed.as_bytes(), &attempt.to_be_bytes()], (longest - half).saturating_add(1));
        Some(Duration::from_millis(half + spread))
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// No answer came: it could not connect, was cut off or took too long.
    Unreachable,
    /// An HTTP status came back.
    Status(u16),
}

/// What an outcome means for the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    Delivered,
    Retry,
    Final,
}

impl AttemptOutcome {
    /// A failure is tried again if it may pass by itself: nothing answered, the server was busy, or the server broke.
    pub fn verdict(self) -> RetryDecision {
        match self {
            Self::Status(200..=299) => RetryDecision::Delivered,
            Self::Unreachable | Self::Status(408 | 425 | 429 | 500..=599) => RetryDecision::Retry,
            Self::Status(_) => RetryDecision::Final,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Uuid = Uuid::from_u128(7);

    #[test]
    fn waits_grow_up_to_a_limit_and_then_end() {
        let backoff = Backoff { base: Duration::from_secs(10), factor: 4, max: Duration::from_secs(100), attempts: 5 };
        for (attempt, longest) in [(1, 10), (2, 40), (3, 100), (4, 100)] {
            let wait = backoff.next(attempt, SEED).unwrap();
            let longest = Duration::from_secs(longest);
            assert!(wait >= longest / 2 && wait <= longest, "attempt {attempt}: {wait:?}");
        }
        assert_eq!(backoff.next(5, SEED), None);
        assert_eq!(backoff.next(u32::MAX, SEED), None);
    }

    #[test]
    fn waits_are_spread_but_repeat() {
        let backoff = Backoff::default();
        assert_eq!(backoff.next(1, SEED), backoff.next(1, SEED));
        let waits: std::collections::HashSet<_> = (0..50).map(|seed| backoff.next(2, Uuid::from_u128(seed))).collect();
        assert!(waits.len() > 45);
    }

    #[test]
    fn absurd_settings_do_not_overflow() {
        let forever = Backoff { base: Duration::MAX, factor: u32::MAX, max: Duration::MAX, attempts: u32::MAX };
        assert!(forever.next(u32::MAX - 1, SEED).is_some());
        let never = Backoff { base: Duration::ZERO, factor: 0, max: Duration::ZERO, attempts: 3 };
        assert_eq!(never.next(0, SEED), Some(Duration::ZERO));
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (verdict, codes) in [
            (RetryDecision::Delivered, &[200, 201, 202, 204, 299][..]),
            (RetryDecision::Retry, &[408, 425, 429, 500, 502, 503, 504, 599]),
            (RetryDecision::Final, &[0, 100, 301, 304, 400, 401, 403, 404, 409, 410, 422, 451, 600]),
        ] {
            for code in codes {
                assert_eq!(AttemptOutcome::Status(*code).verdict(), verdict, "{code}");
            }
        }
        assert_eq!(AttemptOutcome::Unreachable.verdict(), RetryDecision::Retry);
    }
}
