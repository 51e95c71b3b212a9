//! The HTTP edge: routes per resource, keys to scopes, errors to responses, the OpenAPI document and the pages. It holds no rules and no
//! queries; it must never reach a provider or a table itself.

#![cfg_attr(not(feature = "describe"), expect(unused_imports, reason = "some are named only in what describes a route"))]

pub mod access;
pub mod addresses;
pub mod admin;
pub mod agents;
pub mod aliases;
pub mod catalog;
pub mod composio_api;
pub mod connections;
mod dashboard;
#[cfg(feature = "describe")]
mod description;
pub mod edge;
pub mod end_users;
pub mod environments;
pub mod grants;
pub mod histories;
pub mod keys;
mod listen;
pub mod mcp;
pub mod model_api;
pub mod oauth;
pub mod operations;
pub mod pages;
pub mod people;
pub mod project;
mod routes;
pub mod secrets;
mod service;
#[cfg(feature = "describe")]
pub mod shapes;
pub mod tools;
pub mod triggers;
pub mod workflows;

use std::time::Duration;

use ::agents::Agents;
use ::catalog::Catalog;
use ::composio_api::ComposioApi;
use ::connections::Connections;
use ::end_users::EndUsers;
use ::grants::Grants;
use ::imports::Imports;
use ::mcp::Mcp;
use ::people::People;
use ::secrets::Secrets;
use ::triggers::Triggers;
use ::workflows::Workflows;
use accounts::Accounts;
use agent_runs::AgentRuns;
use calls::Calls;
use definitions::Definitions;
use discovery::Discovery;
use kernel::key::KeyHash;
use kernel::signed::Signer;
use kernel::{Clock, Shared, Timestamp, WeakShared};
use store::Db;
use user_sessions::UserSessions;
use work::Workers;

#[cfg(feature = "describe")]
pub use description::openapi;
pub use edge::Peer;
pub use edge::end_user::is_for_end_users;
pub use listen::{ConnectionLimits, listen};
pub use operations::docs::OPENAPI;
pub use service::Service;

/// What every handler may use.
#[derive(Clone, Debug)]
pub struct App(Shared<Parts>);

/// The domains and settings behind the edge.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub workers: Workers,
    pub accounts: Accounts,
    pub people: People,
    pub grants: Grants,
    pub catalog: Catalog,
    pub connections: Connections,
    pub end_users: EndUsers,
    pub user_sessions: UserSessions,
    pub workflows: Workflows,
    pub imports: Imports,
    pub secrets: Secrets,
    pub calls: Calls,
    pub definitions: Definitions,
    pub discovery: Discovery,
    pub triggers: Triggers,
    pub agents: Agents,
    pub agent_runs: AgentRuns,
    pub composio_api: ComposioApi,
    pub mcp: Mcp,
    pub signer: Signer,
    pub operator_key: KeyHash,
    pub metrics: operations::Metrics,
    pub readiness: operations::health::DatabaseProbe,
    /// When this process began to serve.
    pub started_at: Timestamp,
    pub options: Options,
}

/// A setting of the process, as its operator may see it.
#[derive(Clone, Debug)]
pub struct Setting {
    pub name: &'static str,
    /// `set` or `not set`, where it is secret.
    pub value: String,
    /// `default`, `flag`, `env` or `file`.
    pub source: &'static str,
}

/// Settings of the edge.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where others reach this server.
    pub public_url: String,
    /// The largest request body, in bytes.
    pub body_limit: usize,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// Origins that browsers may call from; empty means none.
    pub cors_origins: Vec<String>,
    /// Where runners take the calls of resolved tools.
    pub callback: url::Url,
    /// The origin of the web application that opens connect windows; it is told how they ended.
    pub web_origin: Option<String>,
    /// Who gives out access tokens for `/mcp`, for clients that look for one.
    pub authorization_server: Option<String>,
    /// Addresses of proxies, which say where requests really come from.
    pub proxies: Vec<ipnet::IpNet>,
    /// Whether the fixtures of the MCP conformance suite are there.
    pub mcp_conformance: bool,
    /// What is in force, for the operator.
    pub settings: Vec<Setting>,
}

impl Options {
    /// Where others reach this server, ready for a path.
    pub(crate) fn public_url(&self) -> &str {
        self.public_url.trim_end_matches('/')
    }

    /// How long a run may take within one request.
    pub(crate) fn run_limit(&self) -> Duration {
        run_limit(self.request_timeout)
    }
}

/// A little less than the whole request has, so that a run that is too long can still be answered as one.
fn run_limit(request: Duration) -> Duration {
    request.saturating_sub(Duration::from_secs(1)).max(request / 2)
}

impl App {
    pub fn new(parts: Parts) -> Self {
        Self(Shared::new(parts))
    }

    /// The same for what the edge itself holds, without keeping it alive.
    pub(crate) fn downgrade(&self) -> WeakShared<Parts> {
        self.0.downgrade()
    }

    pub(crate) fn upgrade(weak: &WeakShared<Parts>) -> Option<Self> {
        weak.upgrade().map(Self)
    }
}

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
