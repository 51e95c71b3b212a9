//! Rows of user sessions. Every query names the project, but for a token, which names its session.

use std::time::Duration;

use kernel::key::KeyHash;
use kernel::{EndUserId, ProjectId, Timestamp, UserSessionId};
use serde_json::Value;
use store::{PageSize, Row, StoreError, Tx, args, page_sql, row};

use crate::{UserSession, UserSessionError, UserSessions};

macro_rules! columns {
    () => {
        "project_id, id, end_user_id, settings, config_version, made_by_key_id, made_by_user_id, created_at, expires_at, revoked_at"
    };
}

/// How long a session that is over stays in the list, and how many are removed at once.
const KEPT_FOR: Duration = Duration::from_hours(24 * 30);
const BATCH: i64 = 1000;

/// Which sessions to list.
#[derive(Clone, Debug, Default)]
pub struct UserSessionFilter {
    pub end_user: Option<EndUserId>,
    /// Only those that have not ended.
    pub only_open: bool,
    pub limit: Option<i64>,
    pub cursor: Option<UserSessionId>,
}

/// One page of sessions, newest first.
#[derive(Clone, Debug)]
pub struct UserSessionPage {
    pub sessions: Vec<UserSession>,
    pub cursor: Option<UserSessionId>,
}

fn read(row: &Row) -> Result<UserSession, StoreError> {
    let settings: Value = row.get("settings")?;
    Ok(UserSession {
        id: row.get("id")?,
        project: row.get("project_id")?,
        owner: row.get::<Option<EndUserId>>("end_user_id")?.into(),
        config_version: row.get("config_version")?,
        settings: serde_json::from_value(settings).map_err(|_| StoreError::Column("settings".to_owned()))?,
        made_by: row.get("made_by_key_id")?,
        made_by_user: row.get("made_by_user_id")?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        revoked_at: row.get("revoked_at")?,
    })
}

pub(crate) async fn insert(tx: &mut Tx, session: &UserSession, token: Option<&KeyHash>) -> Result<(), UserSessionError> {
    let settings = serde_json::to_value(&session.settings).map_err(|error| UserSessionError::Settings(error.to_string()))?;
    let row = row! {
        project_id: session.project,
        id: session.id,
        end_user_id: session.end_user(),
        token_hash: token.map(|token| token.as_bytes().to_vec()),
        settings: &settings,
        config_version: session.config_version,
        made_by_key_id: session.made_by,
        made_by_user_id: session.made_by_user,
        created_at: session.created_at,
        expires_at: session.expires_at,
    };
    Ok(tx.insert("user_sessions", row).await?)
}

impl UserSessions {
    pub(crate) async fn by_token(&self, token: &KeyHash) -> Result<Option<UserSession>, StoreError> {
        let sql = concat!("select ", columns!(), " from user_sessions where token_hash = $1");
        self.db.optional(sql, args![token.as_bytes()]).await?.as_ref().map(read).transpose()
    }

    /// Also one that has ended.
    #[kernel::boxed]
    pub async fn find(&self, project: ProjectId, id: UserSessionId) -> Result<UserSession, UserSessionError> {
        let sql = concat!("select ", columns!(), " from user_sessions where project_id = $1 and id = $2");
        let row = self.db.optional(sql, args![project, id]).await?.ok_or(UserSessionError::NotFound)?;
        Ok(read(&row)?)
    }

    #[kernel::boxed]
    pub async fn list(&self, project: ProjectId, filter: &UserSessionFilter) -> Result<UserSessionPage, UserSessionError> {
        let page = PageSize::asked(filter.limit);
        let sql = page_sql!(
            select columns!(),
            bytes "octet_length(settings)",
            from "user_sessions",
            where "project_id = $1 and ($2 is null or id < $2) and ($3 is null or end_user_id = $3) \
                   and (not $4 or (revoked_at is null and expires_at > $5))",
            by id "desc",
            limit "$6"
        );
        let args = args![project, filter.cursor, filter.end_user, filter.only_open, self.clock.now(), page.rows()];
        let rows = self.db.all(sql, args).await?;
        let page = page.read(&rows, read)?;
        let cursor = page.cursor(|last| last.id);
        Ok(UserSessionPage { sessions: page.rows, cursor })
    }

    /// Ends a session; ending it again changes nothing.
    #[kernel::boxed]
    pub async fn revoke(&self, project: ProjectId, id: UserSessionId) -> Result<UserSession, UserSessionError> {
        let sql = concat!(
            "update user_sessions set revoked_at = coalesce(revoked_at, $3) where project_id = $1 and id = $2 returning ",
            columns!()
        );
        let row = self.db.returning(sql, args![project, id, self.clock.now()]).await?.ok_or(UserSessionError::NotFound)?;
        Ok(read(&row)?)
    }

    /// How many sessions of an end user hold that have a token.
    pub(crate) async fn count(&self, project: ProjectId, end_user: EndUserId, now: Timestamp) -> Result<i64, StoreError> {
        let sql = "select count(*) as found from user_sessions where project_id = $1 and end_user_id = $2 and config_version is null \
                   and revoked_at is null and expires_at > $3";
        self.db.optional(sql, args![project, end_user, now]).await?.map_or(Ok(0), |row| row.get("found"))
    }

    pub(crate) async fn of_end_user(&self, project: ProjectId, end_user: EndUserId) -> Result<Vec<UserSession>, StoreError> {
        let sql = concat!("select ", columns!(), " from user_sessions where project_id = $1 and end_user_id = $2 order by id desc");
        self.db.all(sql, args![project, end_user]).await?.iter().map(read).collect()
    }

    pub(crate) async fn remove_all(&self, project: ProjectId, end_user: EndUserId) -> Result<u64, StoreError> {
        self.db.execute("delete from user_sessions where project_id = $1 and end_user_id = $2", args![project, end_user]).await
    }

    /// Removes some of the sessions whose time was over a month ago; how many.
    #[kernel::boxed]
    pub async fn forget_ended(&self) -> Result<u64, StoreError> {
        let sql = "delete from user_sessions where id in (select id from user_sessions where expires_at < $1 order by expires_at limit $2)";
        self.db.execute(sql, args![self.clock.now().minus(KEPT_FOR), BATCH]).await
    }
}
