//! From a key to a scope, with a short memory so that a busy key does not ask the database for every request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kernel::key::KeyHash;
use kernel::{Clock, Scope};
use store::{Db, StoreError, args};

use crate::Key;

/// How long another node may still accept a key that was revoked here.
const MEMORY: Duration = Duration::from_secs(1);
const NOTED_EVERY: Duration = Duration::from_mins(1);
const MAX_REMEMBERED: usize = 4096;

/// Turns keys into scopes.
#[derive(Clone, Debug)]
pub struct Authenticator {
    db: Db,
    clock: Clock,
    known: Arc<Mutex<HashMap<KeyHash, (Scope, Instant)>>>,
}

impl Authenticator {
    pub(crate) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock, known: Arc::default() }
    }

    /// The scope of a key, or nothing for a key that is unknown or revoked.
    pub async fn authenticate(&self, key: &str) -> Result<Option<Scope>, StoreError> {
        let hash = KeyHash::of(key);
        if let Some(scope) = self.remembered(&hash) {
            return Ok(Some(scope));
        }
        let sql = "select id, project_id, user_id, name, role, permissions, is_for_agents, hint, created_at, revoked_at, last_used_at from api_keys \
                   where hash = $1 and revoked_at is null";
        let Some(row) = self.db.optional(sql, args![hash.as_bytes()]).await? else { return Ok(None) };
        let key = Key::read(&row)?;
        self.note_use(&key).await;
        let scope = key.scope();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(hash, (scope, Instant::now()));
        Ok(Some(scope))
    }

    /// Notes that a key is used, once a minute at most: to authenticate is to read. A note that cannot be written is no reason to refuse.
    async fn note_use(&self, key: &Key) {
        let now = self.clock.now();
        if key.last_used_at.is_some_and(|last| now < last.plus(NOTED_EVERY)) {
            return;
        }
        let sql = "update api_keys set last_used_at = $2 where id = $1";
        if let Err(error) = self.db.execute(sql, args![key.id, now]).await {
            tracing::warn!(key = %key.id, %error, "cannot note that a key was used");
        }
    }

    fn remembered(&self, hash: &KeyHash) -> Option<Scope> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(hash).filter(|(_, since)| since.elapsed() < MEMORY).map(|(scope, _)| *scope)
    }

    /// Forgets every key, after one of them changed.
    pub(crate) fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
