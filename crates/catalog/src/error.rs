//! What can be asked for and not be there.

use std::fmt;

use kernel::suggest;

/// A key that nothing has, and the nearest that something has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub key: String,
    nearest: Option<String>,
}

impl Missing {
    pub fn new<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { key: key.to_owned(), nearest: suggest::nearest(key, known).map(str::to_owned) }
    }
}

/// What ends a message about it: nothing, or the question whether the nearest was meant.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nearest {
            Some(nearest) => write!(f, ". Did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

/// A failure of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    #[error("Provider not found: {key}{0}", key = .0.key)]
    UnknownProvider(Missing),
    #[error("{provider} is not configured on this deployment. Set {setting} to enable it.")]
    NotConfigured { provider: &'static str, setting: &'static str },
    #[error("Integration not found{0}")]
    UnknownIntegration(Missing),
    #[error("Action not found{0}")]
    UnknownAction(Missing),
    #[error("Event not found{0}")]
    UnknownEvent(Missing),
    #[error("the project's own integrations could not be read: {0}")]
    NotRead(String),
    /// They are in a database that does not answer now.
    #[error("the project's own integrations cannot be read now: {0}")]
    Away(String),
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
