//! Which slots are to be fired now.

use std::time::Duration;

use kernel::Timestamp;

use super::{Misfire, Timing};

/// A slot that is younger than this is on time.
pub const GRACE: Duration = Duration::from_mins(1);

/// Dropped slots are counted up to here; more of them still read as this many.
pub const MAX_MISSED: usize = 10_000;

/// What to fire, what was dropped, and when to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The slots to fire, oldest first.
    pub fire: Vec<Timestamp>,
    /// How many slots were dropped, up to `MAX_MISSED`.
    pub missed: usize,
    /// The slot to wait for; `None` means that the schedule has ended.
    pub next: Option<Timestamp>,
}

/// Decides over all slots from `planned`, the slot that the schedule was waiting for, up to `now`.
///
/// Slots on time always fire. If the clock was set back, nothing is due and the schedule keeps waiting for the same slot.
pub fn due(plan: &Timing, misfire: Misfire, planned: Timestamp, now: Timestamp) -> Due {
    if now < planned {
        return Due { fire: Vec::new(), missed: 0, next: Some(planned) };
    }
    let punctual = now.minus(GRACE).max(planned);
    let on_time: Vec<_> = plan.slots(punctual, now).collect();
    let keep = match misfire {
        Misfire::Skip => 0,
        // A run that is on time stands for the missed ones as well.
        Misfire::FireOnce => usize::from(on_time.is_empty()),
        Misfire::CatchUp(limit) => limit.get(),
    };
    let mut fire = newest(plan, planned, before(punctual), keep);
    let missed_until = before(fire.first().copied().unwrap_or(punctual));
    fire.extend(on_time);
    Due { fire, missed: count(plan, planned, missed_until, MAX_MISSED), next: plan.next_after(now) }
}

