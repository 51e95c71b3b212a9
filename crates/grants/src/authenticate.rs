//! From an access token to what it opens, with a short memory so that a busy client does not ask the database for every request.

use std::time::Duration;

use kernel::key::KeyHash;
use kernel::{GrantId, PermissionSet, ProjectId, Timestamp};
use store::{StoreError, args};

use crate::token::Kept;
use crate::{ACCESS_PREFIX, Client, Grant, Granter, Grants, Surface, TokenState};

pub(crate) const MAX_REMEMBERED: usize = 4096;
const NOTED_EVERY: Duration = Duration::from_mins(1);

/// What a good access token stands for. What the granter may do at this moment is asked elsewhere, and wins.
#[derive(Clone, Debug)]
pub struct Bearer {
    pub grant: GrantId,
    pub project: ProjectId,
    pub granter: Granter,
    pub surface: Surface,
    pub permissions: PermissionSet,
    expires_at: Timestamp,
}

/// What a client is told of a token of its own (RFC 7662).
#[derive(Clone, Debug)]
pub struct Introspection {
    pub grant: Grant,
    pub permissions: PermissionSet,
    pub is_refresh: bool,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
}

impl Grants {
    /// Whether a credential is an access token of ours, good or not.
    pub fn is_token(credential: &str) -> bool {
        credential.strip_prefix(ACCESS_PREFIX).is_some_and(|rest| rest.starts_with('_'))
    }

    /// What an access token stands for; nothing for one that is unknown, expired or revoked.
    #[kernel::boxed]
    pub async fn authenticate(&self, token: &str) -> Result<Option<Bearer>, StoreError> {
        let hash = KeyHash::of(token);
        let found = self.0.known.or_find(hash, || self.look_up(&hash)).await?;
        Ok(found.filter(|bearer| self.0.clock.now() < bearer.expires_at))
    }

    async fn look_up(&self, hash: &KeyHash) -> Result<Option<Bearer>, StoreError> {
        let now = self.0.clock.now();
        let Some(kept) = self.kept(hash).await? else { return Ok(None) };
        if kept.is_refresh || kept.state(now) != TokenState::Good {
            return Ok(None);
        }
        self.note_use(&kept.grant, now).await;
        let Kept { grant, permissions, expires_at, .. } = kept;
        Ok(Some(Bearer {
            grant: grant.id,
            project: grant.project,
            granter: grant.granter,
            surface: grant.surface,
            permissions: permissions.and(grant.permissions),
            expires_at,
        }))
    }

    /// What a token of this client is good for; nothing for one that is good no more, or another's.
    #[kernel::boxed]
    pub async fn introspect(&self, client: &Client, token: &str) -> Result<Option<Introspection>, StoreError> {
        let kept = self.kept(&KeyHash::of(token)).await?;
        let is_good = |kept: &Kept| kept.grant.client_id == client.id && kept.state(self.0.clock.now()) == TokenState::Good;
        Ok(kept.filter(is_good).map(|kept| Introspection {
            permissions: kept.permissions,
            is_refresh: kept.is_refresh,
            issued_at: kept.issued_at,
            expires_at: kept.expires_at,
            grant: kept.grant,
        }))
    }

    /// Notes that a grant is used, once a minute at most. Nobody waits for the note, and one that cannot be written is no reason to refuse.
    async fn note_use(&self, grant: &Grant, now: Timestamp) {
        if grant.last_used_at.is_some_and(|last| now < last.plus(NOTED_EVERY)) {
            return;
        }
        let (db, project, id) = (self.0.db.clone(), grant.project, grant.id);
        let note = self.0.notes.clone().read_owned().await;
        tokio::spawn(async move {
            let _note = note;
            let sql = "update oauth_grants set last_used_at = $3 where project_id = $1 and id = $2 and coalesce(last_used_at, $3) <= $3";
            if let Err(error) = db.execute(sql, args![project, id, now]).await {
                tracing::warn!(grant = %id, %error, "cannot note that a grant was used");
            }
        });
    }

    /// Waits for what was noted so far.
    pub(crate) async fn noted(&self) {
        drop(self.0.notes.write().await);
    }

    /// Forgets every token, after one of them changed.
    pub(crate) fn forget_known(&self) {
        self.0.known.forget_all();
    }
}
