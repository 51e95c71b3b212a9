//! What can go wrong with agents.

use calls::CallError;
use catalog::CatalogError;
use connections::ConnectionError;
use kernel::Permission;
use store::StoreError;
use work::WorkError;

use crate::{AppName, Reason, Rejected};

/// A failure of this room.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("Agent not found")]
    NotFound,
    #[error("Agent `{key}` not found{0}", key = .0.key)]
    Unknown(catalog::Missing),
    #[error("There is no app {0}.")]
    UnknownApp(AppName),
    #[error("{0} is not assigned to this agent.")]
    NotAssigned(AppName),
    #[error("Skills not found: {0}. Toolyard keeps no skills.")]
    Skills(String),
    #[error("An agent named `{0}` exists already.")]
    NameTaken(String),
    #[error("{0}")]
    Invalid(String),
    /// Nothing was changed.
    #[error("Nothing was changed: {} of the tools cannot be assigned.", .0.len())]
    Rejected(Vec<Rejected>),
    #[error("Nothing was changed: this key lacks `{0}`, and giving tools to an agent needs it beside `edit_agents`.")]
    MayNotGive(Permission),
    #[error("The agent changed meanwhile; it is at version {0}. Read it again and repeat the change.")]
    Stale(i64),
    #[error("{0}")]
    Refused(Reason),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AgentError {
    /// The failure of the database behind it, which is nobody's mistake and is over when the database is back.
    pub fn into_store(self) -> Result<StoreError, Self> {
        match self {
            Self::Store(error) => Ok(error),
            Self::Call(error) => error.into_store().map_err(Self::Call),
            Self::Catalog(CatalogError::Away(why)) => Ok(StoreError::Away(why)),
            Self::Connection(error) => error.into_store().map_err(Self::Connection),
            other => Err(other),
        }
    }
}
