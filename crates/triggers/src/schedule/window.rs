//! The stretch of time in which a schedule may fire.

use kernel::Timestamp;

const MINUTE: i64 = 60_000_000;

/// From `start` up to, but not including, `end`; a side that is absent is open. Both lie on whole minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

/// The window holds no minute at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`end_time` ({end}) must be at least a minute after `start_time` ({start})")]
pub struct EmptyWindow {
    start: Timestamp,
    end: Timestamp,
}

impl Window {
    /// A window whose sides are moved down to the whole minute.
    pub fn new(start: Option<Timestamp>, end: Option<Timestamp>) -> Result<Self, EmptyWindow> {
        let (start, end) = (start.map(floor), end.map(floor));
        match (start, end) {
            (Some(start), Some(end)) if end <= start => Err(EmptyWindow { start, end }),
            _ => Ok(Self { start, end }),
        }
    }

    pub fn start(&self) -> Option<Timestamp> {
        self.start
    }

    pub fn end(&self) -> Option<Timestamp> {
        self.end
    }

    /// Whether nothing can fire any more at `now`.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.end.is_some_and(|end| now >= end)
    }
}

fn floor(moment: Timestamp) -> Timestamp {
    Timestamp::from_micros(moment.micros().div_euclid(MINUTE).saturating_mul(MINUTE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn window(start: i64, end: i64) -> Result<Window, EmptyWindow> {
        Window::new(Some(at(start)), Some(at(end)))
    }

    #[test]
    fn sides_are_moved_down_to_the_minute() {
        let window = window(-1, 119).unwrap();
        assert_eq!((window.start(), window.end()), (Some(at(-60)), Some(at(60))));
        assert_eq!(Window::new(None, None), Ok(Window::default()));
    }

    #[test]
    fn a_window_without_a_minute_is_an_error() {
        for (start, end) in [(0, 0), (0, 59), (61, 119), (120, 0)] {
            assert!(window(start, end).is_err(), "{start}..{end}");
        }
        let error = window(90, 30).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`end_time` (1970-01-01T00:00:00Z) must be at least a minute after `start_time` (1970-01-01T00:01:00Z)"
        );
    }

    #[test]
    fn is_over_from_its_end_on() {
        let window = Window::new(None, Some(at(60))).unwrap();
        assert!(!window.is_over(Timestamp::from_micros(59_999_999)));
        assert!(window.is_over(Timestamp::from_micros(60_000_000)));
        assert!(!Window::default().is_over(Timestamp::from_micros(i64::MAX)));
    }
}
