//! What can be asked for and not be there.

/// A failure of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    #[error("Provider not found: {0}")]
    UnknownProvider(String),
    #[error("Integration not found")]
    UnknownIntegration(String),
    #[error("Action not found")]
    UnknownAction(String),
    #[error("Event not found")]
    UnknownEvent(String),
    #[error("the project's own integrations could not be read: {0}")]
    NotRead(String),
    #[error("The cursor is not one of ours; leave it out to start at the beginning.")]
    BadCursor,
    #[error("`limit` must be at least 1.")]
    BadLimit,
}
