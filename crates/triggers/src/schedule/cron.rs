//! Cron expressions: which minutes of the wall clock they name.
//!
//! They are our own because `croner` does not take all that is documented here: 4.0.2 refuses `L5` and `5/15`, and takes `7L` without ever
//! finding a day for it. Over 40,000 generated expressions the two agree on everything else. Its errors do not say which field is wrong.

use std::fmt;
use std::str::FromStr;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time};
use serde::{Deserialize, Serialize};

use super::field::{DAY, Field, HOUR, MINUTE, MONTH, WEEKDAY};

/// A cron expression of five fields: minute, hour, day of month, month, day of week.
///
/// If both day fields are restricted (neither is `*` or `?`), a day that fits one of them is enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CronExpr {
    text: String,
    minutes: u64,
    hours: u64,
    months: u64,
    dates: Option<Dates>,
    weekdays: Option<Weekdays>,
    wild: bool,
}

/// Why a text is not a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("a cron expression has five fields (minute, hour, day of month, month, day of week), found {0}")]
    Fields(usize),
    #[error("`{0}` is not supported; hint: write the five fields out, such as `0 0 * * *` for every midnight")]
    Nickname(String),
    #[error("{field} `{text}`: {reason}")]
    Field { field: &'static str, text: String, reason: String },
}

/// Days by their number in the month.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Dates {
    plain: u64,
    /// The working day nearest to each of these.
    nearest: u64,
    last: bool,
    last_working: bool,
}

/// Days by their place in the week, Sunday first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Weekdays {
    plain: u64,
    last: u64,
    /// The weekdays whose first, second, ... fifth occurrence in the month counts.
    nth: [u64; 5],
}

impl CronExpr {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the minute or the hour begins with `*`. As in Vixie's cron, such a job follows the wall clock through a change of the
    /// clocks, while a job at fixed times runs exactly once.
    pub(super) fn is_wild(&self) -> bool {
        self.wild
    }

    /// The first matching minute from `from` on, up to the end of the month of `until`.
    pub(super) fn next(&self, from: DateTime, until: Date) -> Option<DateTime> {
        let mut month = from.date().first_of_month();
        while month <= until {
            if contains(self.months, month.month())
                && let Some(found) = self.next_in(month, from)
            {
                return Some(found);
            }
            month = month.checked_add(1.month()).ok()?;
        }
        None
    }

    fn next_in(&self, month: Date, from: DateTime) -> Option<DateTime> {
        let days = self.days(month);
        (1..=month.days_in_month()).filter(|day| contains(days, *day)).find_map(|day| {
            let date = Date::new(month.year(), month.month(), day).ok()?;
            match date.cmp(&from.date()) {
                std::cmp::Ordering::Less => None,
                std::cmp::Ordering::Equal => self.time(from.time()),
                std::cmp::Ordering::Greater => self.time(Time::midnight()),
            }
            .map(|time| date.to_datetime(time))
        })
    }

    /// The first matching time of a day, from `earliest` on.
    fn time(&self, earliest: Time) -> Option<Time> {
        let this_hour = || contains(self.hours, earliest.hour()).then(|| next(self.minutes, earliest.minute()))?;
        let (hour, minute) = match this_hour() {
            Some(minute) => (earliest.hour(), minute),
            None => (next(self.hours, earliest.hour() + 1)?, next(self.minutes, 0)?),
        };
        Time::new(hour, minute, 0, 0).ok()
    }

    /// The matching days of the month that begins on `first`.
    fn days(&self, first: Date) -> u64 {
        match (&self.dates, &self.weekdays) {
            (None, None) => u64::MAX,
            (Some(dates), None) => dates.days(first),
            (None, Some(weekdays)) => weekdays.days(first),
            (Some(dates), Some(weekdays)) => dates.days(first) | weekdays.days(first),
        }
    }
}

impl Dates {
    fn parse(field: &str) -> Result<Self, String> {
        let mut dates = Self::default();
        for term in DAY.terms(field)? {
            match term {
                "l" => dates.last = true,
                "lw" => dates.last_working = true,
                _ => match term.strip_suffix('w') {
                    Some(day) => dates.nearest |= DAY.bit(DAY.value(day)?),
                    None => dates.plain |= DAY.values(term)?,
                },
            }
        }
        Ok(dates)
    }

