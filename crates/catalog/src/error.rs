//! What can be asked for and not be there.

/// A failure of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    #[error("Provider not found: {0}")]
    UnknownProvider(String),
    #[error("{provider} is not configured on this deployment. Set {setting} to enable it.")]
    NotConfigured { provider: &'static str, setting: &'static str },
    #[error("Integration not found")]
    UnknownIntegration(String),
    #[error("Action not found")]
    UnknownAction(String),
    #[error("Event not found")]
    UnknownEvent(String),
    #[error("the project's own integrations could not be read: {0}")]
    NotRead(String),
    /// The provider refused, could not be reached, or answered with something that is no answer.
    #[error("{0}")]
    Upstream(String),
    /// The provider failed.
    #[error("{0}")]
    UpstreamServer(String),
    #[error("The cursor is not one of ours; leave it out to start at the beginning.")]
    BadCursor,
    #[error("`limit` must be at least 1.")]
    BadLimit,
}
