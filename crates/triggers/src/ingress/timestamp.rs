//! The time of a signature, in the ways that providers write it.

use crate::Refusal;

/// Whole numbers from here on are milliseconds: as seconds they would lie after the year 5000.
const MILLISECONDS: i64 = 100_000_000_000;

/// Seconds since 1970 from a number of seconds, a number of milliseconds or an RFC 3339 time.
pub fn seconds(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: i64 = text.parse().ok()?;
        return Some(if number < MILLISECONDS { number } else { number / 1000 });
    }
    rfc3339(text)
}

/// Refuses a time further than `tolerance` seconds from now, in either direction.
pub fn require_fresh(timestamp: i64, now: i64, tolerance: u32) -> Result<(), Refusal> {
    let distance = now.abs_diff(timestamp);
    if distance > u64::from(tolerance) { Err(Refusal::Stale) } else { Ok(()) }
}

/// ISO 8601 has more ways to write a time than RFC 3339: without separators, without a colon in the offset, with the name of a zone.
fn rfc3339(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let is_separated = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')].iter().all(|(at, mark)| bytes.get(*at) == Some(mark));
    let is_zoned = text.ends_with(['Z', 'z']) || text.len().checked_sub(6).is_some_and(|at| at > 16 && matches!(bytes[at], b'+' | b'-'));
    let moment: jiff::Timestamp = text.parse().ok().filter(|_| is_separated && is_zoned)?;
    Some(moment.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_writing_a_time() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1700000000", Some(1_700_000_000)),
            ("1700000000123", Some(1_700_000_000)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2020-01-01T00:00:00-07:00", Some(1_577_862_000)),
            ("2023-11-14T22:13:20Z", Some(1_700_000_000)),
            ("2023-11-15T03:43:20.123+05:30", Some(1_700_000_000)),
            ("2024-02-29T12:00:00Z", Some(1_709_208_000)),
            ("1969-12-31T23:59:59Z", Some(-1)),
            ("", None),
            ("-5", None),
            ("1e9", None),
            ("99999999999999999999", None),
            ("2023-11-14", None),
            ("2023-11-14T22:13:20", None),
            ("2023-13-14T22:13:20Z", None),
            ("2023-11-14T22:13:20Zz", None),
            ("2023-11-14T22:13:20+0530", None),
            ("２023-11-14T22:13:20Z", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn the_window_is_closed_on_both_sides() {
        for (timestamp, fresh) in [(700, true), (1300, true), (699, false), (1301, false), (i64::MIN, false), (i64::MAX, false)] {
            assert_eq!(require_fresh(timestamp, 1000, 300).is_ok(), fresh, "{timestamp}");
        }
    }
}
