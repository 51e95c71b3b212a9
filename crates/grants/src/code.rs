//! Authorization codes: made when a person agrees, good once, for a moment, for one client with one verifier.

use std::time::Duration;

use kernel::key::{KeyHash, PlainKey};
use kernel::{GrantId, PermissionSet, ProjectId, Timestamp};
use store::{Row, StoreError, args, row};

use crate::grant::{self, Granter, NewGrant};
use crate::scope::stored_scope;
use crate::token::{self, Tokens};
use crate::{Challenge, Client, EndedWhy, GrantError, Grants, Refusal, Surface, write_scope};

/// How long a client has to redeem a code.
const LIFE: Duration = Duration::from_mins(2);

/// What a person agreed to.
#[derive(Clone, Debug)]
pub struct Approval {
    pub project: ProjectId,
    pub granter: Granter,
    pub surface: Surface,
    pub permissions: PermissionSet,
}

/// What a client redeems a code with.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    pub code: &'a str,
    pub verifier: Option<&'a str>,
    /// Where the code was sent to, if the client says it again.
    pub redirect_uri: Option<&'a str>,
    pub surface: Option<&'a Surface>,
}

/// A code as it is kept.
#[derive(Debug)]
struct Kept {
    approval: Approval,
    client_id: String,
    client_name: String,
    redirect_uri: String,
    challenge: Challenge,
    expires_at: Timestamp,
    used_at: Option<Timestamp>,
    grant: Option<GrantId>,
}

impl Kept {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let surface: String = row.get("surface")?;
        Ok(Self {
            approval: Approval {
                project: row.get("project_id")?,
                granter: Granter::read(row)?,
                surface: Surface::named(&surface).ok_or_else(|| StoreError::Column("surface".to_owned()))?,
                permissions: stored_scope(&row.get::<String>("scope")?),
            },
            client_id: row.get("client_id")?,
            client_name: row.get("client_name")?,
            redirect_uri: row.get("redirect_uri")?,
            challenge: Challenge::stored(row.get("challenge")?),
            expires_at: row.get("expires_at")?,
            used_at: row.get("used_at")?,
            grant: row.get("grant_id")?,
        })
    }

    /// Why it cannot be redeemed so; nothing if it can.
    fn problem(&self, exchange: &Exchange<'_>, now: Timestamp) -> Option<GrantError> {
        let refuse = |refusal, why: &str| Some(GrantError::refused(refusal, why));
        if now >= self.expires_at {
            return refuse(Refusal::InvalidGrant, UNKNOWN);
        }
        if exchange.redirect_uri.is_some_and(|uri| uri != self.redirect_uri) {
            return refuse(Refusal::InvalidGrant, "`redirect_uri` is not the one that the code was sent to.");
        }
        if !self.challenge.is_met_by(exchange.verifier) {
            return refuse(Refusal::InvalidGrant, "`code_verifier` is missing or is not the one of this code.");
        }
        if exchange.surface.is_some_and(|surface| *surface != self.approval.surface) {
            return refuse(Refusal::InvalidTarget, "`resource` is not what the person let the client reach.");
        }
        None
    }
}

const UNKNOWN: &str = "The code is unknown, used or expired. Ask the person again.";

fn unknown() -> GrantError {
    GrantError::refused(Refusal::InvalidGrant, UNKNOWN)
}

impl Grants {
    /// Makes the code that the client is sent for what a person agreed to.
    #[kernel::boxed]
    pub async fn approve(
        &self,
        client: &Client,
        redirect_uri: &str,
        challenge: &Challenge,
        approval: &Approval,
    ) -> Result<PlainKey, GrantError> {
        self.admit(approval.project, approval.granter).await?;
        let code = PlainKey::generate("tyx");
        let row = row! {
            project_id: approval.project,
            hash: code.hash().as_bytes().to_vec(),
            user_id: approval.granter.user(),
            key_id: approval.granter.key(),
            client_id: client.id.as_str(),
            client_name: client.name.as_str(),
            redirect_uri: redirect_uri,
            challenge: challenge.as_str(),
            surface: approval.surface.path(),
            scope: write_scope(approval.permissions),
            expires_at: self.0.clock.now().plus(LIFE),
        };
        self.0.db.insert("oauth_codes", row).await?;
        self.keep_client(&client.id).await?;
        Ok(code)
    }

    /// Gives tokens for a code. A code that comes a second time ends what it gave.
    pub async fn exchange(&self, client: &Client, exchange: Exchange<'_>) -> Result<Tokens, GrantError> {
        let hash = KeyHash::of(exchange.code);
        let now = self.0.clock.now();
        // To anybody but its client a code is unknown, so nobody else can use it up or end what it gave.
        let kept = self.code(&hash).await?.filter(|kept| kept.client_id == client.id).ok_or_else(unknown)?;
        if kept.used_at.is_some() {
            return self.replayed(&kept).await;
        }
        if let Some(problem) = kept.problem(&exchange, now) {
            return Err(problem);
        }
        let Approval { project, granter, surface, permissions } = &kept.approval;
        let mut tx = self.0.db.begin().await?;
        let new = NewGrant {
            project: *project,
            granter: *granter,
            client_id: &kept.client_id,
            client_name: &kept.client_name,
            surface,
            permissions: *permissions,
        };
        let grant = grant::insert(&mut tx, new, now).await?;
        let sql = "update oauth_codes set used_at = $3, grant_id = $4 where project_id = $1 and hash = $2 and used_at is null";
        if tx.execute(sql, args![*project, hash.as_bytes(), now, grant.id]).await? == 0 {
            drop(tx);
            let kept = self.code(&hash).await?.ok_or_else(unknown)?;
            return self.replayed(&kept).await;
        }
        let tokens = token::issue(&mut tx, &grant, grant.permissions, now).await?;
        tx.commit().await?;
        Ok(tokens)
    }

    async fn replayed(&self, kept: &Kept) -> Result<Tokens, GrantError> {
        if let Some(grant) = kept.grant {
            match self.end(kept.approval.project, grant, EndedWhy::CodeReused).await {
                Ok(_) | Err(GrantError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Err(unknown())
    }

    async fn code(&self, hash: &KeyHash) -> Result<Option<Kept>, StoreError> {
        let sql = "select project_id, user_id, key_id, client_id, client_name, redirect_uri, challenge, surface, scope, expires_at, used_at, grant_id \
                   from oauth_codes where hash = $1";
        self.0.db.optional(sql, args![hash.as_bytes()]).await?.as_ref().map(Kept::read).transpose()
    }
}
