//! The ports: what a provider does for connections, and who uses them.

use catalog::Integration;
use catalog::auth::{AuthScheme, Fields, Hosted};
use egress::EgressError;
use futures_util::future::BoxFuture;
use kernel::{ConnectionId, ProjectId, Timestamp};
use store::StoreError;

use crate::Connection;

/// A credential to be proven.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    pub integration: &'a Integration,
    pub scheme: &'a AuthScheme,
    pub fields: &'a Fields,
}

/// What a proof brought to light.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Whether the service was asked with the credential; one that has no call for that is not.
    pub is_checked: bool,
    pub id: Option<String>,
    pub label: Option<String>,
    /// Fields that the provider named, to be kept with the credential.
    pub fields: Vec<(String, String)>,
}

/// Why a credential was not proven.
#[derive(Debug)]
pub enum ProbeError {
    /// The provider says no.
    Refused(String),
    /// The provider could not be asked.
    Unreachable(EgressError),
    /// The provider failed.
    Server(u16),
}

/// What a provider does for connections.
pub trait Connector: Send + Sync + std::fmt::Debug {
    /// Proves a credential with a cheap call, where the provider has one, and tells whose it is.
    fn prove<'a>(&'a self, probe: Probe<'a>) -> BoxFuture<'a, Result<Identity, ProbeError>>;
}

/// An account that a provider is to connect on a page of its own.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    pub project: ProjectId,
    /// Names this attempt and no other, at the provider too.
    pub mark: &'a str,
    pub integration: &'a Integration,
    pub scheme: &'a Hosted,
    /// The OAuth app to use in place of the provider's own.
    pub app: Option<OwnApp<'a>>,
    pub scopes: Option<&'a [String]>,
    /// Where the person is sent back to.
    pub callback_url: &'a str,
}

/// An OAuth app that somebody registered at the service.
#[derive(Clone, Copy)]
pub struct OwnApp<'a> {
    pub client_id: &'a str,
    pub client_secret: &'a str,
}

impl std::fmt::Debug for OwnApp<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnApp").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// An account that waits for a person.
#[derive(Clone, Debug)]
pub struct Begun {
    /// The provider's name for the account.
    pub account: String,
    pub redirect_url: String,
}

/// How an account stands at its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Works,
    /// A person has not finished yet.
    Waits,
    /// It does not work, and why; or it is not there at all.
    Broken(String),
}

/// An account as its provider lists it.
#[derive(Clone, Debug)]
pub struct RemoteAccount {
    pub id: String,
    pub standing: Standing,
    pub created_at: Option<Timestamp>,
}

/// Why a provider did not do what was asked.
#[derive(Debug)]
pub enum HostError {
    /// It says no, or answered with something that is no answer.
    Refused(String),
    /// It failed.
    Server(u16),
    /// It could not be reached, or not in time.
    Unreachable(EgressError),
}

/// A provider that connects accounts itself and keeps their credentials.
pub trait Host: Send + Sync + std::fmt::Debug {
    /// Begins to connect an account. If it fails, nothing that was made on the way is left.
    fn begin<'a>(&'a self, start: Start<'a>) -> BoxFuture<'a, Result<Begun, HostError>>;

    fn standing<'a>(&'a self, account: &'a str) -> BoxFuture<'a, Result<Standing, HostError>>;

    /// Removes an account. One that is gone already is as good as removed.
    fn forget<'a>(&'a self, account: &'a str) -> BoxFuture<'a, Result<(), HostError>>;

    /// Every account of a project that the provider has.
    fn accounts(&self, project: ProjectId) -> BoxFuture<'_, Result<Vec<RemoteAccount>, HostError>>;
}

/// One of those who use a connection, as people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionUser {
    /// What it is, such as `agent`.
    pub kind: &'static str,
    pub id: String,
    pub name: String,
}

/// Somebody who uses connections.
pub trait Consumer: Send + Sync + std::fmt::Debug {
    /// What is counted, such as `tools`.
    fn kind(&self) -> &'static str;

    fn count(&self, project: ProjectId, connection: ConnectionId) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// Who would miss the connection, by name. A consumer that only counts names nobody.
    fn users<'a>(&'a self, _: &'a Connection) -> BoxFuture<'a, Result<Vec<ConnectionUser>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The connection was connected, or works again. `former` is the row as it was, where another account was behind it: its credential can
    /// still be used.
    fn connected<'a>(&'a self, _: &'a Connection, _former: Option<&'a Connection>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    /// The connection is revoked or gone; `why` is for people.
    fn released<'a>(&'a self, _: ProjectId, _: ConnectionId, _why: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
}
