//! What can go wrong with secrets. No message holds a value.

use kernel::seal::SealError;
use kernel::suggest;
use store::StoreError;

/// A failure of the secrets.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("Secret not found: {named}.{nearest}")]
    NotFound { named: String, nearest: String },
    #[error("A secret with slug '{0}' already exists; replace its value, or choose another slug.")]
    Taken(String),
    #[error("{0}")]
    Invalid(String),
    #[error("A project may have {} secrets, and this one has as many; delete those that nobody needs.", crate::MOST)]
    TooMany,
    /// A value goes only where its owner said that it may go.
    #[error("Secret `{slug}` may not be sent to `{host}`; whoever may change it can allow that with `hosts`.")]
    OtherHost { slug: String, host: String },
    #[error(transparent)]
    Sealed(#[from] SealError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SecretError {
    pub(crate) fn not_found<'a>(named: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let named: String = named.chars().take(200).collect();
        Self::NotFound { nearest: suggest::did_you_mean(&named, known), named }
    }
}
