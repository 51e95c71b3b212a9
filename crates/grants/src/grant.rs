//! Grants: what a person let a client do. A grant is a family of tokens; when it ends, they all do.

use std::time::Duration;

use kernel::{GrantId, KeyId, PermissionSet, ProjectId, Timestamp, UserId};
use store::{Page, PageSize, Row, StoreError, Tx, args, page_sql, row};

use crate::scope::stored_scope;
use crate::{GrantError, Grants, Surface, write_scope};

/// How long a grant lives after its client last asked for a new token.
pub(crate) const IDLE: Duration = Duration::from_hours(30 * 24);

macro_rules! columns {
    () => {
        "project_id, id, user_id, key_id, client_id, client_name, surface, scope, created_at, expires_at, last_used_at, ended_at, ended_why"
    };
}

/// Who let a client in: a person, or whoever signed in with a project key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granter {
    User(UserId),
    Key(KeyId),
}

impl Granter {
    pub(crate) fn read(row: &Row) -> Result<Self, StoreError> {
        let (user, key): (Option<UserId>, Option<KeyId>) = (row.get("user_id")?, row.get("key_id")?);
        user.map(Self::User).or(key.map(Self::Key)).ok_or_else(|| StoreError::Column("user_id".to_owned()))
    }

    pub fn user(self) -> Option<UserId> {
        if let Self::User(user) = self { Some(user) } else { None }
    }

    pub fn key(self) -> Option<KeyId> {
        if let Self::Key(key) = self { Some(key) } else { None }
    }
}

/// Why a grant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedWhy {
    /// Somebody revoked it, or its client handed it back.
    Revoked,
    /// A refresh token came twice, so somebody else has it too.
    RefreshReused,
    /// A code came twice.
    CodeReused,
    /// The person is no longer in the project, or the key is revoked.
    GranterGone,
}

impl EndedWhy {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::RefreshReused => "refresh_reused",
            Self::CodeReused => "code_reused",
            Self::GranterGone => "granter_gone",
        }
    }
}

/// One grant.
#[derive(Clone, Debug)]
pub struct Grant {
    pub id: GrantId,
    pub project: ProjectId,
    pub granter: Granter,
    pub client_id: String,
    pub client_name: String,
    pub surface: Surface,
    pub permissions: PermissionSet,
    pub created_at: Timestamp,
    /// When it ends by itself, unless its client asks for a new token before.
    pub expires_at: Timestamp,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub ended_why: Option<String>,
}

impl Grant {
    pub(crate) fn read(row: &Row) -> Result<Self, StoreError> {
        let surface: String = row.get("surface")?;
        Ok(Self {
            id: row.get("id")?,
            project: row.get("project_id")?,
            granter: Granter::read(row)?,
            client_id: row.get("client_id")?,
            client_name: row.get("client_name")?,
            surface: Surface::named(&surface).ok_or_else(|| StoreError::Column("surface".to_owned()))?,
            permissions: stored_scope(&row.get::<String>("scope")?),
            created_at: row.get("created_at")?,
            expires_at: row.get("expires_at")?,
            last_used_at: row.get("last_used_at")?,
            ended_at: row.get("ended_at")?,
            ended_why: row.get("ended_why")?,
        })
    }

    /// How it stands: `active`, `expired`, or why it ended.
    pub fn state(&self, now: Timestamp) -> &str {
        match (&self.ended_why, self.ended_at) {
            (Some(why), Some(_)) => why,
            (None, Some(_)) => "revoked",
            _ if now >= self.expires_at => "expired",
            _ => "active",
        }
    }
}

/// Which grants to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrantFilter {
    /// Only those that this person or key gave.
    pub granter: Option<Granter>,
    /// Only those that are in force.
    pub is_active: bool,
    pub cursor: Option<GrantId>,
    pub size: PageSize,
}

/// What a new grant shall be.
#[derive(Debug)]
pub(crate) struct NewGrant<'a> {
    pub(crate) project: ProjectId,
    pub(crate) granter: Granter,
    pub(crate) client_id: &'a str,
    pub(crate) client_name: &'a str,
    pub(crate) surface: &'a Surface,
    pub(crate) permissions: PermissionSet,
}

