//! One connection, as the rest of the house sees it: without its secrets.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kernel::{AccountOwner, AppId, AuthConfigId, ConnectionId, ProjectId, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use crate::Usable;

/// A connected account, or one that waits to be.
#[derive(Clone, Debug)]
pub struct Connection {
    pub id: ConnectionId,
    pub project: ProjectId,
    /// Whose account it is. It never changes.
    pub owner: AccountOwner,
    pub slug: String,
    /// What an end user's account is called among those of the same user.
    pub alias: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub provider: String,
    pub integration: String,
    pub tags: Option<Value>,
    pub meta: Option<Value>,
    /// Whether it is switched on.
    pub is_active: bool,
    pub is_valid: bool,
    /// The name of the scheme in the catalog.
    pub auth_scheme: Option<String>,
    /// Whose account it is: `{id, label}`.
    pub account: Option<Value>,
    /// Why it is not valid.
    pub reason: Option<String>,
    /// Since when its service refuses the credential.
    pub failing_since: Option<Timestamp>,
    /// What there is to say about that, for people.
    pub failure: Option<String>,
    /// When it was last used, to the hour.
    pub last_used_at: Option<Timestamp>,
    /// The OAuth scopes that its credential was granted, where they are known.
    pub granted: Option<Vec<String>>,
    /// The auth config that it was made with, where there was one.
    pub auth_config: Option<AuthConfigId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: Option<Uuid>,
    pub updated_by: Option<Uuid>,
    /// What the user told us to find the provider by, such as the name of a shop; nothing secret.
    pub(crate) asked: BTreeMap<String, String>,
    /// OAuth scopes that were asked for in place of the usual ones.
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) app: Option<AppId>,
    /// The account at a provider that connects accounts itself.
    pub(crate) remote: Option<String>,
    pub(crate) credentials: Option<Vec<u8>>,
    pub(crate) refresh_at: Option<Timestamp>,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) generation: i64,
    /// Until when a person may finish the open attempt; negative, when it was used up.
    pub(crate) attempt_until: Option<Timestamp>,
    /// Its credential, once somebody opened it; shared by the copies of one row that was read.
    pub(crate) opened: Arc<OnceLock<Arc<Usable>>>,
}

impl Connection {
    pub fn is_no_auth(&self) -> bool {
        self.auth_scheme.as_deref() == Some("none")
    }

    /// Whether somebody revoked it, as against an authorization that failed or is under way.
    pub fn is_revoked(&self) -> bool {
        self.reason.as_deref() == Some("revoked")
    }

    /// Until when a person may finish what was begun, as long as nobody did.
    pub fn open_until(&self) -> Option<Timestamp> {
        self.attempt_until.filter(|until| until.micros() > 0)
    }

    /// What was told to find the provider by, such as the name of a shop; nothing secret.
    pub fn known_fields(&self) -> &BTreeMap<String, String> {
        &self.asked
    }

    /// Whether calls can be made through it.
    pub fn is_usable(&self) -> bool {
        self.is_active && self.is_valid && (self.is_no_auth() || self.credentials.is_some())
    }
}
