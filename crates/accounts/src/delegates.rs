//! Clients that act for somebody: what a grant still allows whoever gave it. `grants` keeps them; here they are looked at like keys.

use std::time::Duration;

use kernel::{KeyId, Permission, PermissionSet, ProjectId, Scope, Timestamp, UserId};
use store::{StoreError, Tx, args};

use crate::Accounts;

/// How often it is noted that something acts through a grant, so that the grant is kept as long as the record names it.
const NOTED_EVERY: Duration = Duration::from_hours(24);

/// What was made through a grant, and whether it can be trusted.
pub(crate) enum Delegate {
    /// There is no such grant.
    None,
    /// It ended because somebody else had its tokens too.
    Stolen,
    /// What its giver may do now, held to what the grant allows.
    Acting(Option<Scope>),
}

impl Accounts {
    /// What may be done now that a client began through a grant, also after the client was turned away: never more than the grant allowed, nor
    /// than its giver may do now.
    pub(crate) async fn delegate(&self, project: ProjectId, grant: KeyId) -> Result<Delegate, StoreError> {
        let sql = "select user_id, key_id, scope, ended_why, last_used_at from oauth_grants where project_id = $1 and id = $2";
        let Some(row) = self.db.optional(sql, args![project, grant]).await? else { return Ok(Delegate::None) };
        if row.get::<Option<String>>("ended_why")?.is_some_and(|why| why.ends_with("_reused")) {
            return Ok(Delegate::Stolen);
        }
        let now = self.clock.now();
        if row.get::<Option<Timestamp>>("last_used_at")?.is_none_or(|last| last.plus(NOTED_EVERY) <= now) {
            // A note that was held up takes nothing back that somebody wrote since.
            let sql = "update oauth_grants set last_used_at = $3 where project_id = $1 and id = $2 and coalesce(last_used_at, $3) <= $3";
            self.db.execute(sql, args![project, grant, now]).await?;
        }
        let giver = match (row.get::<Option<UserId>>("user_id")?, row.get::<Option<KeyId>>("key_id")?) {
            (Some(user), _) => self.member_scope(project, user).await?,
            (None, Some(key)) => self.authenticator.key_scope(key).await?.filter(|scope| scope.project == project),
            (None, None) => None,
        };
        let allowed: PermissionSet = row.get::<String>("scope")?.split(' ').filter_map(|name| name.parse::<Permission>().ok()).collect();
        Ok(Delegate::Acting(giver.map(|scope| Scope { key: grant, permissions: scope.permissions.and(allowed), ..scope })))
    }
}

/// Ends what somebody let clients do before they were taken out of a project: that they come back brings none of it back.
pub(crate) async fn end_former_grants(tx: &mut Tx, project: ProjectId, user: UserId, now: Timestamp) -> Result<(), StoreError> {
    let sql = "update oauth_grants set ended_at = $3, ended_why = 'granter_gone' where project_id = $1 and user_id = $2 and ended_at is null \
               and exists (select 1 from members where project_id = $1 and user_id = $2 and removed_at is not null)";
    tx.execute(sql, args![project, user, now]).await.map(|_| ())
}
