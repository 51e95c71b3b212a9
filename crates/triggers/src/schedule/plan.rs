//! The slots of a schedule: the moments at which its wall clock shows a matching minute.

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use kernel::Timestamp;
use uuid::Uuid;

use super::{CronExpr, Window, Zone};
use crate::spread::spread;

/// How far the next slot is searched. The rarest day there is, a fifth Monday in February, comes back after 40 years at the most.
const HORIZON_YEARS: i64 = 50;
const TICK: Duration = Duration::from_micros(1);

/// When a schedule fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    pub cron: CronExpr,
    pub zone: Zone,
    pub window: Window,
    /// Runs are held back by up to this long; slots stay where they are.
    pub jitter_seconds: u32,
}

impl Timing {
    /// The first slot strictly after `moment`, or `None` if the window ends before it or the next 50 years hold none.
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let moment = self.window.start().map_or(moment, |start| moment.max(start.minus(TICK)));
        let moment = jiff::Timestamp::from_microsecond(moment.micros()).ok()?;
        let slot = if self.cron.is_wild() { self.wild(moment) } else { self.fixed(moment) }?;
        Some(Timestamp::from_micros(slot.as_microsecond())).filter(|slot| !self.window.is_over(*slot))
    }

    /// The next `count` slots after `moment`.
    pub fn upcoming(&self, moment: Timestamp, count: usize) -> Vec<Timestamp> {
        self.slots_after(moment).take(count).collect()
    }

    /// The slots of `from..=to`, oldest first.
    pub(super) fn slots(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.slots_after(from.minus(TICK)).take_while(move |slot| *slot <= to)
    }

    fn slots_after(&self, moment: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next_after(moment), |slot| self.next_after(*slot))
    }

    /// When the run of `slot` begins.
    pub fn run_at(&self, schedule: Uuid, slot: Timestamp) -> Timestamp {
        slot.plus(jitter_offset(schedule, slot, self.jitter_seconds))
    }

    /// The next slot of a job that follows the wall clock: times that the clock skips are left out, times that it repeats count twice.
    /// Between two changes of the clock the wall clock runs evenly, so each such stretch is searched by itself.
    fn wild(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let zone = self.zone.rules();
        let until = zone.to_datetime(after).date().checked_add(HORIZON_YEARS.years()).ok()?;
        let mut begin = after.checked_add(TICK).ok()?;
        loop {
            let offset = zone.to_offset(begin);
            let found = self.cron.next(whole_minute(offset.to_datetime(begin))?, until)?;
            let slot = offset.to_timestamp(found).ok()?;
            match zone.following(begin).next() {
                Some(change) if change.timestamp() <= slot => begin = change.timestamp(),
                _ => return Some(slot),
            }
        }
    }

    /// The next slot of a job at fixed times: what the clock skips fires once, right after the change, and what it repeats fires the first time.
    fn fixed(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let zone = self.zone.rules();
        let start = zone.to_datetime(after);
        let until = start.date().checked_add(HORIZON_YEARS.years()).ok()?;
        let mut wall = whole_minute(start)?;
        loop {
            wall = self.cron.next(wall, until)?;
            let slot = resolve(zone, wall)?;
            if slot > after {
                return Some(slot);
            }
            wall = wall.checked_add(1.minute()).ok()?;
        }
    }
}

fn resolve(zone: &TimeZone, wall: DateTime) -> Option<jiff::Timestamp> {
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => offset.to_timestamp(wall).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            let before_the_gap = after.to_timestamp(wall).ok()?;
            zone.following(before_the_gap).next().map(|change| change.timestamp())
        }
    }
}

/// Up to the whole minute.
fn whole_minute(wall: DateTime) -> Option<DateTime> {
    let floor = wall.with().second(0).subsec_nanosecond(0).build().ok()?;
    if floor == wall { Some(wall) } else { floor.checked_add(1.minute()).ok() }
}

/// How long the run of `slot` is held back: less than `max_seconds`, and always the same for the same schedule and slot.
pub fn jitter_offset(schedule: Uuid, slot: Timestamp, max_seconds: u32) -> Duration {
    Duration::from_millis(spread([schedule.as_bytes(), &slot.micros().to_be_bytes()], u64::from(max_seconds) * 1000))
}

