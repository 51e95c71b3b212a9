//! Retention: for how long a project keeps its records, where that is shorter than the deployment does.

use std::time::Duration;

use kernel::{ProjectId, Scope};
use store::{StoreError, args};

use crate::{AccountError, Accounts};

/// The least, as for the deployment: what is in use is younger than two days.
const LEAST: u32 = 2;
const DAY: Duration = Duration::from_hours(24);

/// For how many days records are kept; nothing where the deployment decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    pub runs: Option<u32>,
    pub calls: Option<u32>,
    pub approvals: Option<u32>,
}

/// For how long the deployment keeps records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestRetention {
    pub runs: Duration,
    pub calls: Duration,
    pub approvals: Duration,
}

/// For how long records are kept by the project's word and the deployment's, whichever is shorter.
pub fn kept_for(days: Option<u32>, longest: Duration) -> Duration {
    days.map_or(longest, |days| (DAY * days).min(longest))
}

/// How many whole days that is.
pub fn whole_days(time: Duration) -> u32 {
    u32::try_from(time.as_secs() / DAY.as_secs()).unwrap_or(u32::MAX)
}

fn check(name: &str, days: Option<u32>, longest: Duration) -> Result<(), AccountError> {
    let longest = whole_days(longest);
    match days {
        Some(days) if days < LEAST || days > longest => {
            Err(AccountError::Setting(format!("`{name}` must be between {LEAST} and {longest}: the deployment keeps nothing for longer.")))
        }
        _ => Ok(()),
    }
}

impl Accounts {
    #[kernel::boxed]
    pub async fn retention(&self, project: ProjectId) -> Result<Retention, StoreError> {
        let sql = "select run_days, call_days, approval_days from project_retention where project_id = $1";
        let Some(row) = self.db.optional(sql, args![project]).await? else { return Ok(Retention::default()) };
        let days = |column: &str| Ok::<_, StoreError>(row.get::<Option<i64>>(column)?.and_then(|days| u32::try_from(days).ok()));
        Ok(Retention { runs: days("run_days")?, calls: days("call_days")?, approvals: days("approval_days")? })
    }

    /// Says for how long the project keeps its records; longer than the deployment does is refused.
    #[kernel::boxed]
    pub async fn set_retention(&self, scope: Scope, retention: Retention, longest: LongestRetention) -> Result<(), AccountError> {
        let Retention { runs, calls, approvals } = retention;
        check("run_days", runs, longest.runs)?;
        check("call_days", calls, longest.calls)?;
        check("approval_days", approvals, longest.approvals)?;
        let sql = "insert into project_retention (project_id, run_days, call_days, approval_days, updated_at, updated_by_id) \
                   values ($1, $2, $3, $4, $5, $6) on conflict (project_id) do update set run_days = excluded.run_days, \
                   call_days = excluded.call_days, approval_days = excluded.approval_days, updated_at = excluded.updated_at, \
                   updated_by_id = excluded.updated_by_id";
        let [runs, calls, approvals] = [runs, calls, approvals].map(|days| days.map(i64::from));
        self.db.execute(sql, args![scope.project, runs, calls, approvals, self.clock.now(), scope.author()]).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_keeps_for_a_shorter_time_and_never_a_longer_one() {
        assert_eq!(kept_for(None, DAY * 90), DAY * 90);
        assert_eq!(kept_for(Some(7), DAY * 90), DAY * 7);
        // The deployment keeps less than it did when the project said so.
        assert_eq!(kept_for(Some(60), DAY * 30), DAY * 30);
        for (days, is_taken) in
            [(None, true), (Some(2), true), (Some(90), true), (Some(1), false), (Some(91), false), (Some(u32::MAX), false)]
        {
            assert_eq!(check("run_days", days, DAY * 90).is_ok(), is_taken, "{days:?}");
        }
    }
}
