//! What can go wrong with a call.

use std::sync::Arc;

use connections::ConnectionError;
use kernel::call_ref::CallRefError;
use store::StoreError;
use work::WorkError;
use workflows::WorkflowError;

use crate::Approval;

/// A call that did not come to a result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Ref(#[from] CallRefError),
    #[error("Unknown reserved Agenta tool handler: {0}")]
    UnknownReserved(String),
    /// An op that is a request of its own, which runners make themselves.
    #[error("Unknown reserved Agenta tool handler: {call_ref}. Call it at {address}.")]
    NotHere { call_ref: String, address: String },
    #[error("{0}")]
    UnknownOp(String),
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
    /// The key may call tools, but not what this one does.
    #[error("This key lacks `{0}`, which this tool needs.")]
    Forbidden(kernel::Permission),
    #[error("{0}")]
    Denied(String),
    /// The call waits for a person's word.
    #[error("The call of `{}` waits for approval {}.", .0.call_ref, .0.id)]
    Waiting(Box<Approval>),
    #[error("Call not found")]
    NotFound,
    #[error("Approval not found")]
    ApprovalNotFound,
    #[error("Notice not found")]
    NoticeNotFound,
    #[error("{0}")]
    NoticeInvalid(String),
    #[error("A project may have {0} notices; delete one first.")]
    TooManyNotices(usize),
    #[error("This approval is {0} already.")]
    Decided(&'static str),
    #[error("{0}")]
    Arguments(String),
    #[error("{0}")]
    Unusable(String),
    #[error("{0}")]
    BadFilter(String),
    #[error("Connection not found: {0}")]
    ConnectionNotFound(String),
    #[error("Action not found: {0}")]
    ActionNotFound(String),
    #[error(transparent)]
    Connection(ConnectionError),
    /// `uncertain` when the call may have taken effect all the same.
    #[error("{message}")]
    Upstream { message: String, uncertain: bool },
    #[error("{message}")]
    UpstreamServer { message: String },
    /// The project keeps as much as it may.
    #[error(transparent)]
    Full(#[from] store::Full),
    /// The end user made as many calls as the project allows.
    #[error("{0}")]
    UserLimit(String),
    #[error("{0}")]
    KeyReused(String),
    #[error("{0}")]
    InProgress(String),
    #[error("The cursor is not one of ours; leave it out to start at the newest call.")]
    BadCursor,
    #[error("the call was interrupted: {0}")]
    Interrupted(String),
    /// Nothing was sent: a call that leaves no trace is not made.
    #[error("The call was not made, because it could not be recorded first: the database {}.", .0.trouble().unwrap_or_else(|| "failed".to_owned()))]
    NotRecorded(Arc<StoreError>),
    /// What is kept of a call does not open.
    #[error("what is kept of this call does not open: {0}")]
    Sealed(#[from] kernel::seal::SealError),
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CallError {
    pub(crate) fn invalid(reason: &dyn std::fmt::Display) -> Self {
        Self::Arguments(format!("Invalid arguments: {reason}"))
    }

    /// Whether the service was certainly not asked to do anything.
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(
            self,
            Self::Connection(_) | Self::Arguments(_) | Self::Unusable(_) | Self::InProgress(_) | Self::NotRecorded(_) | Self::Work(_)
        )
    }

    /// Whether nobody can tell if the tool did its work.
    pub fn is_uncertain(&self) -> bool {
        matches!(self, Self::Upstream { uncertain: true, .. } | Self::UpstreamServer { .. } | Self::Interrupted(_))
    }

    /// The failure of the database behind it, which is nobody's mistake and is over when the database is back.
    pub fn into_store(self) -> Result<StoreError, Self> {
        match self {
            Self::Store(error) => Ok(error),
            Self::Connection(error) => error.into_store().map_err(Self::Connection),
            other => Err(other),
        }
    }
}

impl From<ConnectionError> for CallError {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}
