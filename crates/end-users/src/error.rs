//! What can go wrong with end users.

use store::StoreError;

use crate::PersonalError;

/// A failure of the end users.
#[derive(Debug, thiserror::Error)]
pub enum EndUserError {
    #[error("There is no end user of this name. A connection or a session for them makes them known.")]
    NotFound,
    #[error("This project has {0} end users, and may not have more. Forget some that are not served any more.")]
    TooMany(i64),
    #[error(transparent)]
    Personal(#[from] PersonalError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
