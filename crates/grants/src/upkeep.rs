//! Dropping what is over, a few rows at a time.

use std::time::Duration;

use kernel::{GrantId, ProjectId, Timestamp};
use store::{StoreError, args};

use crate::Grants;
use crate::grant::IDLE;

/// How long a registered client has to find a person who lets it in.
const UNUSED: Duration = Duration::from_hours(24);
/// How long what is over is kept, so that a second use is still known.
const OVER: Duration = Duration::from_hours(24);
const BATCH: i64 = 500;

impl Grants {
    /// Drops codes, tokens, devices and clients that are over; how many. A client is over a month after the last of its grants is.
    #[kernel::boxed]
    pub async fn forget(&self) -> Result<u64, StoreError> {
        let now = self.0.clock.now();
        let steps = [
            ("delete from oauth_codes where hash in (select hash from oauth_codes where expires_at < $1 limit 500)", OVER),
            ("delete from oauth_device_codes where hash in (select hash from oauth_device_codes where expires_at < $1 limit 500)", OVER),
            // A used refresh token is kept as long as it was good for: whoever comes with it late is still found out.
            ("delete from oauth_tokens where hash in (select hash from oauth_tokens where expires_at < $1 limit 500)", OVER),
            (
                "delete from oauth_clients where id in (select id from oauth_clients where used_at is null and created_at < $1 limit 500)",
                UNUSED,
            ),
            (
                "delete from oauth_clients where id in (select id from oauth_clients where used_at < $1 \
                 and id not in (select client_id from oauth_grants where expires_at >= $1) \
                 and id not in (select client_id from oauth_codes) \
                 and id not in (select client_id from oauth_device_codes) limit 500)",
                IDLE,
            ),
        ];
        let mut dropped = 0;
        for (sql, kept) in steps {
            dropped += self.0.db.execute(sql, args![now.minus(kept)]).await?;
        }
        Ok(dropped)
    }

    /// Grants that ended before a time and were not used since, some at a time after the last that was seen. Whether they can go is for
    /// those to say who keep what was done or made through them.
    #[kernel::boxed]
    pub async fn long_ended(&self, before: Timestamp, after: Option<GrantId>) -> Result<Vec<(ProjectId, GrantId)>, StoreError> {
        let sql = "select project_id, id from oauth_grants where expires_at < $1 and coalesce(last_used_at, created_at) < $1 \
                   and ($2 is null or id > $2) order by id limit $3";
        let rows = self.0.db.all(sql, args![before, after, BATCH]).await?;
        rows.iter().map(|row| Ok((row.get("project_id")?, row.get("id")?))).collect()
    }

    /// Drops a grant that nothing names any more.
    #[kernel::boxed]
    pub async fn drop_ended(&self, project: ProjectId, id: GrantId, before: Timestamp) -> Result<u64, StoreError> {
        let sql =
            "delete from oauth_grants where project_id = $1 and id = $2 and expires_at < $3 and coalesce(last_used_at, created_at) < $3";
        self.0.db.execute(sql, args![project, id, before]).await
    }
}
