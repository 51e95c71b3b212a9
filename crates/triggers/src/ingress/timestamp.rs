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

fn rfc3339(text: &str) -> Option<i64> {
    let (date, time) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, rest) = time.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|digit: char| digit.is_ascii_digit()),
        None => rest,
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?)
}

fn offset(zone: &str) -> Option<i64> {
    let (sign, clock) = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", clock) => (1, clock),
        ("-", clock) => (-1, clock),
        _ => return None,
    };
    let [hours, minutes] = numbers(clock, ':', [2, 2])?;
    Some(sign * (hours * 3600 + minutes * 60))
}

/// Numbers of fixed widths with a separator between them.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut pieces = text.split(separator);
    let mut found = [0; N];
    for (number, width) in found.iter_mut().zip(widths) {
        let piece = pieces.next().filter(|piece| piece.len() == width && piece.bytes().all(|byte| byte.is_ascii_digit()))?;
        *number = piece.parse().ok()?;
    }
    pieces.next().is_none().then_some(found)
}

/// Days since 1970 of a date of the Gregorian calendar, counted in years that begin in March so that the leap day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
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