/// The id of the event that `slot` makes, such as `<schedule>:2026-06-22T10:00:00+00:00`.
pub fn event_id(schedule: Uuid, slot: Timestamp) -> String {
    format!("{schedule}:{}", iso(slot))
}

/// The slot as the wire shows it, such as `2026-06-22T10:00:00+00:00`.
pub fn iso(slot: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(slot.micros()) {
        Ok(moment) => format!("{}+00:00", TimeZone::UTC.to_datetime(moment)),
        Err(_) => slot.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_micros(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
    }

    fn plan(cron: &str, zone: &str) -> Timing {
        Timing { cron: cron.parse().unwrap(), zone: zone.parse().unwrap(), window: Window::default(), jitter_seconds: 0 }
    }

    /// The next slots as wall clock and offset.
    fn upcoming(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let plan = plan(cron, zone);
        let show = |slot: Timestamp| {
            let moment = jiff::Timestamp::from_microsecond(slot.micros()).unwrap();
            moment.to_zoned(plan.zone.rules().clone()).strftime("%d %H:%M%:z").to_string()
        };
        plan.upcoming(at(after), count).into_iter().map(show).collect()
    }

    #[test]
    fn clocks_go_forward() {
        // New York skips 02:00-03:00, Berlin too, Lord Howe only 02:00-02:30.
        let (new_york, berlin, lord_howe) = (
            ("America/New_York", "2026-03-08T05:00:00Z"),
            ("Europe/Berlin", "2026-03-28T23:00:00Z"),
            ("Australia/Lord_Howe", "2026-10-03T13:30:00Z"),
        );
        for (cron, (zone, midnight), expected) in [
            ("30 2 * * *", new_york, ["08 03:00-04:00", "09 02:30-04:00", "10 02:30-04:00"]),
            ("0,30 2 * * *", new_york, ["08 03:00-04:00", "09 02:00-04:00", "09 02:30-04:00"]),
            ("0 2,3 * * *", new_york, ["08 03:00-04:00", "09 02:00-04:00", "09 03:00-04:00"]),
            ("45 1 * * *", new_york, ["08 01:45-05:00", "09 01:45-04:00", "10 01:45-04:00"]),
            ("0 * * * *", new_york, ["08 01:00-05:00", "08 03:00-04:00", "08 04:00-04:00"]),
            ("*/20 2 * * *", new_york, ["09 02:00-04:00", "09 02:20-04:00", "09 02:40-04:00"]),
            ("59 1-3 * * *", new_york, ["08 01:59-05:00", "08 03:00-04:00", "08 03:59-04:00"]),
            ("15 2 * * *", berlin, ["29 03:00+02:00", "30 02:15+02:00", "31 02:15+02:00"]),
            ("30 * * * *", berlin, ["29 00:30+01:00", "29 01:30+01:00", "29 03:30+02:00"]),
            ("0 3 * * *", berlin, ["29 03:00+02:00", "30 03:00+02:00", "31 03:00+02:00"]),
            ("0 2 * * *", lord_howe, ["04 02:30+11:00", "05 02:00+11:00", "06 02:00+11:00"]),
            ("30 2 * * *", lord_howe, ["04 02:30+11:00", "05 02:30+11:00", "06 02:30+11:00"]),
            ("*/15 1-2 * * *", lord_howe, ["04 01:00+10:30", "04 01:15+10:30", "04 01:30+10:30"]),
            ("10 * * * *", lord_howe, ["04 00:10+10:30", "04 01:10+10:30", "04 03:10+11:00"]),
        ] {
            assert_eq!(upcoming(cron, zone, midnight, 3), expected, "{cron} {zone}");
        }
    }

    #[test]
    fn clocks_go_back() {
        // New York repeats 01:00-02:00, Berlin 02:00-03:00, Lord Howe 01:30-02:00.
        let (new_york, berlin, lord_howe) = (
            ("America/New_York", "2026-11-01T04:00:00Z"),
            ("Europe/Berlin", "2026-10-24T22:00:00Z"),
            ("Australia/Lord_Howe", "2026-04-04T13:00:00Z"),
        );
        for (cron, (zone, midnight), expected) in [
            ("30 1 * * *", new_york, ["01 01:30-04:00", "02 01:30-05:00", "03 01:30-05:00"]),
            ("0,30 1 * * *", new_york, ["01 01:00-04:00", "01 01:30-04:00", "02 01:00-05:00"]),
            ("30 1,2 * * *", new_york, ["01 01:30-04:00", "01 02:30-05:00", "02 01:30-05:00"]),
            ("30 * * * *", new_york, ["01 00:30-04:00", "01 01:30-04:00", "01 01:30-05:00"]),
            ("*/30 1 * * *", new_york, ["01 01:00-04:00", "01 01:30-04:00", "01 01:00-05:00"]),
            ("0 2 * * *", berlin, ["25 02:00+02:00", "26 02:00+01:00", "27 02:00+01:00"]),
            ("0 3 * * *", berlin, ["25 03:00+01:00", "26 03:00+01:00", "27 03:00+01:00"]),
            ("59 * * * *", berlin, ["25 00:59+02:00", "25 01:59+02:00", "25 02:59+02:00"]),
            ("45 1 * * *", lord_howe, ["05 01:45+11:00", "06 01:45+10:30", "07 01:45+10:30"]),
            ("45 * * * *", lord_howe, ["05 00:45+11:00", "05 01:45+11:00", "05 01:45+10:30"]),
            ("0 * * * *", lord_howe, ["05 01:00+11:00", "05 02:00+10:30", "05 03:00+10:30"]),
        ] {
            assert_eq!(upcoming(cron, zone, midnight, 3), expected, "{cron} {zone}");
        }
    }

    #[test]
    fn asking_from_inside_a_change() {
        // 01:10 in New York, the second time: the fixed job has run, the wild job runs again.
        let second_pass = "2026-11-01T06:10:00Z";
        assert_eq!(upcoming("30 1 * * *", "America/New_York", second_pass, 1), ["02 01:30-05:00"]);
        assert_eq!(upcoming("*/30 1 * * *", "America/New_York", second_pass, 2), ["01 01:30-05:00", "02 01:00-05:00"]);
        // 01:50, the first time: the wild job goes back to 01:00.
        assert_eq!(upcoming("*/30 1 * * *", "America/New_York", "2026-11-01T05:50:00Z", 1), ["01 01:00-05:00"]);
        // 03:00 in New York, right after the skipped hour.
        assert_eq!(upcoming("30 2 * * *", "America/New_York", "2026-03-08T07:00:00Z", 1), ["09 02:30-04:00"]);
        assert_eq!(upcoming("30 2 * * *", "America/New_York", "2026-03-08T06:59:59.999999Z", 1), ["08 03:00-04:00"]);
    }

    #[test]
    fn a_day_that_the_zone_skipped() {
        // Samoa went from 29 December 2011 straight to the 31st.
        assert_eq!(upcoming("0 12 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00Z", 2), ["31 00:00+14:00", "30 12:00+14:00"]);
        assert_eq!(upcoming("0 * 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00Z", 1), ["30 00:00+14:00"]);
    }

    #[test]
    fn strictly_after_and_always_forward() {
        for (zone, start) in [
            ("UTC", "2026-12-31T00:00:00Z"),
            ("America/New_York", "2026-03-08T05:00:00Z"),
            ("America/New_York", "2026-11-01T04:00:00Z"),
            ("Europe/Berlin", "2026-03-28T23:00:00Z"),
            ("Europe/Berlin", "2026-10-24T22:00:00Z"),
            ("Australia/Lord_Howe", "2026-10-03T13:30:00Z"),
            ("Australia/Lord_Howe", "2026-04-04T13:00:00Z"),
        ] {
            for cron in ["*/7 * * * *", "0,30 1-3 * * *", "15 2 * * *", "5/10 * 1,L * 0"] {
                let plan = plan(cron, zone);
                let slots = plan.upcoming(at(start), 200);
                assert!(slots.is_sorted_by(|earlier, later| earlier < later), "{cron} {zone}");
                for pair in slots.windows(2) {
                    let between = Timestamp::from_micros(i64::midpoint(pair[0].micros(), pair[1].micros()));
                    assert_eq!(plan.next_after(between), Some(pair[1]), "{cron} {zone} {between}");
                    assert_eq!(plan.next_after(pair[1].minus(TICK)), Some(pair[1]), "{cron} {zone}: a slot follows the moment before it");
                }
            }
        }
    }

    #[test]
    fn leap_days() {
        let plan = plan("0 12 29 2 *", "UTC");
        let found: Vec<_> = plan.upcoming(at("2095-01-01T00:00:00Z"), 3).into_iter().map(iso).collect();
        assert_eq!(found, ["2096-02-29T12:00:00+00:00", "2104-02-29T12:00:00+00:00", "2108-02-29T12:00:00+00:00"]);
        // Every fifth Monday in February; 2100 is no leap year, so one gap is 40 years long.
        let rare = self::plan("0 0 * 2 1#5", "Europe/Berlin").upcoming(at("2072-03-01T00:00:00Z"), 1);
        assert_eq!(rare, [at("2112-02-28T23:00:00Z")]);
    }

    #[test]
    fn impossible_dates_end_the_search_quickly() {
        let started = std::time::Instant::now();
        for cron in ["0 0 30 2 *", "* * 31 2,4,6,9,11 *", "*/5 * 31W 4 ?"] {
            for zone in ["UTC", "America/New_York"] {
                assert_eq!(plan(cron, zone).next_after(at("2026-01-01T00:00:00Z")), None, "{cron} {zone}");
            }
        }
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    }

    #[test]
    fn the_window_is_half_open() {
        let window = Window::new(Some(at("2026-06-01T10:00:00Z")), Some(at("2026-06-01T12:00:00Z"))).unwrap();
        let plan = Timing { window, ..plan("0 * * * *", "UTC") };
        let found: Vec<_> = plan.upcoming(at("2020-01-01T00:00:00Z"), 9).into_iter().map(iso).collect();
        assert_eq!(found, ["2026-06-01T10:00:00+00:00", "2026-06-01T11:00:00+00:00"]);
        assert_eq!(plan.next_after(at("2026-06-01T11:00:00Z")), None);
    }

    #[test]
    fn the_edges_of_time_are_not_a_panic() {
        for moment in [i64::MIN, i64::MAX, -377_705_023_201_000_000, 253_402_207_200_000_000] {
            let _ = plan("* * * * *", "America/New_York").next_after(Timestamp::from_micros(moment));
            let _ = plan("0 0 1 1 *", "America/New_York").next_after(Timestamp::from_micros(moment));
        }
    }

    #[test]
    fn jitter_repeats_and_stays_below_its_limit() {
        let (schedule, slot) = (Uuid::from_u128(1), at("2026-06-22T10:00:00Z"));
        assert_eq!(jitter_offset(schedule, slot, 0), Duration::ZERO);
        let offsets: Vec<_> = (0..100).map(|minute| jitter_offset(schedule, slot.plus(Duration::from_secs(60 * minute)), 30)).collect();
        assert!(offsets.iter().all(|offset| *offset < Duration::from_secs(30)));
        assert!(
            offsets.iter().any(|offset| *offset > Duration::from_secs(25)) && offsets.iter().any(|offset| *offset < Duration::from_secs(5))
        );
        let plan = Timing { jitter_seconds: 30, ..plan("* * * * *", "UTC") };
        assert_eq!(plan.run_at(schedule, slot), slot.plus(offsets[0]));
    }

    #[test]
    fn event_ids_read_as_on_the_wire() {
        let schedule = Uuid::from_u128(0x0197_9a6e_0000_7000_8000_0000_0000_0001);
        assert_eq!(event_id(schedule, at("2026-06-22T10:00:00Z")), "01979a6e-0000-7000-8000-000000000001:2026-06-22T10:00:00+00:00");
    }
}
