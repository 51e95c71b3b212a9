//! Dropping what is over, a few rows at a time.

use std::time::Duration;

use store::{StoreError, args};

use crate::Grants;
use crate::grant::IDLE;

/// How long a registered client has to find a person who lets it in.
const UNUSED: Duration = Duration::from_hours(24);
/// How long what is over is kept, so that a second use is still known.
const OVER: Duration = Duration::from_hours(24);

impl Grants {
    /// Drops codes, tokens, devices and clients that are over; how many. Grants stay: the record names them, and what was made through one is
    /// held to it.
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
                 and not exists (select 1 from oauth_grants g where g.client_id = oauth_clients.id) \
                 and not exists (select 1 from oauth_codes c where c.client_id = oauth_clients.id) limit 500)",
                IDLE,
            ),
        ];
        let mut dropped = 0;
        for (sql, kept) in steps {
            dropped += self.0.db.execute(sql, args![now.minus(kept)]).await?;
        }
        Ok(dropped)
    }
}
