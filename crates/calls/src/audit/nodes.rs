//! Which nodes there are. Where they share a database, each says now and then that it is there.

use kernel::Timestamp;
use store::{StoreError, args};
use uuid::Uuid;

use crate::Calls;

/// After so many times the usual pause a node that said nothing is taken for gone.
const PATIENCE: u32 = 3;

/// A running server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub id: Uuid,
    /// When it last said that it is there.
    pub seen_at: Timestamp,
}

impl Calls {
    /// The nodes that are there, this one first.
    #[kernel::boxed]
    pub async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        let (own, now) = (self.0.audit.node, self.0.clock.now());
        let sql = "select id, seen_at from nodes where id <> $1 and seen_at > $2 order by id";
        let rows = self.0.db.all(sql, args![own, self.gone_before(now)]).await?;
        let others = rows.iter().map(|row| Ok(Node { id: row.get("id")?, seen_at: row.get("seen_at")? }));
        std::iter::once(Ok(Node { id: own, seen_at: now })).chain(others).collect()
    }

    /// Says that this node is there; nothing about calls under way, which is the writer's to say.
    pub(super) async fn say_here(&self) -> Result<(), StoreError> {
        let sql =
            "insert into nodes (id, alive_until, seen_at) values ($1, 0, $2) on conflict (id) do update set seen_at = excluded.seen_at";
        self.0.db.execute(sql, args![self.0.audit.node, self.0.clock.now()]).await.map(|_| ())
    }

    /// Whoever said nothing since then is gone.
    pub(super) fn gone_before(&self, now: Timestamp) -> Timestamp {
        now.minus(self.0.audit.settings.lease * PATIENCE)
    }
}
