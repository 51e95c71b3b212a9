//! The ports: what a provider does for connections, and who uses them.

use catalog::Integration;
use catalog::auth::{AuthScheme, Fields};
use egress::EgressError;
use futures_util::future::BoxFuture;
use kernel::{ConnectionId, ProjectId};
use store::StoreError;

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

/// Somebody who uses connections.
pub trait Consumer: Send + Sync + std::fmt::Debug {
    /// What is counted, such as `tools`.
    fn kind(&self) -> &'static str;

    fn count(&self, project: ProjectId, connection: ConnectionId) -> BoxFuture<'_, Result<i64, StoreError>>;

    /// The connection is revoked or gone; `why` is for people.
    fn released<'a>(&'a self, _: ProjectId, _: ConnectionId, _why: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
}
