//! What can go wrong with triggers.

use std::fmt;

use connections::ConnectionError;
use store::StoreError;
use workflows::WorkflowError;

/// What a request may name and not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    Provider,
    Subscription,
    Schedule,
    Delivery,
    Event,
}

impl fmt::Display for RowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Provider => "Provider",
            Self::Subscription => "Subscription",
            Self::Schedule => "Schedule",
            Self::Delivery => "Trigger delivery",
            Self::Event => "Event",
        })
    }
}

/// A failure of the triggers.
#[derive(Debug, thiserror::Error)]
pub enum TriggerError {
    #[error("{0} not found")]
    NotFound(RowKind),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    BadRequest(String),
    /// A filter that cannot be taken.
    #[error("{0}")]
    Filter(String),
    /// A reference that leads nowhere, or nowhere certain.
    #[error("The target cannot be used: {0}")]
    Reference(String),
    #[error("A subscription for this connection, event and configuration already exists.")]
    Taken { subscription: Option<String>, trigger: Option<String> },
    #[error("{0}")]
    State(String),
    #[error("{0}")]
    Upstream(String),
    #[error("{0}")]
    UpstreamServer(String),
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error("a secret could not be opened: {0}")]
    Sealed(#[from] kernel::seal::SealError),
    #[error(transparent)]
    Full(#[from] store::Full),
    #[error("too much is coming in; try again in a moment")]
    Busy,
    #[error(transparent)]
    Work(#[from] work::WorkError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WorkflowError> for TriggerError {
    fn from(error: WorkflowError) -> Self {
        match error {
            WorkflowError::Store(error) => Self::Store(error),
            other => Self::Reference(other.to_string()),
        }
    }
}
