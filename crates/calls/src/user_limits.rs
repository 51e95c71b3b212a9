//! How many calls an end user makes: at once, in a minute and in a day. Each node counts what it is asked for; a day begins with what the
//! record knows. A project without limits, and calls of the project itself, are not counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use accounts::UserLimits;
use kernel::{EndUserId, Origin, ProjectId, Scope, Timestamp};
use store::{Db, Remembered, StoreError, args};

use crate::{CallError, Calls};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);
/// So many end users are counted before those who do nothing are let go.
const MANY: usize = 10_000;
const MAX_REMEMBERED: usize = 4096;

type User = (ProjectId, EndUserId);

/// Who makes how many calls.
#[derive(Debug)]
pub(crate) struct UserCounts {
    limits: Remembered<ProjectId, UserLimits>,
    used: Arc<Mutex<HashMap<User, Used>>>,
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reached {
    most: u32,
    /// What so many are of.
    of: &'static str,
    /// When there is room again, where that is known.
    wait: Option<Duration>,
}

/// Calls since a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    since: i64,
    calls: u32,
}

impl Window {
    /// The same at a later time: a window that is over begins anew.
    fn at(self, now: i64, length: Duration) -> Self {
        let length = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
        let since = now - now.rem_euclid(length);
        // A clock that went back counts on.
        if since > self.since { Self { since, calls: 0 } } else { self }
    }

    fn left(self, now: i64, length: Duration) -> Duration {
        let end = self.since.saturating_add(i64::try_from(length.as_micros()).unwrap_or(i64::MAX));
        Duration::from_micros(u64::try_from(end.saturating_sub(now)).unwrap_or(0))
    }
}

/// What one end user has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    running: u32,
    minute: Window,
    day: Window,
}

impl Used {
    /// Counts one more call, unless there are enough.
    fn admit(&mut self, limits: UserLimits, now: Timestamp) -> Result<(), Reached> {
        let now = now.micros();
        (self.minute, self.day) = (self.minute.at(now, MINUTE), self.day.at(now, DAY));
        if let Some(most) = limits.at_once.filter(|most| self.running >= *most) {
            return Err(Reached { most, of: "calls at once", wait: None });
        }
        if let Some(most) = limits.per_minute.filter(|most| self.minute.calls >= *most) {
            return Err(Reached { most, of: "calls in a minute", wait: Some(self.minute.left(now, MINUTE)) });
        }
        if let Some(most) = limits.per_day.filter(|most| self.day.calls >= *most) {
            return Err(Reached { most, of: "calls in a day", wait: Some(self.day.left(now, DAY)) });
        }
        self.running += 1;
        self.minute.calls = self.minute.calls.saturating_add(1);
        self.day.calls = self.day.calls.saturating_add(1);
        Ok(())
    }

    /// Whether nothing would be lost with it.
    fn is_idle(&self, now: Timestamp) -> bool {
        self.running == 0 && self.minute.at(now.micros(), MINUTE).calls == 0
    }
}

/// The place of one call, given back when it ends.
#[derive(Debug)]
pub(crate) struct UserPlace {
    used: Arc<Mutex<HashMap<User, Used>>>,
    user: User,
}

impl Drop for UserPlace {
    fn drop(&mut self) {
        if let Some(used) = held(&self.used).get_mut(&self.user) {
            used.running = used.running.saturating_sub(1);
        }
    }
}

fn held(used: &Mutex<HashMap<User, Used>>) -> MutexGuard<'_, HashMap<User, Used>> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

impl UserCounts {
    pub(crate) fn new(db: &Db) -> Self {
        Self { limits: Remembered::new(db, &["project_user_limits"], MAX_REMEMBERED), used: Arc::default() }
    }
}

impl Calls {
    /// A place for a call of an end user, if the project lets them have one. Steps of a run are part of the call that began it.
    pub(crate) async fn user_place(&self, scope: Scope, origin: &Origin) -> Result<Option<UserPlace>, CallError> {
        let Some(end_user) = scope.end_user().filter(|_| origin.run.is_none()) else { return Ok(None) };
        let (counts, user, now) = (&self.0.user_counts, (scope.project, end_user), self.0.clock.now());
        let limits = counts.limits.or_read(scope.project, || self.0.accounts.user_limits(scope.project)).await?;
        if !limits.limit_something() {
            return Ok(None);
        }
        if limits.per_day.is_some() && !held(&counts.used).contains_key(&user) {
            let calls = self.calls_today(user, now).await?;
            let mut used = held(&counts.used);
            if used.len() >= MANY {
                used.retain(|_, used| !used.is_idle(now));
            }
            used.entry(user).or_insert(Used { day: Window { calls, ..Window::default().at(now.micros(), DAY) }, ..Used::default() });
        }
        let mut used = held(&counts.used);
        if used.len() >= MANY {
            used.retain(|known, used| *known == user || !used.is_idle(now));
        }
        used.entry(user).or_default().admit(limits, now).map_err(|Reached { most, of, wait }| {
            let wait = wait.map_or("when one of them has ended".to_owned(), |wait| format!("in {} s", wait.as_secs() + 1));
            CallError::UserLimit(format!("This end user may make {most} {of}, which is what the project allows; try again {wait}."))
        })?;
        Ok(Some(UserPlace { used: counts.used.clone(), user }))
    }

    /// What the record knows of today.
    async fn calls_today(&self, (project, end_user): User, now: Timestamp) -> Result<u32, StoreError> {
        let today = Timestamp::from_micros(Window::default().at(now.micros(), DAY).since);
        let sql = "select count(*) as found from tool_calls where project_id = $1 and end_user_id = $2 and created_at >= $3";
        let found: i64 = self.0.db.optional(sql, args![project, end_user, today]).await?.map_or(Ok(0), |row| row.get("found"))?;
        Ok(u32::try_from(found).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_800_000_000_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(START + seconds * 1_000_000)
    }

    #[test]
    fn each_limit_holds_by_itself() {
        let mut used = Used::default();
        let limits = UserLimits { at_once: Some(1), ..UserLimits::default() };
        used.admit(limits, at(0)).unwrap();
        assert_eq!(used.admit(limits, at(1)).unwrap_err().of, "calls at once");
        used.running = 0;
        used.admit(limits, at(1)).unwrap();

        let mut used = Used::default();
        let limits = UserLimits { per_minute: Some(2), per_day: Some(3), ..UserLimits::default() };
        for _ in 0..2 {
            used.admit(limits, at(0)).unwrap();
        }
        let reached = used.admit(limits, at(10)).unwrap_err();
        assert!(reached.of == "calls in a minute" && reached.wait.is_some_and(|wait| wait <= MINUTE), "{reached:?}");
        used.admit(limits, at(61)).unwrap();
        assert_eq!(used.admit(limits, at(125)).unwrap_err().of, "calls in a day");
        used.admit(limits, at(24 * 3600)).unwrap();
        assert_eq!(used.running, 4, "what is refused holds no place");
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_away() {
        let mut used = Used::default();
        let limits = UserLimits { per_minute: Some(1), ..UserLimits::default() };
        used.admit(limits, at(0)).unwrap();
        assert!(used.admit(limits, at(-300)).is_err());
    }
}
