//! User sessions: what one end user may use for a while, through a token of its own or through the tool router. It keeps them and says
//! whether they still hold; it must never know how a tool is found or called, nor what a config of the tool router says.

mod error;
mod routed;
mod rows;
mod settings;

use std::time::Duration;

use accounts::Accounts;
use end_users::{Export, Forgotten, PersonalError, PersonalRows};
use futures_util::future::BoxFuture;
use kernel::key::{KeyHash, PlainKey};
use kernel::{AccountOwner, Clock, EndUserId, KeyId, Permission, PermissionSet, ProjectId, Scope, Timestamp, UserId, UserSessionId};
use serde_json::json;
use store::{Db, StoreError};

pub use error::UserSessionError;
pub use routed::{MAX_CONFIG, MOST_ROUTED, MOST_VERSIONS, RoutedSession, SessionConfig};
pub use rows::{UserSessionFilter, UserSessionPage};
pub use settings::{SessionTarget, Shown, UserSessionSettings};

/// What tokens begin with.
const PREFIX: &str = "tus";
/// How long a session lasts where nothing is said, and at most.
pub const USUAL_LIFETIME: Duration = Duration::from_hours(24);
pub const LONGEST_LIFETIME: Duration = Duration::from_hours(24 * 90);
/// How many sessions of one end user hold at a time.
pub const MOST_OF_USER: i64 = 100;

/// What a session can do at most; whoever made it must still have it.
const PERMISSIONS: [Permission; 5] =
    [Permission::ViewTools, Permission::RunTools, Permission::ViewAgents, Permission::RunAgents, Permission::RunWorkflows];

/// The sessions of the end users of a deployment.
#[derive(Clone, Debug)]
pub struct UserSessions {
    db: Db,
    clock: Clock,
    accounts: Accounts,
}

/// A session of an end user.
#[derive(Clone, Debug)]
pub struct UserSession {
    pub id: UserSessionId,
    pub project: ProjectId,
    /// For whom it is. Only a session of the tool router can be the project's own.
    pub owner: AccountOwner,
    pub settings: UserSessionSettings,
    /// Which version of its config is in force, where it is one of the tool router.
    pub config_version: Option<i64>,
    /// Whoever made it: a key, or a person's membership.
    pub made_by: KeyId,
    /// That person, where it was one who is signed in.
    pub made_by_user: Option<UserId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

impl UserSession {
    /// Whether it has not ended.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at > now
    }
}

impl UserSessions {
    pub fn new(db: Db, clock: Clock, accounts: Accounts) -> Self {
        Self { db, clock, accounts }
    }

    /// Whether a text can be a token of a session, by its form.
    pub fn is_token(text: &str) -> bool {
        text.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('_'))
    }

    /// Makes a session, and the token that opens it, which is shown this once.
    #[kernel::boxed]
    pub async fn create(
        &self,
        scope: Scope,
        end_user: EndUserId,
        settings: UserSessionSettings,
        lifetime: Duration,
    ) -> Result<(UserSession, PlainKey), UserSessionError> {
        if lifetime.is_zero() || lifetime > LONGEST_LIFETIME {
            return Err(UserSessionError::Lifetime);
        }
        let now = self.clock.now();
        if self.count(scope.project, end_user, now).await? >= MOST_OF_USER {
            return Err(UserSessionError::TooMany(MOST_OF_USER));
        }
        let is_key = self.accounts.authenticator().key_scope(scope.key).await?.is_some();
        let session = UserSession {
            id: UserSessionId::new(),
            project: scope.project,
            owner: AccountOwner::EndUser(end_user),
            settings,
            config_version: None,
            made_by: scope.key,
            made_by_user: scope.user.filter(|_| !is_key),
            created_at: now,
            expires_at: now.plus(lifetime),
            revoked_at: None,
        };
        let token = PlainKey::generate(PREFIX);
        let mut tx = self.db.begin().await?;
        rows::insert(&mut tx, &session, Some(&token.hash())).await?;
        tx.commit().await?;
        Ok((session, token))
    }

    /// The session that a token opens, while it holds, with what may be done in it.
    #[kernel::boxed]
    pub async fn authenticate(&self, token: &str) -> Result<Option<(UserSession, Scope)>, StoreError> {
        let Some(session) = self.by_token(&KeyHash::of(token)).await? else { return Ok(None) };
        let scope = self.scope(&session).await?;
        Ok(scope.map(|scope| (session, scope)))
    }

    /// What may be done in a session now: what it is for, as far as whoever made it still may, with the accounts of its end user. It is named
    /// where a key would be, so that records and approvals tell sessions apart. Nothing once it has ended.
    #[kernel::boxed]
    pub async fn scope(&self, session: &UserSession) -> Result<Option<Scope>, StoreError> {
        if !session.holds(self.clock.now()) {
            return Ok(None);
        }
        let maker = match (session.made_by_user, session.made_by) {
            (Some(user), _) => self.accounts.member_scope(session.project, user).await?,
            (None, key) if key == KeyId::nil() => Some(Scope::operator(session.project)),
            (None, key) => self.accounts.authenticator().key_scope(key).await?.filter(|scope| scope.project == session.project),
        };
        let most: PermissionSet = PERMISSIONS.into_iter().collect();
        Ok(maker.filter(|maker| maker.may(Permission::RunTools)).map(|maker| {
            let scope = Scope { key: KeyId::from(session.id.uuid()), permissions: maker.permissions.and(most), user: None, ..maker };
            session.within(Scope { is_for_agents: false, ..scope })
        }))
    }

    /// Waits until a session has ended.
    #[kernel::boxed]
    pub async fn ended(&self, session: UserSession) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            // A database that does not answer says nothing about the session.
            let ended = match self.find(session.project, session.id).await {
                // One of the tool router is opened with a key, which whoever holds it looks after.
                Ok(found) if found.is_routed() => !found.holds(self.clock.now()),
                Ok(found) => matches!(self.scope(&found).await, Ok(None)),
                Err(UserSessionError::NotFound) => true,
                Err(_) => false,
            };
            if ended {
                return;
            }
        }
    }
}

/// How often a stream looks whether its session still holds.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl PersonalRows for UserSessions {
    fn forget(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Forgotten, PersonalError>> {
        Box::pin(async move { Ok(Forgotten::from([("sessions", self.remove_all(scope.project, end_user).await?)])) })
    }

    fn export(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Export, PersonalError>> {
        Box::pin(async move {
            let mut bodies = Vec::new();
            for row in self.of_end_user(scope.project, end_user).await? {
                let mut body = json!({"id": row.id, "settings": row.settings, "created_at": row.created_at.to_string(),
                    "expires_at": row.expires_at.to_string(), "revoked_at": row.revoked_at.map(|at| at.to_string())});
                if row.is_routed() {
                    let configs =
                        self.config_history(row.project, row.id).await.map_err(|error| PersonalError::Failed(error.to_string()))?;
                    body["configs"] = configs.into_iter().map(|version| version.config).collect();
                }
                bodies.push(body);
            }
            Ok(Export::from([("sessions", bodies.into())]))
        })
    }
}
