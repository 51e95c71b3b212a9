//! What can go wrong with user sessions.

use store::StoreError;

/// A failure of the user sessions.
#[derive(Debug, thiserror::Error)]
pub enum UserSessionError {
    #[error("There is no such session.")]
    NotFound,
    #[error("`lifetime_seconds` must be 1 to 7776000, which is 90 days.")]
    Lifetime,
    #[error("{0}")]
    Settings(String),
    #[error("The end user has {0} sessions already. Revoke some, or make them shorter.")]
    TooMany(i64),
    #[error("The session's config was changed meanwhile; version {0} is in force. Read it and try again.")]
    Changed(i64),
    #[error(transparent)]
    Store(#[from] StoreError),
}
