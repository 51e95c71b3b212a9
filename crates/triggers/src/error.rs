//! What can go wrong with triggers.

use connections::ConnectionError;
use store::StoreError;
use workflows::WorkflowError;

/// A failure of the triggers.
#[derive(Debug, thiserror::Error)]
pub enum TriggerError {
    #[error("{0} not found")]
    NotFound(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    BadRequest(String),
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
    #[error("too much is coming in; try again in a moment")]
    Busy,
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
