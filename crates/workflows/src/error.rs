//! What can go wrong with workflows.

use kernel::seal::SealError;
use kernel::slug::SlugError;
use store::StoreError;

use crate::Family;
use crate::changeset::ChangeError;
use crate::changeset::scope::ScopeError;
use crate::embed::EmbedError;

/// A failure of the workflows.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    #[error("{0} not found")]
    NotFound(String),
    #[error("'slug' {0}")]
    Slug(#[from] SlugError),
    #[error("Slugs that begin with `__ag__` are reserved: {0}")]
    Reserved(String),
    #[error("A {family} with slug '{slug}' already exists.")]
    Taken { family: String, slug: String },
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    BadRequest(String),
    #[error("The variant has moved on: its newest revision is {head}. Read it, apply your change to it and commit again.")]
    Moved { head: String },
    #[error("'{0}' is guarded. Unguard it before changing it.")]
    Guarded(String),
    #[error("'{slug}' is not deployed to '{environment}'.")]
    NotDeployed { slug: String, environment: String },
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// An agent changed what it may not change in itself.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error("the steps of the run: {0}")]
    Sealed(#[from] SealError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WorkflowError {
    pub(crate) fn missing(family: Family, part: &str) -> Self {
        Self::NotFound(format!("{}{part}", family.title()))
    }
}
