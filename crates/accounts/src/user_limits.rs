//! Limits of end users: how many calls each may make, where a project says so.

use kernel::{ProjectId, Scope};
use store::{StoreError, args};

use crate::{AccountError, Accounts};

/// The most that can be said; more is as good as no limit.
const MOST: u32 = 1_000_000;

/// How many calls one end user may make; nothing where there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserLimits {
    pub at_once: Option<u32>,
    pub per_minute: Option<u32>,
    /// In a day of UTC.
    pub per_day: Option<u32>,
}

impl UserLimits {
    /// Whether there is any.
    pub fn limit_something(&self) -> bool {
        *self != Self::default()
    }
}

fn check(name: &str, most: Option<u32>) -> Result<(), AccountError> {
    match most {
        Some(most) if !(1..=MOST).contains(&most) => {
            Err(AccountError::Setting(format!("`{name}` must be between 1 and {MOST}; leave it out for no limit.")))
        }
        _ => Ok(()),
    }
}

impl Accounts {
    #[kernel::boxed]
    pub async fn user_limits(&self, project: ProjectId) -> Result<UserLimits, StoreError> {
        let sql = "select calls_at_once, calls_per_minute, calls_per_day from project_user_limits where project_id = $1";
        let Some(row) = self.db.optional(sql, args![project]).await? else { return Ok(UserLimits::default()) };
        let most = |column: &str| Ok::<_, StoreError>(row.get::<Option<i64>>(column)?.and_then(|most| u32::try_from(most).ok()));
        Ok(UserLimits { at_once: most("calls_at_once")?, per_minute: most("calls_per_minute")?, per_day: most("calls_per_day")? })
    }

    /// Says how many calls each end user may make, in place of what was said before.
    #[kernel::boxed]
    pub async fn set_user_limits(&self, scope: Scope, limits: UserLimits) -> Result<(), AccountError> {
        let UserLimits { at_once, per_minute, per_day } = limits;
        check("calls_at_once", at_once)?;
        check("calls_per_minute", per_minute)?;
        check("calls_per_day", per_day)?;
        let sql = "insert into project_user_limits (project_id, calls_at_once, calls_per_minute, calls_per_day, updated_at, updated_by_id) \
                   values ($1, $2, $3, $4, $5, $6) on conflict (project_id) do update set calls_at_once = excluded.calls_at_once, \
                   calls_per_minute = excluded.calls_per_minute, calls_per_day = excluded.calls_per_day, \
                   updated_at = excluded.updated_at, updated_by_id = excluded.updated_by_id";
        let [at_once, per_minute, per_day] = [at_once, per_minute, per_day].map(|most| most.map(i64::from));
        self.db.execute(sql, args![scope.project, at_once, per_minute, per_day, self.clock.now(), scope.author()]).await?;
        Ok(())
    }
}