    fn days(&self, first: Date) -> u64 {
        let length = first.days_in_month();
        let nearest = (1..=length).filter(|day| contains(self.nearest, *day)).map(|day| working_day(first, day));
        let last = self.last.then_some(length);
        let last_working = self.last_working.then(|| working_day(first, length));
        nearest.chain(last).chain(last_working).fold(self.plain, |days, day| days | 1 << day)
    }
}

/// The day from Monday to Friday that is nearest to `day` and in the same month.
fn working_day(first: Date, day: i8) -> i8 {
    match weekday_of(first, day) {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == first.days_in_month() => day - 2,
        0 => day + 1,
        _ => day,
    }
}

impl Weekdays {
    fn parse(field: &str) -> Result<Self, String> {
        let mut weekdays = Self::default();
        for term in WEEKDAY.terms(field)? {
            if let Some((weekday, nth)) = term.split_once('#') {
                let weekday = WEEKDAY.bit(WEEKDAY.value(weekday)?);
                let nth = nth.parse::<usize>().ok().filter(|nth| (1..=5).contains(nth));
                let nth = nth.ok_or_else(|| format!("`{term}` must end in a number from 1 to 5"))?;
                weekdays.nth[nth - 1] |= weekday;
            } else if let Some(weekday) = term.strip_prefix('l').or_else(|| term.strip_suffix('l')) {
                if weekday.is_empty() {
                    return Err("`L` needs a weekday, such as `L5` for the last Friday".to_owned());
                }
                weekdays.last |= WEEKDAY.bit(WEEKDAY.value(weekday)?);
            } else {
                weekdays.plain |= WEEKDAY.values(term)?;
            }
        }
        Ok(weekdays)
    }

    fn days(&self, first: Date) -> u64 {
        let length = first.days_in_month();
        (1..=length).filter(|day| self.contains(first, *day, length)).fold(0, |days, day| days | 1 << day)
    }

    fn contains(&self, first: Date, day: i8, length: i8) -> bool {
        let weekday = weekday_of(first, day);
        let nth = usize::try_from((day - 1) / 7).ok().and_then(|week| self.nth.get(week)).copied().unwrap_or(0);
        contains(self.plain | nth, weekday) || (contains(self.last, weekday) && day + 7 > length)
    }
}

fn weekday_of(first: Date, day: i8) -> i8 {
    (first.weekday().to_sunday_zero_offset() + day - 1) % 7
}

fn contains(set: u64, value: i8) -> bool {
    set >> value & 1 == 1
}

fn next(set: u64, from: i8) -> Option<i8> {
    (from..60).find(|value| contains(set, *value))
}

impl FromStr for CronExpr {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.starts_with('@') {
            return Err(CronError::Nickname(text.to_owned()));
        }
        let lower = text.to_ascii_lowercase();
        let fields: Vec<&str> = lower.split_whitespace().collect();
        let &[minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(CronError::Fields(fields.len()));
        };
        Ok(Self {
            minutes: parse(&MINUTE, minute, |text| plain(&MINUTE, text))?,
            hours: parse(&HOUR, hour, |text| plain(&HOUR, text))?,
            months: parse(&MONTH, month, |text| plain(&MONTH, text))?,
            dates: unless_any(day, |text| parse(&DAY, text, Dates::parse))?,
            weekdays: unless_any(weekday, |text| parse(&WEEKDAY, text, Weekdays::parse))?,
            wild: minute.starts_with('*') || hour.starts_with('*'),
            text: text.to_owned(),
        })
    }
}

