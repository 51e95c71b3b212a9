//! What can go wrong with a search.

use connections::ConnectionError;
use store::StoreError;
use work::WorkError;

/// A search that came to no answer.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    #[error("{0}")]
    Invalid(String),
    /// A provider's own search failed, and there is nothing else to answer with.
    #[error("{0}")]
    Search(String),
    #[error("Use case not found")]
    UseCaseNotFound,
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
