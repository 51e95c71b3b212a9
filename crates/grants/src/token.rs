//! Tokens: opaque, kept as a hash. Access tokens are short; a refresh token is good once and gives the next one.

use std::time::Duration;

use kernel::key::{KeyHash, PlainKey};
use kernel::{GrantId, PermissionSet, ProjectId, Timestamp};
use store::{Row, StoreError, Tx, args, row};

use crate::grant::{Grant, IDLE};
use crate::scope::{narrowed, stored_scope};
use crate::{Client, EndedWhy, GrantError, Grants, Refusal, Surface, write_scope};

/// What every access token begins with.
pub const ACCESS_PREFIX: &str = "tya";
const REFRESH_PREFIX: &str = "tyr";
/// How long an access token is good for.
const ACCESS: Duration = Duration::from_hours(1);

/// The tokens of a grant, shown once.
#[derive(Debug)]
pub struct Tokens {
    pub access: PlainKey,
    pub refresh: PlainKey,
    pub permissions: PermissionSet,
    pub surface: Surface,
    pub access_for: Duration,
}

/// What became of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    Good,
    /// A refresh token that gave the next one already.
    Used,
    Expired,
    /// It was revoked, or its grant has ended.
    Ended,
}

/// A token as it is kept, with its grant.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) grant: Grant,
    pub(crate) is_refresh: bool,
    pub(crate) permissions: PermissionSet,
    pub(crate) issued_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    used_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
}

impl Kept {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            grant: Grant::read(row)?,
            is_refresh: row.get::<String>("kind")? == REFRESH_PREFIX,
            permissions: stored_scope(&row.get::<String>("token_scope")?),
            issued_at: row.get("token_created_at")?,
            expires_at: row.get("token_expires_at")?,
            used_at: row.get("token_used_at")?,
            ended_at: row.get("token_ended_at")?,
        })
    }

    pub(crate) fn state(&self, now: Timestamp) -> TokenState {
        state(now, self.expires_at, self.used_at, self.ended_at.or(self.grant.ended_at))
    }
}

/// That a token was used comes first: it says that two have it, however late the second comes.
fn state(now: Timestamp, expires: Timestamp, used: Option<Timestamp>, ended: Option<Timestamp>) -> TokenState {
    match (used, ended) {
        (Some(_), _) => TokenState::Used,
        (None, Some(_)) => TokenState::Ended,
        _ if now >= expires => TokenState::Expired,
        _ => TokenState::Good,
    }
}

fn bad_refresh() -> GrantError {
    GrantError::refused(Refusal::InvalidGrant, "The refresh token is unknown, used, expired or revoked. Ask the person again.")
}

/// Makes the tokens of a grant.
pub(crate) async fn issue(tx: &mut Tx, grant: &Grant, permissions: PermissionSet, now: Timestamp) -> Result<Tokens, StoreError> {
    let (access, refresh) = (PlainKey::generate(ACCESS_PREFIX), PlainKey::generate(REFRESH_PREFIX));
    let new = [(&access, ACCESS_PREFIX, permissions, ACCESS), (&refresh, REFRESH_PREFIX, grant.permissions, IDLE)];
    for (token, kind, permissions, life) in new {
        let row = row! {
            project_id: grant.project,
            hash: token.hash().as_bytes().to_vec(),
            grant_id: grant.id,
            kind: kind,
            scope: write_scope(permissions),
            created_at: now,
            expires_at: now.plus(life),
        };
        tx.insert("oauth_tokens", row).await?;
    }
    Ok(Tokens { access, refresh, permissions, surface: grant.surface.clone(), access_for: ACCESS })
}

impl Grants {
    /// A token as it is kept, of whatever kind.
    pub(crate) async fn kept(&self, hash: &KeyHash) -> Result<Option<Kept>, StoreError> {
        let sql = "select g.project_id, g.id, g.user_id, g.key_id, g.client_id, g.client_name, g.surface, g.scope, g.created_at, g.expires_at, \
             g.last_used_at, g.ended_at, g.ended_why, t.kind, t.scope as token_scope, t.created_at as token_created_at, \
             t.expires_at as token_expires_at, t.used_at as token_used_at, t.ended_at as token_ended_at \
             from oauth_tokens t join oauth_grants g on g.project_id = t.project_id and g.id = t.grant_id where t.hash = $1";
        self.0.db.optional(sql, args![hash.as_bytes()]).await?.as_ref().map(Kept::read).transpose()
    }

