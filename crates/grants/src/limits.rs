//! How many grants and clients there may be.

use kernel::ProjectId;
use store::{Full, args};

use crate::{GrantError, Granter, Grants};

/// The most that is kept of grants that are in force, and of clients that registered themselves.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of one person, or one key, in a project.
    pub of_granter: i64,
    pub of_project: i64,
    /// On the whole server: a client belongs to no project until somebody lets it in.
    pub clients: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { of_granter: 100, of_project: 10_000, clients: 20_000 }
    }
}

impl Limits {
    /// Whether one more grant may be in force beside so many.
    fn admit(&self, of_granter: i64, of_project: i64) -> Result<(), Full> {
        if of_granter >= self.of_granter {
            let (limit, setting) = (format!("{} grants of one person or key", self.of_granter), "grants_per_person");
            return Err(Full { limit, setting, remedy: "Turn clients away that you no longer use, at `/account`" });
        }
        if of_project >= self.of_project {
            let (limit, setting) = (format!("{} grants", self.of_project), "grants_per_project");
            return Err(Full { limit, setting, remedy: "Revoke some, with `toolyard grants revoke` or on the dashboard" });
        }
        Ok(())
    }

    /// How many clients may wait for a person. Anybody may register one, so the rest of the room stays for those that somebody let in.
    pub(crate) fn waiting_clients(&self) -> i64 {
        self.clients / 2
    }
}

impl Grants {
    /// Whether somebody may let one more client in. Codes and devices that were said yes to count: each is a grant in a moment.
    pub(crate) async fn admit(&self, project: ProjectId, granter: Granter) -> Result<(), GrantError> {
        let sql = "with live as ( \
                   select user_id, key_id from oauth_grants where project_id = $1 and ended_at is null and expires_at > $2 union all \
                   select user_id, key_id from oauth_codes where project_id = $1 and used_at is null and expires_at > $2 union all \
                   select user_id, key_id from oauth_device_codes where project_id = $1 and used_at is null and expires_at > $2) \
                   select count(*) as of_project, count(case when user_id = $3 or key_id = $4 then 1 end) as of_granter from live";
        let row = self.0.db.optional(sql, args![project, self.0.clock.now(), granter.user(), granter.key()]).await?;
        let count = |name: &str| row.as_ref().map_or(Ok(0), |row| row.get::<i64>(name));
        Ok(self.0.limits.admit(count("of_granter")?, count("of_project")?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_names_its_setting() {
        let limits = Limits { of_granter: 2, of_project: 3, clients: 10 };
        for (of_granter, of_project, setting) in [
            (0, 0, None),
            (1, 2, None),
            (2, 2, Some("grants_per_person")),
            (0, 3, Some("grants_per_project")),
            (2, 3, Some("grants_per_person")),
        ] {
            assert_eq!(limits.admit(of_granter, of_project).err().map(|full| full.setting), setting, "{of_granter} {of_project}");
        }
        assert_eq!(limits.waiting_clients(), 5);
    }
}
