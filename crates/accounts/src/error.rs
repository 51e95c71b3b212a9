//! What can go wrong with accounts.

use store::StoreError;

/// A failure of the accounts.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("Project not found")]
    ProjectNotFound,
    #[error("Key not found")]
    KeyNotFound,
    #[error("User not found")]
    UserNotFound,
    #[error("Member not found")]
    MemberNotFound,
    #[error("This is the only owner of the project. Make somebody else an owner first.")]
    LastOwner,
    #[error(
        "Nobody gives a key more than they have themselves, and you lack {0}. Name the `permissions` that the key needs, or a lower `role`."
    )]
    MoreThanHeld(String),
    #[error("A project may have {} keys in force, and this one has as many; revoke those that nobody uses.", crate::MOST_KEYS)]
    TooManyKeys,
    #[error("`{0}` is not a usable {1}")]
    Invalid(String, &'static str),
    /// A setting of a project that cannot be taken.
    #[error("{0}")]
    Setting(String),
    #[error("A user with e-mail '{0}' already exists.")]
    EmailTaken(String),
    #[error("A project with slug '{0}' already exists.")]
    SlugTaken(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
