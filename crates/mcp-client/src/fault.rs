//! Why a server gave no result.

use std::time::Duration;

use egress::{EgressError, TooLong};
use http::StatusCode;
use work::WorkError;

/// What went wrong between us and a server.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// The server refused the request, in JSON-RPC's words.
    #[error("{message} ({code})")]
    Rpc { code: i64, message: String },
    /// The server wants another credential; `challenge` is its `WWW-Authenticate`.
    #[error("the server wants a credential")]
    Unauthorized { challenge: Option<String> },
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// The server does not know the session any more; it did nothing.
    #[error("the server forgot the session")]
    Forgotten,
    #[error("{0}")]
    Unreachable(#[from] EgressError),
    /// It could not be started; nothing was asked.
    #[error("the server could not be started: {0}")]
    NotStarted(String),
    /// It went away; what was asked may have been done or not.
    #[error("the server went away: {0}")]
    Gone(String),
    #[error("the server gave no answer within {:.0} s", .0.as_secs_f32())]
    Late(Duration),
    #[error("the server sent a message of more than {} MiB", .0 >> 20)]
    TooLarge(usize),
    #[error("the server's list of tools is longer than {} MiB", .0 >> 20)]
    LongList(usize),
    #[error("the server sent something that is not MCP: {0}")]
    Unreadable(String),
    /// It is too much to be read, or too much of the project waits to be read.
    #[error("the server's answer cannot be read: {0}")]
    TooMuch(WorkError),
}

impl From<WorkError> for ServerError {
    fn from(error: WorkError) -> Self {
        Self::TooMuch(error)
    }
}

impl From<TooLong> for ServerError {
    fn from(TooLong(most): TooLong) -> Self {
        Self::TooLarge(most)
    }
}