    /// Gives new tokens for a refresh token, which is good no more. One that comes a second time ends the grant, because somebody else has
    /// it too: which of the two is the thief, nobody can tell.
    #[kernel::boxed]
    pub async fn refresh(
        &self,
        client: &Client,
        token: &str,
        asked: Option<PermissionSet>,
        surface: Option<&Surface>,
    ) -> Result<Tokens, GrantError> {
        let hash = KeyHash::of(token);
        let kept = self.kept(&hash).await?.filter(|kept| kept.is_refresh && kept.grant.client_id == client.id).ok_or_else(bad_refresh)?;
        let grant = kept.grant;
        let permissions = narrowed(asked, grant.permissions)?;
        if surface.is_some_and(|surface| *surface != grant.surface) {
            return Err(GrantError::refused(Refusal::InvalidTarget, "`resource` is not what the person let the client reach."));
        }
        let now = self.0.clock.now();
        let mut tx = self.0.db.begin().await?;
        if !use_up(&mut tx, grant.project, grant.id, &hash, now).await? {
            drop(tx);
            // Read again: of two that come together, the second finds the token used.
            let state = self.kept(&hash).await?.map(|kept| kept.state(now));
            if state == Some(TokenState::Used) {
                self.end(grant.project, grant.id, EndedWhy::RefreshReused).await?;
            }
            return Err(bad_refresh());
        }
        let tokens = issue(&mut tx, &grant, permissions, now).await?;
        let sql = "update oauth_grants set expires_at = $3 where project_id = $1 and id = $2";
        tx.execute(sql, args![grant.project, grant.id, now.plus(IDLE)]).await?;
        tx.commit().await?;
        Ok(tokens)
    }

    /// Revokes a token of this client (RFC 7009): an access token alone, a refresh token with its grant. What is unknown or another client's
    /// is left as it is, and nobody is told.
    #[kernel::boxed]
    pub async fn revoke_token(&self, client: &Client, token: &str) -> Result<(), GrantError> {
        let hash = KeyHash::of(token);
        let Some(kept) = self.kept(&hash).await?.filter(|kept| kept.grant.client_id == client.id) else { return Ok(()) };
        if kept.is_refresh {
            self.end(kept.grant.project, kept.grant.id, EndedWhy::Revoked).await?;
            return Ok(());
        }
        let sql = "update oauth_tokens set ended_at = coalesce(ended_at, $3) where project_id = $1 and hash = $2";
        self.0.db.execute(sql, args![kept.grant.project, hash.as_bytes(), self.0.clock.now()]).await?;
        self.forget_known();
        Ok(())
    }
}

/// Uses up a refresh token: the one update that decides, on every node.
async fn use_up(tx: &mut Tx, project: ProjectId, grant: GrantId, hash: &KeyHash, now: Timestamp) -> Result<bool, StoreError> {
    let sql = "update oauth_tokens set used_at = $4 where project_id = $1 and grant_id = $2 and hash = $3 and kind = 'tyr' \
               and used_at is null and ended_at is null and expires_at > $4 \
               and exists (select 1 from oauth_grants where project_id = $1 and id = $2 and ended_at is null)";
    Ok(tx.execute(sql, args![project, grant, hash.as_bytes(), now]).await? == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_token() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        for (now, used, ended, expected) in [
            (5, None, None, TokenState::Good),
            (9, None, None, TokenState::Good),
            (10, None, None, TokenState::Expired),
            (99, None, None, TokenState::Expired),
            (5, None, Some(4), TokenState::Ended),
            (99, None, Some(4), TokenState::Ended),
            (5, Some(3), None, TokenState::Used),
            (99, Some(3), None, TokenState::Used),
            (5, Some(3), Some(4), TokenState::Used),
        ] {
            assert_eq!(state(at(now), at(10), used.map(at), ended.map(at)), expected, "{now} {used:?} {ended:?}");
        }
    }
}