/// The newest `wanted` slots of `from..=to`, oldest first.
///
/// Slots are cheap to find forwards only, so this halves the stretch until it begins right at the slots that are wanted.
fn newest(plan: &Timing, from: Timestamp, to: Timestamp, wanted: usize) -> Vec<Timestamp> {
    if wanted == 0 {
        return Vec::new();
    }
    let (mut enough, mut too_few) = (from, to);
    if count(plan, from, to, wanted) == wanted {
        while too_few > enough.plus(Duration::from_mins(1)) {
            let middle = Timestamp::from_micros(i64::midpoint(enough.micros(), too_few.micros()));
            if count(plan, middle, to, wanted) == wanted {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
    }
    let mut slots: Vec<_> = plan.slots(enough, to).collect();
    slots.split_off(slots.len().saturating_sub(wanted))
}

fn count(plan: &Timing, from: Timestamp, to: Timestamp, limit: usize) -> usize {
    plan.slots(from, to).take(limit).count()
}

fn before(moment: Timestamp) -> Timestamp {
    moment.minus(Duration::from_micros(1))
}

#[cfg(test)]
mod tests {
    use super::super::{Limit, Window, iso};
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_micros(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
    }

    fn plan(cron: &str, zone: &str) -> Timing {
        Timing { cron: cron.parse().unwrap(), zone: zone.parse().unwrap(), window: Window::default(), jitter_seconds: 0 }
    }

    fn catch_up(limit: u64) -> Misfire {
        Misfire::CatchUp(Limit::new(limit).unwrap())
    }

    #[test]
    fn policies() {
        let hourly = plan("0 * * * *", "UTC");
        let on_the_hour = "2026-06-01T14:00:30Z";
        let between = "2026-06-01T14:20:00Z";
        for (misfire, now, fire, missed) in [
            (Misfire::Skip, on_the_hour, &["14"][..], 4),
            (Misfire::Skip, between, &[], 5),
            (Misfire::FireOnce, on_the_hour, &["14"], 4),
            (Misfire::FireOnce, between, &["14"], 4),
            (catch_up(2), on_the_hour, &["12", "13", "14"], 2),
            (catch_up(2), between, &["13", "14"], 3),
            (catch_up(5), between, &["10", "11", "12", "13", "14"], 0),
            (catch_up(1000), between, &["10", "11", "12", "13", "14"], 0),
        ] {
            let due = due(&hourly, misfire, at("2026-06-01T10:00:00Z"), at(now));
            let hours: Vec<_> = due.fire.iter().map(|slot| iso(*slot)[11..13].to_owned()).collect();
            assert_eq!((hours.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), due.missed), (fire, missed), "{misfire:?} {now}");
            assert_eq!(due.next, Some(at("2026-06-01T15:00:00Z")));
        }
    }

    #[test]
    fn on_time_is_up_to_a_minute_late() {
        let (daily, planned) = (plan("0 9 * * *", "UTC"), at("2026-06-01T09:00:00Z"));
        for (seconds, fired) in [(0, 1), (59, 1), (60, 1), (61, 0)] {
            let due = due(&daily, Misfire::Skip, planned, planned.plus(Duration::from_secs(seconds)));
            assert_eq!((due.fire.len(), due.missed), (fired, 1 - fired), "{seconds}");
            assert_eq!(due.next, Some(at("2026-06-02T09:00:00Z")));
        }
    }

    #[test]
    fn no_slot_is_fired_twice_when_time_goes_on() {
        let minutely = plan("* * * * *", "UTC");
        let mut next = at("2026-06-01T09:00:00Z");
        let mut fired = Vec::new();
        for second in (0..600).step_by(7) {
            let due = due(&minutely, Misfire::Skip, next, at("2026-06-01T09:00:00Z").plus(Duration::from_secs(second)));
            fired.extend(due.fire);
            next = due.next.unwrap();
        }
        assert_eq!(fired, minutely.upcoming(at("2026-06-01T08:59:00Z"), 10));
    }

    #[test]
    fn a_clock_set_back_changes_nothing() {
        let planned = at("2026-06-01T09:00:00Z");
        let due = due(&plan("* * * * *", "UTC"), catch_up(9), planned, at("2026-05-01T00:00:00Z"));
        assert_eq!(due, Due { fire: Vec::new(), missed: 0, next: Some(planned) });
    }

    #[test]
    fn an_edited_schedule_does_not_fire_its_old_slot() {
        let due = due(&plan("30 9 * * *", "UTC"), Misfire::FireOnce, at("2026-06-01T09:00:00Z"), at("2026-06-01T09:00:01Z"));
        assert_eq!(due, Due { fire: Vec::new(), missed: 0, next: Some(at("2026-06-01T09:30:00Z")) });
    }

    #[test]
    fn after_the_window_the_last_slots_still_count() {
        let window = Window::new(None, Some(at("2026-06-01T12:00:00Z"))).unwrap();
        let plan = Timing { window, ..plan("0 * * * *", "UTC") };
        let due = due(&plan, catch_up(1), at("2026-06-01T10:00:00Z"), at("2026-06-03T00:00:00Z"));
        assert_eq!(due, Due { fire: vec![at("2026-06-01T11:00:00Z")], missed: 1, next: None });
    }

    #[test]
    fn years_away_take_bounded_time() {
        let (planned, now) = (at("2016-01-01T00:00:00Z"), at("2026-12-15T00:00:30Z"));
        for (cron, newest_from) in [("* * * * *", "2026-12-14T00:00:00Z"), ("* * * 1-6 *", "2026-06-30T00:00:00Z")] {
            let plan = plan(cron, "America/New_York");
            let started = std::time::Instant::now();
            let due = due(&plan, catch_up(1000), planned, now);
            assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
            let newest: Vec<_> = plan.slots(at(newest_from), now).collect();
            assert!(newest.ends_with(&due.fire) && due.fire.len() >= 1000, "{cron}");
            assert_eq!((due.missed, due.next), (MAX_MISSED, plan.next_after(now)), "{cron}");
        }
    }

    #[test]
    fn fire_once_after_months_is_the_newest_slot() {
        let due =
            due(&plan("*/5 9-17 * * mon-fri", "Europe/Berlin"), Misfire::FireOnce, at("2026-01-05T08:00:00Z"), at("2026-03-07T12:00:00Z"));
        assert_eq!(due.fire, [at("2026-03-06T16:55:00Z")]);
        // 45 working days of 108 slots, without the one that fires.
        assert_eq!((due.missed, due.next), (45 * 108 - 1, Some(at("2026-03-09T08:00:00Z"))));
    }
}
