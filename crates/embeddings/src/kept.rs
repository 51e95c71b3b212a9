//! Vectors in the database, by what was asked for. The same sentence is paid for once, whatever restarts.

use std::collections::HashMap;
use std::time::Duration;

use kernel::Clock;
use store::{Db, Many, StoreError, args, row};

use crate::api::Hash;
use crate::vector::Vector;

/// What nobody used for so long is dropped; what is used is marked once a day.
const STALE: Duration = Duration::from_hours(30 * 24);
const MARKED: Duration = Duration::from_hours(24);
/// How many are kept; those not used the longest go first.
const MOST: i64 = 100_000;

#[derive(Debug)]
pub(crate) struct Kept {
    db: Db,
    clock: Clock,
}

impl Kept {
    pub(crate) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock }
    }

    /// The vectors that there are, marked as used.
    pub(crate) async fn read(&self, hashes: impl Iterator<Item = &Hash>) -> Result<HashMap<Hash, Vector>, StoreError> {
        let now = self.clock.now();
        let (mut found, mut to_mark) = (HashMap::new(), Vec::new());
        for hash in hashes {
            let sql = "select vector, used_at < $2 as is_old from sentence_vectors where hash = $1";
            let Some(row) = self.db.optional(sql, args![&hash[..], now.minus(MARKED)]).await? else { continue };
            let Some(vector) = Vector::read(row.get("vector")?) else { continue };
            found.insert(*hash, vector);
            if row.get("is_old")? {
                to_mark.push(row! { hash: &hash[..], used_at: now });
            }
        }
        if !to_mark.is_empty() {
            let sql = "update sentence_vectors set used_at = v.used_at from v where sentence_vectors.hash = v.hash";
            self.db.write_many(Many::with(to_mark, sql)).await?;
        }
        Ok(found)
    }

    pub(crate) async fn keep(&self, vectors: &[(Hash, Vector)]) -> Result<(), StoreError> {
        let now = self.clock.now();
        let rows = vectors.iter().map(|(hash, vector)| row! { hash: &hash[..], vector: vector.bytes(), used_at: now });
        let rest = "on conflict (hash) do update set vector = excluded.vector, used_at = excluded.used_at";
        self.db.write_many(Many::insert("sentence_vectors", rows, rest)).await?;
        Ok(())
    }

    /// Drops all that are not of this width.
    pub(crate) async fn forget_others(&self, width: usize) -> Result<(), StoreError> {
        let width = i64::try_from(width).unwrap_or(i64::MAX);
        self.db.execute("delete from sentence_vectors where octet_length(vector) <> $1", args![width]).await?;
        Ok(())
    }

    /// Drops what is stale, and what is too much.
    pub(crate) async fn tidy(&self) -> Result<(), StoreError> {
        self.db.execute("delete from sentence_vectors where used_at < $1", args![self.clock.now().minus(STALE)]).await?;
        let sql = "delete from sentence_vectors where hash in \
                   (select hash from sentence_vectors order by used_at desc, hash limit 1000000 offset $1)";
        self.db.execute(sql, args![MOST]).await?;
        Ok(())
    }
}
