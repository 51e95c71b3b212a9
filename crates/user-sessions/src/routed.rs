//! Sessions of the tool router. They have a config in place of settings, every version of which is kept, and no token: whoever uses one shows
//! a key of the project. They end a while after they were last used.

use std::time::Duration;

use kernel::{AccountOwner, ProjectId, Scope, Timestamp, UserSessionId};
use serde_json::Value;
use store::{Row, StoreError, Tx, args, row};

use crate::{LONGEST_LIFETIME, UserSession, UserSessionError, UserSessionSettings, UserSessions, rows};

/// How many of one owner are kept; those that were not used for the longest make room for others.
pub const MOST_ROUTED: i64 = 1000;
/// How many versions of a config are kept, and how many bytes one may have.
pub const MOST_VERSIONS: i64 = 200;
pub const MAX_CONFIG: usize = 64 << 10;
/// How many make room at once.
const BATCH: i64 = 100;
/// How exactly it is known when one was last used: a row is not written for every call.
const USED_WITHIN: Duration = Duration::from_hours(24);

/// A session of the tool router with the config that is in force.
#[derive(Clone, Debug)]
pub struct RoutedSession {
    pub session: UserSession,
    pub config: SessionConfig,
}

/// One version of a config.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionConfig {
    pub version: i64,
    pub config: Value,
    pub created_at: Timestamp,
}

fn read_config(row: &Row) -> Result<SessionConfig, StoreError> {
    Ok(SessionConfig { version: row.get("version")?, config: row.get("config")?, created_at: row.get("created_at")? })
}

impl UserSessions {
    /// Makes a session of the tool router for whom the scope acts.
    #[kernel::boxed]
    pub async fn create_routed(&self, scope: Scope, config: Value) -> Result<RoutedSession, UserSessionError> {
        check_size(&config)?;
        let now = self.clock.now();
        let session = UserSession {
            id: UserSessionId::new(),
            project: scope.project,
            owner: scope.acts_for,
            settings: UserSessionSettings::default(),
            config_version: Some(1),
            made_by: scope.key,
            made_by_user: scope.user,
            created_at: now,
            expires_at: now.plus(LONGEST_LIFETIME),
            revoked_at: None,
        };
        let config = SessionConfig { version: 1, config, created_at: now };
        let mut tx = self.db.begin().await?;
        make_room(&mut tx, &session).await?;
        rows::insert(&mut tx, &session, None).await?;
        insert_config(&mut tx, &session, &config).await?;
        tx.commit().await?;
        Ok(RoutedSession { session, config })
    }

    /// A session of the tool router that holds; it is used with that.
    #[kernel::boxed]
    pub async fn routed(&self, project: ProjectId, id: UserSessionId) -> Result<RoutedSession, UserSessionError> {
        let mut session = self.find(project, id).await?;
        let now = self.clock.now();
        let Some(version) = session.config_version.filter(|_| session.holds(now)) else { return Err(UserSessionError::NotFound) };
        let sql = "select version, config, created_at from session_configs where project_id = $1 and session_id = $2 and version = $3";
        let row = self.db.optional(sql, args![project, id, version]).await?.ok_or(UserSessionError::NotFound)?;
        if session.expires_at < now.plus(LONGEST_LIFETIME).minus(USED_WITHIN) {
            session.expires_at = now.plus(LONGEST_LIFETIME);
            let sql =
                "update user_sessions set expires_at = $3 where project_id = $1 and id = $2 and revoked_at is null and expires_at > $4";
            self.db.execute(sql, args![project, id, session.expires_at, now]).await?;
        }
        Ok(RoutedSession { config: read_config(&row)?, session })
    }

    /// Gives a session its next config, if the one that is in force is still the one that was read.
    #[kernel::boxed]
    pub async fn reconfigure(&self, read: &RoutedSession, config: Value) -> Result<RoutedSession, UserSessionError> {
        check_size(&config)?;
        let (session, before, now) = (&read.session, read.config.version, self.clock.now());
        let config = SessionConfig { version: before + 1, config, created_at: now };
        let mut tx = self.db.begin().await?;
        let sql = "update user_sessions set config_version = $4 \
                   where project_id = $1 and id = $2 and config_version = $3 and revoked_at is null and expires_at > $5";
        if tx.execute(sql, args![session.project, session.id, before, config.version, now]).await? == 0 {
            drop(tx);
            let found = self.routed(session.project, session.id).await?;
            return Err(UserSessionError::Changed(found.config.version));
        }
        insert_config(&mut tx, session, &config).await?;
        let sql = "delete from session_configs where project_id = $1 and session_id = $2 and version <= $3";
        tx.execute(sql, args![session.project, session.id, config.version - MOST_VERSIONS]).await?;
        tx.commit().await?;
        let session = UserSession { config_version: Some(config.version), ..session.clone() };
        Ok(RoutedSession { session, config })
    }

    /// The configs that a session had, newest first.
    #[kernel::boxed]
    pub async fn config_history(&self, project: ProjectId, id: UserSessionId) -> Result<Vec<SessionConfig>, UserSessionError> {
        let sql = "select version, config, created_at from session_configs where project_id = $1 and session_id = $2 order by version desc";
        let rows = self.db.all(sql, args![project, id]).await?;
        Ok(rows.iter().map(read_config).collect::<Result<_, _>>()?)
    }
}

fn check_size(config: &Value) -> Result<(), UserSessionError> {
    if kernel::json::size(config, MAX_CONFIG + 1) > MAX_CONFIG {
        return Err(UserSessionError::Settings(format!("The config of a session may have {MAX_CONFIG} bytes.")));
    }
    Ok(())
}

async fn insert_config(tx: &mut Tx, session: &UserSession, config: &SessionConfig) -> Result<(), StoreError> {
    let row = row! {
        project_id: session.project,
        session_id: session.id,
        version: config.version,
        config: &config.config,
        created_at: config.created_at,
    };
    tx.insert("session_configs", row).await
}

async fn make_room(tx: &mut Tx, session: &UserSession) -> Result<(), StoreError> {
    let sql = "delete from user_sessions where project_id = $1 and id in \
               (select id from user_sessions where project_id = $1 and config_version is not null and \
                (end_user_id = $2 or ($2 is null and end_user_id is null)) order by expires_at desc, id desc limit $3 offset $4)";
    tx.execute(sql, args![session.project, session.owner.end_user(), BATCH, MOST_ROUTED - 1]).await?;
    Ok(())
}

impl UserSession {
    /// Whether it is one of the tool router, which is used at its own addresses.
    pub fn is_routed(&self) -> bool {
        self.config_version.is_some()
    }

    /// The end user that it is for; none where it is the project's own.
    pub fn end_user(&self) -> Option<kernel::EndUserId> {
        self.owner.end_user()
    }

    /// What a key may do in this session: what it may do anyway, with the accounts of whom the session is for.
    pub fn within(&self, scope: Scope) -> Scope {
        match self.owner {
            AccountOwner::Project => scope,
            AccountOwner::EndUser(end_user) => scope.for_end_user(end_user),
        }
    }
}
