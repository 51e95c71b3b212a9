//! Composio's HTTP API over our own domains: its shapes, ids, slugs, versions, statuses and errors, so that its SDKs work here by their base
//! URL alone. It calls the domains and holds none of their rules; it must never know HTTP, keys or how an integration is called.
//!
//! Each resource is a file that adds methods to `ComposioApi`. They take a `Scope` and what was asked, and answer with a type that
//! serializes and documents itself, or with an `ApiError`.

pub mod auth_configs;
pub mod choice;
pub mod compare;
pub mod connected_accounts;
mod error;
pub mod execute;
pub mod ids;
pub mod names;
pub mod page;
pub mod schema;
pub mod schemes;
pub mod sessions;
pub mod toolkits;
pub mod tools;
pub mod trigger_instances;
pub mod trigger_types;
mod users;
pub mod versions;
pub mod webhooks;

use accounts::Accounts;
use calls::Calls;
use catalog::Catalog;
use connections::Connections;
use definitions::Definitions;
use discovery::Discovery;
use egress::Egress;
use end_users::EndUsers;
use kernel::seal::Sealer;
use kernel::{Clock, Shared};
use store::Db;
use triggers::Triggers;
use user_sessions::UserSessions;
use work::Workers;

pub use error::{ApiError, Refusal};
pub use sessions::session_mcp;
pub use users::DEFAULT_USER;

/// Composio's API of a deployment.
#[derive(Clone, Debug)]
pub struct ComposioApi(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    parts: Parts,
    names: names::NamesCache,
    configs: auth_configs::ConfigCache,
    sending: webhooks::Sending,
}

/// What it is made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub workers: Workers,
    pub accounts: Accounts,
    pub catalog: Catalog,
    pub connections: Connections,
    pub end_users: EndUsers,
    pub user_sessions: UserSessions,
    pub calls: Calls,
    pub definitions: Definitions,
    pub discovery: Discovery,
    pub triggers: Triggers,
    pub egress: Egress,
    /// Where others reach this server, without a slash at its end.
    pub public_url: String,
}

impl ComposioApi {
    pub fn new(parts: Parts) -> Self {
        let configs = auth_configs::cache(&parts.db);
        Self(Shared::new(Inner { parts, names: names::NamesCache::default(), configs, sending: webhooks::Sending::default() }))
    }

    /// The domains that this is made of.
    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// The task that tells webhooks what happens.
    pub(crate) fn sending(&self) -> &webhooks::Sending {
        &self.0.sending
    }
}

/// Seals what is kept here with the current key.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, ApiError> {
    Ok(webhooks::reseal(db, sealer).await? + auth_configs::reseal(db, sealer).await?)
}
