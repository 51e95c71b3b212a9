//! Assignments over time: what was given and taken, and what agents had at the end of each day.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Scope, Timestamp};

use crate::{AgentError, AgentRef, Agents, AppName, AppStatus, Change, store};

const DAY: i64 = 24 * 60 * 60 * 1_000_000;
const MAX_DAYS: i64 = 366;

/// Which days, and whose assignments. Days are UTC's.
#[derive(Clone, Debug)]
pub struct DailyFilter {
    pub since: Timestamp,
    pub until: Timestamp,
    pub app: Option<String>,
    pub agent: Option<AgentRef>,
}

/// What happened on a day, and how many assignments there were at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub assigned: usize,
    pub unassigned: usize,
    pub active: usize,
}

/// One day, as a whole, by app and by the number of the agent.
#[derive(Clone, Debug, Default)]
pub struct Day {
    /// `2026-11-16`
    pub day: String,
    pub total: Tally,
    pub by_app: BTreeMap<AppName, Tally>,
    pub by_agent: BTreeMap<i64, Tally>,
}

/// A line of the history that gives or takes an app, or ends an agent.
#[derive(Clone, Debug)]
pub(crate) struct AssignmentChange {
    pub(crate) agent: i64,
    pub(crate) app: Option<AppName>,
    pub(crate) change: Change,
    pub(crate) at: Timestamp,
}

impl Agents {
    /// Every day of the time, the oldest first.
    #[kernel::boxed]
    pub async fn daily(&self, scope: Scope, filter: &DailyFilter) -> Result<Vec<Day>, AgentError> {
        let (first, last) = (day_of(filter.since), day_of(filter.until));
        if first > last || last - first >= MAX_DAYS {
            return Err(AgentError::Invalid(format!("`since` must be before `until`, by at most {MAX_DAYS} days.")));
        }
        let agent = match filter.agent {
            Some(agent) => Some(self.find(scope, agent).await?.id),
            None => None,
        };
        let app = filter.app.as_deref().map(AppName::of);
        let mut steps = store::history::steps(&self.0.db, scope, agent, filter.until).await?;
        if let Some(app) = app {
            steps.retain(|step| step.app.as_ref().is_none_or(|other| *other == app));
            let is_known = steps.iter().any(|step| step.app.is_some());
            if !is_known && self.apps(scope).await?.status(&app) == AppStatus::Unknown {
                return Err(AgentError::UnknownApp(app));
            }
        }
        Ok(days(&steps, first, last))
    }
}

fn day_of(moment: Timestamp) -> i64 {
    moment.micros().div_euclid(DAY)
}

/// The days from the first to the last; the steps are in the order in which they were taken.
fn days(steps: &[AssignmentChange], first: i64, last: i64) -> Vec<Day> {
    let mut held: BTreeSet<(i64, AppName)> = BTreeSet::new();
    let mut steps = steps.iter().peekable();
    while let Some(step) = steps.next_if(|step| day_of(step.at) < first) {
        take(&mut held, step, |_, _, _| {});
    }
    let mut days = Vec::new();
    for number in first..=last {
        let date = Timestamp::from_micros(number.saturating_mul(DAY)).to_string();
        let mut day = Day { day: date.chars().take(10).collect(), ..Day::default() };
        while let Some(step) = steps.next_if(|step| day_of(step.at) == number) {
            take(&mut held, step, |agent, app, is_given| {
                for tally in day.tallies(agent, app) {
                    tally.assigned += usize::from(is_given);
                    tally.unassigned += usize::from(!is_given);
                }
            });
        }
        for (agent, app) in &held {
            for tally in day.tallies(*agent, app) {
                tally.active += 1;
            }
        }
        days.push(day);
    }
    days
}

impl Day {
    fn tallies(&mut self, agent: i64, app: &AppName) -> [&mut Tally; 3] {
        [&mut self.total, self.by_app.entry(app.clone()).or_default(), self.by_agent.entry(agent).or_default()]
    }
}

/// Takes a step, and tells of everything that it gave or took.
fn take(held: &mut BTreeSet<(i64, AppName)>, step: &AssignmentChange, mut told: impl FnMut(i64, &AppName, bool)) {
    let pair = |app: &AppName| (step.agent, app.clone());
    match (&step.app, step.change) {
        (Some(app), Change::Assigned | Change::Reassigned) if held.insert(pair(app)) => told(step.agent, app, true),
        (Some(app), Change::Unassigned) if held.remove(&pair(app)) => told(step.agent, app, false),
        // With an agent go its assignments.
        (_, Change::Deleted) => held.retain(|(agent, app)| {
            let stays = *agent != step.agent;
            if !stays {
                told(*agent, app, false);
            }
            stays
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_what_was_given_taken_and_held() {
        let step = |agent: i64, app: &str, change: Change, day: i64| AssignmentChange {
            agent,
            app: (!app.is_empty()).then(|| AppName::of(app)),
            change,
            at: Timestamp::from_micros(day * DAY + 5),
        };
        let steps = [
            step(1, "a", Change::Assigned, 0),
            step(1, "b", Change::Assigned, 1),
            step(2, "a", Change::Assigned, 1),
            step(1, "b", Change::Unassigned, 1),
            step(1, "", Change::Deleted, 3),
        ];
        let days = days(&steps, 1, 3);
        let tally = |assigned, unassigned, active| Tally { assigned, unassigned, active };
        assert_eq!(days.iter().map(|day| day.day.as_str()).collect::<Vec<_>>(), ["1970-01-02", "1970-01-03", "1970-01-04"]);
        assert_eq!(days.iter().map(|day| day.total).collect::<Vec<_>>(), [tally(2, 1, 2), tally(0, 0, 2), tally(0, 1, 1)]);
        assert_eq!(days[0].by_app, BTreeMap::from([(AppName::of("a"), tally(1, 0, 2)), (AppName::of("b"), tally(1, 1, 0))]));
        assert_eq!(days[2].by_agent, BTreeMap::from([(1, tally(0, 1, 0)), (2, tally(0, 0, 1))]));
    }
}
