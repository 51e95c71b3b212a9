//! Whether and when a call is tried again.

use std::time::Duration;

use http::header::{HeaderMap, RETRY_AFTER};
use http::{Method, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

use crate::{EgressError, Response};

const MOST_RETRIES: u32 = 2;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How one try ended, as far as a retry cares.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// No connection, so nothing was sent.
    Unsent,
    /// The connection broke, and the server may or may not have acted.
    Broken,
    Answered {
        status: StatusCode,
        retry_after: Option<Duration>,
    },
    /// A failure that another try would only repeat.
    Final,
}

impl Outcome {
    pub(crate) fn of(result: &Result<Response, EgressError>, now: Timestamp) -> Self {
        match result {
            Ok(response) => Self::Answered { status: response.status, retry_after: retry_after(&response.headers, now) },
            Err(EgressError::Connect { .. }) => Self::Unsent,
            Err(EgressError::Io { .. }) => Self::Broken,
            Err(_) => Self::Final,
        }
    }
}

/// The pause before the next try, or `None` to leave it at this outcome; `repeatable` says that a repetition cannot do the work twice, and
/// `chance` gives any random number.
pub(crate) fn pause(repeatable: bool, outcome: Outcome, retries: u32, left: Duration, chance: impl FnOnce() -> u32) -> Option<Duration> {
    if retries >= MOST_RETRIES {
        return None;
    }
    let asked = match outcome {
        Outcome::Unsent => Duration::ZERO,
        Outcome::Broken if repeatable => Duration::ZERO,
        Outcome::Answered { status, retry_after } => match (status.as_u16(), retry_after) {
            (429 | 503, Some(asked)) => asked,
            (502..=504, asked) if repeatable => asked.unwrap_or_default(),
            _ => return None,
        },
        Outcome::Broken | Outcome::Final => return None,
    };
    let pause = asked.max(backoff(retries, chance()));
    (pause <= LONGEST_WAIT && pause < left).then_some(pause)
}

pub(crate) fn idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE)
}

/// Doubles with each retry; half of it is chance, so that many callers do not come back at once.
fn backoff(retries: u32, chance: u32) -> Duration {
    let full = FIRST_PAUSE * 2_u32.pow(retries);
    full / 2 + (full / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const LEFT: Duration = Duration::from_secs(20);

    fn answered(status: u16, seconds: Option<u64>) -> Outcome {
        Outcome::Answered { status: StatusCode::from_u16(status).unwrap(), retry_after: seconds.map(Duration::from_secs) }
    }

    fn millis(method: &Method, outcome: Outcome) -> Option<u128> {
        pause(idempotent(method), outcome, 0, LEFT, || 0).map(|pause| pause.as_millis())
    }

    #[test]
    fn tries_again_only_where_it_is_safe() {
        let cases = [
            (Method::POST, Outcome::Unsent, Some(100)),
            (Method::GET, Outcome::Broken, Some(100)),
            (Method::POST, Outcome::Broken, None),
            (Method::GET, Outcome::Final, None),
            (Method::GET, answered(200, None), None),
            (Method::GET, answered(500, Some(1)), None),
            (Method::GET, answered(429, None), None),
            (Method::GET, answered(502, None), Some(100)),
            (Method::PUT, answered(504, None), Some(100)),
            (Method::DELETE, answered(503, None), Some(100)),
            (Method::POST, answered(502, None), None),
            (Method::POST, answered(502, Some(1)), None),
            (Method::PATCH, answered(503, None), None),
            (Method::PATCH, answered(503, Some(1)), Some(1000)),
            (Method::POST, answered(429, Some(2)), Some(2000)),
            (Method::POST, answered(429, Some(0)), Some(100)),
            (Method::GET, answered(503, Some(20)), None),
            (Method::GET, answered(502, Some(60)), None),
        ];
        for (method, outcome, expected) in cases {
            assert_eq!(millis(&method, outcome), expected, "{method} {outcome:?}");
        }
    }

    #[test]
    fn stops_after_two_retries_and_never_waits_long() {
        let long = Duration::from_mins(10);
        assert!(pause(true, Outcome::Unsent, 1, long, || 0).is_some());
        assert!(pause(true, Outcome::Unsent, 2, long, || 0).is_none());
        assert!(pause(true, answered(429, Some(30)), 0, long, || 0).is_some());
        assert!(pause(true, answered(429, Some(31)), 0, long, || 0).is_none());
        assert!(pause(true, Outcome::Unsent, 0, Duration::from_millis(50), || 0).is_none());
    }

    #[test]
    fn backs_off_with_jitter() {
        assert_eq!(backoff(0, 0).as_millis(), 100);
        assert_eq!(backoff(0, u32::MAX).as_millis(), 200);
        assert_eq!(backoff(1, 0).as_millis(), 200);
        assert_eq!(backoff(1, u32::MAX).as_millis(), 400);
    }

    #[test]
    fn reads_seconds_and_dates() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let read = |text| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            retry_after(&headers, now).map(|wait| wait.as_secs())
        };
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("Fri, 02 Jan 2026 03:04:15 GMT"), Some(10));
        assert_eq!(read("Fri, 02 Jan 2026 03:00:00 GMT"), Some(0));
        assert_eq!(read("soon"), None);
        assert_eq!(read("-1"), None);
    }
}