fn parse<T>(field: &Field, text: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, CronError> {
    read(text).map_err(|reason| CronError::Field { field: field.name, text: text.to_owned(), reason })
}

fn plain(field: &Field, text: &str) -> Result<u64, String> {
    field.terms(text)?.into_iter().try_fold(0, |set, term| Ok(set | field.values(term)?))
}

fn unless_any<T>(text: &str, read: impl FnOnce(&str) -> Result<T, CronError>) -> Result<Option<T>, CronError> {
    if matches!(text, "*" | "?") { Ok(None) } else { read(text).map(Some) }
}

impl TryFrom<String> for CronExpr {
    type Error = CronError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CronExpr> for String {
    fn from(cron: CronExpr) -> Self {
        cron.text
    }
}

impl fmt::Display for CronExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::{date, datetime};

    use super::*;

    /// The first matches from 1 January 2026, a Thursday.
    fn matches(cron: &str, count: usize) -> Vec<String> {
        let cron: CronExpr = cron.parse().unwrap();
        let until = date(2080, 1, 1);
        let first = cron.next(datetime(2026, 1, 1, 0, 0, 0, 0), until);
        std::iter::successors(first, |found| cron.next(found.saturating_add(1.minute()), until))
            .take(count)
            .map(|found| found.strftime("%Y-%m-%d %H:%M").to_string())
            .collect()
    }

    #[test]
    fn times_of_day() {
        for (cron, expected) in [
            ("* * * * *", ["2026-01-01 00:00", "2026-01-01 00:01", "2026-01-01 00:02"]),
            ("*/25 * * * *", ["2026-01-01 00:00", "2026-01-01 00:25", "2026-01-01 00:50"]),
            ("50/5 9 * * *", ["2026-01-01 09:50", "2026-01-01 09:55", "2026-01-02 09:50"]),
            ("*/100 9 * * *", ["2026-01-01 09:00", "2026-01-02 09:00", "2026-01-03 09:00"]),
            ("30 22-2 * * *", ["2026-01-01 00:30", "2026-01-01 01:30", "2026-01-01 02:30"]),
            ("0 22-2/2 * * *", ["2026-01-01 00:00", "2026-01-01 02:00", "2026-01-01 22:00"]),
            ("0 23-2/2 * * *", ["2026-01-01 01:00", "2026-01-01 23:00", "2026-01-02 01:00"]),
            ("5,10-11 9,00 * * *", ["2026-01-01 00:05", "2026-01-01 00:10", "2026-01-01 00:11"]),
            ("*,5 9 * * *", ["2026-01-01 09:00", "2026-01-01 09:01", "2026-01-01 09:02"]),
        ] {
            assert_eq!(matches(cron, 3), expected, "{cron}");
        }
    }

    #[test]
    fn days() {
        for (cron, expected) in [
            ("0 9 ? * *", ["2026-01-01", "2026-01-02", "2026-01-03"]),
            ("0 9 * * mon-fri", ["2026-01-01", "2026-01-02", "2026-01-05"]),
            ("0 9 * * FRI-Mon", ["2026-01-02", "2026-01-03", "2026-01-04"]),
            ("0 9 * * 7", ["2026-01-04", "2026-01-11", "2026-01-18"]),
            ("0 9 * * 0-7", ["2026-01-01", "2026-01-02", "2026-01-03"]),
            ("0 9 ? * 7-1", ["2026-01-04", "2026-01-05", "2026-01-11"]),
            ("0 9 * * 5-7/2", ["2026-01-02", "2026-01-04", "2026-01-09"]),
            ("0 9 * * 1#2", ["2026-01-12", "2026-02-09", "2026-03-09"]),
            ("0 9 * * 7#5,sat#1", ["2026-01-03", "2026-02-07", "2026-03-07"]),
            ("0 9 * * L5", ["2026-01-30", "2026-02-27", "2026-03-27"]),
            ("0 9 * * friL", ["2026-01-30", "2026-02-27", "2026-03-27"]),
            ("0 9 * * 7L", ["2026-01-25", "2026-02-22", "2026-03-29"]),
            ("0 9 L * *", ["2026-01-31", "2026-02-28", "2026-03-31"]),
            ("0 9 LW * *", ["2026-01-30", "2026-02-27", "2026-03-31"]),
            ("0 9 1W * *", ["2026-01-01", "2026-02-02", "2026-03-02"]),
            ("0 9 1w 8 *", ["2026-08-03", "2027-08-02", "2028-08-01"]),
            ("0 9 31W * *", ["2026-01-30", "2026-03-31", "2026-05-29"]),
            ("0 9 28-2 * *", ["2026-01-01", "2026-01-02", "2026-01-28"]),
            ("0 9 1 nov-jan *", ["2026-01-01", "2026-11-01", "2026-12-01"]),
            ("0 9 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"]),
            ("0 9 13 * 5", ["2026-01-02", "2026-01-09", "2026-01-13"]),
            ("0 9 */15 * 1", ["2026-01-01", "2026-01-05", "2026-01-12"]),
        ] {
            let expected = expected.map(|day| format!("{day} 09:00"));
            assert_eq!(matches(cron, 3), expected, "{cron}");
        }
    }

    #[test]
    fn rare_and_impossible_days() {
        assert_eq!(matches("0 0 * 2 1#5", 2), ["2044-02-29 00:00", "2072-02-29 00:00"]);
        for cron in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * 31W 2 ?"] {
            assert_eq!(matches(cron, 1), Vec::<String>::new(), "{cron}");
        }
    }

    #[test]
    fn what_is_refused_says_why() {
        for (cron, message) in [
            ("", "a cron expression has five fields (minute, hour, day of month, month, day of week), found 0"),
            ("0 * * * * *", "a cron expression has five fields (minute, hour, day of month, month, day of week), found 6"),
            ("@daily", "`@daily` is not supported; hint: write the five fields out, such as `0 0 * * *` for every midnight"),
            ("60 * * * *", "minute `60`: `60` is not one of 0-59"),
            ("-1 * * * *", "minute `-1`: `` is not one of 0-59"),
            ("+1 * * * *", "minute `+1`: `+1` is not one of 0-59"),
            ("999999999999999999999 * * * *", "minute `999999999999999999999`: `999999999999999999999` is not one of 0-59"),
            ("mon * * * *", "minute `mon`: `mon` is not one of 0-59"),
            ("* 24 * * *", "hour `24`: `24` is not one of 0-23"),
            ("* * 0 * *", "day of month `0`: `0` is not one of 1-31, `L`, `LW` or `15W`"),
            ("* * W * *", "day of month `w`: `` is not one of 1-31, `L`, `LW` or `15W`"),
            ("* * * 13 *", "month `13`: `13` is not one of 1-12 or jan-dec"),
            ("* * * january *", "month `january`: `january` is not one of 1-12 or jan-dec"),
            ("* * * * 8", "day of week `8`: `8` is not one of 0-7, sun-sat, `L5` or `1#2`"),
            ("* * * * L", "day of week `l`: `L` needs a weekday, such as `L5` for the last Friday"),
            ("* * * * 1#6", "day of week `1#6`: `1#6` must end in a number from 1 to 5"),
            ("*/0 * * * *", "minute `*/0`: `0` is not a step: it must be a whole number above 0"),
            ("*/ * * * *", "minute `*/`: `` is not a step: it must be a whole number above 0"),
            ("/5 * * * *", "minute `/5`: `` is not one of 0-59"),
            ("1,,2 * * * *", "minute `1,,2`: a value is missing next to a comma"),
            ("1-2-3 * * * *", "minute `1-2-3`: `2-3` is not one of 0-59"),
            ("? * * * *", "minute `?`: `?` can only stand alone, for the day of month or the day of week, not for the minute"),
            ("R * * * *", "minute `r`: random `R` is not supported; hint: choose a time, and set a jitter to spread the load"),
            ("0 R(1-5) * * *", "hour `r(1-5)`: random `R` is not supported; hint: choose a time, and set a jitter to spread the load"),
            ("H/15 * * * *", "minute `h/15`: hashed `H` is not supported; hint: choose a time, and set a jitter to spread the load"),
            ("٣ * * * *", "minute `٣`: `٣` is not one of 0-59"),
        ] {
            assert_eq!(cron.parse::<CronExpr>().unwrap_err().to_string(), message, "{cron}");
        }
    }

    #[test]
    fn keeps_the_text_as_written() {
        let cron: CronExpr = serde_json::from_value(serde_json::json!(" 0  9 * * MON\n")).unwrap();
        assert_eq!(serde_json::to_value(&cron).unwrap(), "0  9 * * MON");
        assert_eq!(cron.to_string(), cron.as_str());
    }
}
