//! From a key to a scope, with a short memory so that a busy key does not ask the database for every request.

use std::sync::Arc;
use std::time::Duration;

use kernel::key::KeyHash;
use kernel::{Clock, KeyId, Scope, Shared};
use store::{Db, Remembered, StoreError, args};
use tokio::sync::{RwLock, watch};

use crate::Key;
use crate::keys::columns;

const NOTED_EVERY: Duration = Duration::from_mins(1);
/// How often the database is asked whether a key is still good, for what outlives the request that it opened.
const LOOK_EVERY: Duration = Duration::from_secs(1);
pub(crate) const MAX_REMEMBERED: usize = 4096;

/// Turns keys into scopes.
#[derive(Clone, Debug)]
pub struct Authenticator {
    db: Db,
    clock: Clock,
    known: Shared<Remembered<KeyHash, Scope>>,
    changed: watch::Sender<()>,
    /// Shared by the notes on their way into the database.
    notes: Arc<RwLock<()>>,
}

impl Authenticator {
    pub(crate) fn new(db: Db, clock: Clock) -> Self {
        // Not by their table, which is written whenever the use of a key is noted.
        let known = Shared::new(Remembered::new(&db, &[], MAX_REMEMBERED));
        Self { db, clock, known, changed: watch::Sender::default(), notes: Arc::default() }
    }

    /// The scope of a key that a person pasted when they signed in, if it is still good.
    #[kernel::boxed]
    pub async fn key_scope(&self, key: KeyId) -> Result<Option<Scope>, StoreError> {
        let sql = concat!("select ", columns!(), " from api_keys where id = $1 and revoked_at is null");
        let row = self.db.optional(sql, args![key]).await?;
        row.map(|row| Ok(Key::read(&row)?.scope())).transpose()
    }

    /// The scope of a key, or nothing for a key that is unknown or revoked.
    #[kernel::boxed]
    pub async fn authenticate(&self, key: &str) -> Result<Option<Scope>, StoreError> {
        let hash = KeyHash::of(key);
        self.known.or_find(hash, || self.read(&hash)).await
    }

    async fn read(&self, hash: &KeyHash) -> Result<Option<Scope>, StoreError> {
        let sql = concat!("select ", columns!(), " from api_keys where hash = $1 and revoked_at is null");
        let Some(row) = self.db.optional(sql, args![hash.as_bytes()]).await? else { return Ok(None) };
        let key = Key::read(&row)?;
        self.note_use(&key).await;
        Ok(Some(key.scope()))
    }

    /// Notes that a key is used, once a minute at most: to authenticate is to read. Nobody waits for the note, and one that cannot be
    /// written is no reason to refuse.
    async fn note_use(&self, key: &Key) {
        let (db, id, now) = (self.db.clone(), key.id, self.clock.now());
        if key.last_used_at.is_some_and(|last| now < last.plus(NOTED_EVERY)) {
            return;
        }
        let note = self.notes.clone().read_owned().await;
        tokio::spawn(async move {
            let _note = note;
            let sql = "update api_keys set last_used_at = $2 where id = $1 and coalesce(last_used_at, $2) <= $2";
            if let Err(error) = db.execute(sql, args![id, now]).await {
                tracing::warn!(key = %id, %error, "cannot note that a key was used");
            }
        });
    }

    /// Waits for what was noted so far.
    pub(crate) async fn noted(&self) {
        drop(self.notes.write().await);
    }

    /// Forgets every key, after one of them changed.
    pub(crate) fn forget(&self) {
        self.known.forget_all();
        self.changed.send_replace(());
    }

    /// Waits until a key is revoked, a member is removed, a grant has ended or their project is gone: at once where that happened on this node, else within a
    /// second or so. The operator does not end.
    #[kernel::boxed]
    pub async fn ended(&self, key: KeyId) {
        if key == KeyId::nil() {
            std::future::pending::<()>().await;
        }
        let mut changed = self.changed.subscribe();
        let sql = "select id from api_keys where id = $1 and revoked_at is null union all \
                   select id from members where id = $1 and removed_at is null union all \
                   select g.id from oauth_grants g where g.id = $1 and g.ended_at is null and (exists (select 1 from members m \
                   where m.project_id = g.project_id and m.user_id = g.user_id and m.removed_at is null) \
                   or exists (select 1 from api_keys k where k.id = g.key_id and k.revoked_at is null))";
        // A database that does not answer says nothing about the key.
        while !matches!(self.db.optional(sql, args![key]).await, Ok(None)) {
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}
