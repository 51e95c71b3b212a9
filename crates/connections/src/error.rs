//! What can go wrong with connections.

use catalog::CatalogError;
use egress::EgressError;
use kernel::slug::SlugError;
use store::StoreError;

use crate::SeveralAccounts;

/// A failure of the connections.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    #[error("Connection not found")]
    NotFound,
    #[error("Connection slug {0}")]
    Slug(#[from] SlugError),
    #[error("A resource with slug '{slug}' already exists in this project.")]
    Taken { provider: String, integration: String, slug: String },
    #[error("The user has another account with the alias '{0}'.")]
    AliasTaken(String),
    #[error("An end user may have {0} connections, of a limited size. Delete some that are not needed.")]
    TooManyOfUser(i64),
    #[error("Hook not found")]
    HookNotFound,
    #[error("A project may have {0} hooks; delete one first.")]
    TooManyHooks(i64),
    #[error("There is more than one account of '{integration}': {names}. Name one of them.", integration = .0.integration, names = .0.names.join(", "))]
    Several(SeveralAccounts),
    #[error("Integration '{key}' not found{0}", key = .0.key)]
    UnknownIntegration(catalog::Missing),
    #[error("The '{integration}' integration has no auth scheme '{scheme}'. It has: {known}.")]
    UnknownScheme { integration: String, scheme: String, known: String },
    #[error(transparent)]
    Full(#[from] store::Full),
    #[error("{0}")]
    NoApp(String),
    #[error("{0}")]
    Field(String),
    /// A name or description that cannot be taken.
    #[error("{0}")]
    Words(String),
    #[error("{integration} refused the credential: {reason}")]
    Refused { integration: String, reason: String },
    #[error("Connection is inactive or revoked: {0}")]
    Inactive(String),
    #[error("Connection credentials not established: {slug} - Please refresh the connection.{reason}")]
    NotValid { slug: String, reason: String },
    #[error("The link is not valid any more. Ask for a new one.")]
    BadAttempt,
    #[error("{0}")]
    Denied(String),
    #[error("{integration}: {message}")]
    Upstream { integration: String, message: String },
    #[error("{integration} failed with status {status}")]
    UpstreamServer { integration: String, status: u16 },
    #[error("{integration}: {error}")]
    Unreachable { integration: String, error: EgressError },
    #[error("the stored credential does not open: {0}")]
    Sealed(#[from] kernel::seal::SealError),
    #[error("interrupted: {0}")]
    Interrupted(String),
    #[error(transparent)]
    Catalog(CatalogError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ConnectionError {
    /// Whether it tells a person why an attempt failed: neither our own failures nor an attempt that no longer counts.
    pub(crate) fn is_for_people(&self) -> bool {
        !matches!(self, Self::Store(_) | Self::Sealed(_) | Self::Interrupted(_) | Self::BadAttempt)
    }

    /// The failure of the database behind it, which is nobody's mistake and is over when the database is back.
    pub fn into_store(self) -> Result<StoreError, Self> {
        match self {
            Self::Store(error) => Ok(error),
            Self::Catalog(CatalogError::Away(why)) => Ok(StoreError::Away(why)),
            other => Err(other),
        }
    }
}

impl From<CatalogError> for ConnectionError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::UnknownIntegration(missing) => Self::UnknownIntegration(missing),
            other => Self::Catalog(other),
        }
    }
}
