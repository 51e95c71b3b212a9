//! What can go wrong with imports.

use connections::ConnectionError;
use store::StoreError;

/// A failure of the imports.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("Import not found")]
    NotFound,
    #[error("`{0}` imports nothing")]
    UnknownProvider(String),
    #[error("`{0}` cannot be a key: use 1 to 64 lower-case letters, digits and single hyphens, a letter first")]
    Key(String),
    #[error("{0}")]
    Invalid(String),
    #[error("`{key}` was imported from something else; give `key` to replace it, or another `key` to keep both")]
    Taken { key: String },
    #[error("the import changed meanwhile; try again")]
    Moved,
    #[error("{why}; disconnect these first, or use `force`: {}", names.join(", "))]
    InUse { why: &'static str, names: Vec<String> },
    #[error("it was imported from a document, which cannot be fetched again; import the new one with the same `key`")]
    NothingToFetch,
    #[error(transparent)]
    Full(#[from] store::Full),
    #[error("the source could not be read: {0}")]
    Upstream(String),
    #[error("the source could not be read: it failed with status {0}")]
    UpstreamServer(u16),
    #[error("the secret does not open: {0}")]
    Sealed(#[from] kernel::seal::SealError),
    #[error("interrupted: {0}")]
    Interrupted(String),
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Work(#[from] work::WorkError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