pub(crate) async fn insert(tx: &mut Tx, new: NewGrant<'_>, now: Timestamp) -> Result<Grant, StoreError> {
    let grant = Grant {
        id: GrantId::new(),
        project: new.project,
        granter: new.granter,
        client_id: new.client_id.to_owned(),
        client_name: new.client_name.to_owned(),
        surface: new.surface.clone(),
        permissions: new.permissions,
        created_at: now,
        expires_at: now.plus(IDLE),
        last_used_at: None,
        ended_at: None,
        ended_why: None,
    };
    let row = row! {
        project_id: grant.project,
        id: grant.id,
        user_id: grant.granter.user(),
        key_id: grant.granter.key(),
        client_id: grant.client_id.as_str(),
        client_name: grant.client_name.as_str(),
        surface: grant.surface.path(),
        scope: write_scope(grant.permissions),
        created_at: now,
        expires_at: grant.expires_at,
    };
    tx.insert("oauth_grants", row).await?;
    Ok(grant)
}

impl Grants {
    /// The grants of a project, newest first.
    #[kernel::boxed]
    pub async fn list(&self, project: ProjectId, filter: GrantFilter) -> Result<Page<Grant>, GrantError> {
        let sql = page_sql!(
            select columns!(),
            bytes "octet_length(client_id) + octet_length(client_name)",
            from "oauth_grants",
            where "project_id = $1 and ($2 is null or id < $2) and ($3 is null or user_id = $3) \
                   and ($4 is null or key_id = $4) and ($5 = 0 or (ended_at is null and expires_at > $6))",
            by id "desc",
            limit "$7"
        );
        self.noted().await;
        let only_active = i64::from(filter.is_active);
        let (user, key) = (filter.granter.and_then(Granter::user), filter.granter.and_then(Granter::key));
        let args = args![project, filter.cursor, user, key, only_active, self.0.clock.now(), filter.size.rows()];
        let rows = self.0.db.all(sql, args).await?;
        Ok(filter.size.read(&rows, Grant::read)?)
    }

    /// What somebody let clients do and is in force, in every project, newest first.
    #[kernel::boxed]
    pub async fn given_by(&self, granter: Granter) -> Result<Vec<Grant>, GrantError> {
        let sql = concat!(
            "select ",
            columns!(),
            " from oauth_grants where (user_id = $1 or key_id = $2) and ended_at is null and expires_at > $3 order by id desc limit 500"
        );
        self.noted().await;
        let rows = self.0.db.all(sql, args![granter.user(), granter.key(), self.0.clock.now()]).await?;
        Ok(rows.iter().map(Grant::read).collect::<Result<_, _>>()?)
    }

    /// Ends a grant that somebody gave themselves.
    #[kernel::boxed]
    pub async fn end_own(&self, granter: Granter, id: GrantId) -> Result<Grant, GrantError> {
        let sql = "select project_id from oauth_grants where id = $1 and (user_id = $2 or key_id = $3)";
        let row = self.0.db.optional(sql, args![id, granter.user(), granter.key()]).await?.ok_or(GrantError::NotFound)?;
        self.end(row.get("project_id")?, id, EndedWhy::Revoked).await
    }

    #[kernel::boxed]
    pub async fn read(&self, project: ProjectId, id: GrantId) -> Result<Grant, GrantError> {
        let sql = concat!("select ", columns!(), " from oauth_grants where project_id = $1 and id = $2");
        self.noted().await;
        let row = self.0.db.optional(sql, args![project, id]).await?.ok_or(GrantError::NotFound)?;
        Ok(Grant::read(&row)?)
    }

    /// Ends a grant with all its tokens; ending it again changes nothing.
    #[kernel::boxed]
    pub async fn end(&self, project: ProjectId, id: GrantId, why: EndedWhy) -> Result<Grant, GrantError> {
        let sql = concat!(
            "update oauth_grants set ended_why = coalesce(ended_why, $3), ended_at = coalesce(ended_at, $4) where project_id = $1 and id = $2 returning ",
            columns!()
        );
        let row = self.0.db.returning(sql, args![project, id, why.name(), self.0.clock.now()]).await?.ok_or(GrantError::NotFound)?;
        self.forget_known();
        if why != EndedWhy::Revoked {
            tracing::warn!(grant = %id, why = why.name(), "a grant was ended");
        }
        Ok(Grant::read(&row)?)
    }
}
