//! What can go wrong with workflows.

use std::fmt;

use kernel::seal::SealError;
use kernel::slug::SlugError;
use store::StoreError;
use work::WorkError;

use crate::Family;
use crate::changeset::ChangeError;
use crate::embed::EmbedError;
use crate::port::RefusedChange;

/// What a request may name and not find; variants and revisions go with what they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    Workflow,
    Environment,
    Version,
    Run,
}

impl From<Family> for RowKind {
    fn from(family: Family) -> Self {
        match family {
            Family::Environment => Self::Environment,
            Family::Workflow | Family::Application | Family::Evaluator => Self::Workflow,
        }
    }
}

/// A row that is not there, in words.
#[derive(Debug)]
pub struct MissingRow {
    pub kind: RowKind,
    text: String,
}

impl MissingRow {
    /// The same, with the name by which it was asked for in front.
    #[must_use]
    pub fn asked_as(self, name: &dyn fmt::Display) -> Self {
        Self { text: format!("{name}: {}", self.text), ..self }
    }
}

impl fmt::Display for MissingRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A failure of the workflows.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    #[error("{0} not found")]
    NotFound(MissingRow),
    #[error("'slug' {0}")]
    Slug(#[from] SlugError),
    #[error("Slugs that begin with `__ag__` are reserved: {0}")]
    Reserved(String),
    #[error("A {family} with slug '{slug}' already exists.")]
    Taken { family: String, slug: String },
    #[error("The variant '{0}' has a revision already. Commit to it instead.")]
    HasRevisions(String),
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
    #[error(transparent)]
    Refused(#[from] RefusedChange),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Full(#[from] store::Full),
    #[error("the steps of the run: {0}")]
    Sealed(#[from] SealError),
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WorkflowError {
    pub(crate) fn missing(family: Family, part: &str) -> Self {
        Self::not_found(family.into(), format!("{}{part}", family.title()))
    }

    pub(crate) fn not_found(kind: RowKind, text: String) -> Self {
        Self::NotFound(MissingRow { kind, text })
    }
}
