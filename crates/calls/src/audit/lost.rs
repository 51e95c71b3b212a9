//! Calls that were under way when their node went away: nobody knows how they ended.

use store::{Db, StoreError, args};

use super::{Outcome, stats};
use crate::Calls;

const LOST: &str = "The server that made this call went away before the end. Look whether it took effect.";

impl Calls {
    /// Looks after the record: marks what an earlier process left under way, and, where nodes share a database, what others leave. Tells what
    /// was left untold.
    #[kernel::boxed]
    pub async fn start(&self) -> Result<(), StoreError> {
        self.start_telling().await?;
        if let Db::Sqlite(_) = &self.0.db {
            // A SQLite file has one server, so whoever else has calls under way is gone.
            self.0.db.execute("delete from nodes where id <> $1", args![self.0.audit.node]).await?;
            self.mark_lost().await?;
            return Ok(());
        }
        let calls = self.clone();
        let stop = self.0.stop.clone();
        self.0.tasks.spawn(async move {
            loop {
                if let Err(error) = calls.mark_lost().await {
                    tracing::warn!(%error, "calls of nodes that went away could not be looked for");
                }
                if let Err(error) = calls.say_here().await {
                    tracing::warn!(%error, "other nodes could not be told that this one is here");
                }
                if stop.run_until_cancelled(tokio::time::sleep(calls.0.audit.settings.lease)).await.is_none() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Marks the calls of nodes that are gone; how many there were.
    #[kernel::boxed]
    pub async fn mark_lost(&self) -> Result<u64, StoreError> {
        let (node, now) = (self.0.audit.node, self.0.clock.now());
        let lost = "update tool_calls set outcome = 'unknown', message = $3, node_id = null, stat_bin = $4 where node_id is not null and node_id <> $1 \
                    and not exists (select 1 from nodes where nodes.id = tool_calls.node_id and nodes.alive_until > $2)";
        let lost = self.0.db.execute(lost, args![node, now, LOST, stats::LOST]).await?;
        if lost > 0 {
            self.0.audit.count(Outcome::Unknown, lost);
            tracing::warn!(calls = lost, "calls were under way when their server went away; their outcome is unknown");
        }
        let gone = "delete from nodes where alive_until <= $2 and seen_at <= $3 and id <> $1";
        self.0.db.execute(gone, args![node, now, self.gone_before(now)]).await?;
        Ok(lost)
    }
}
