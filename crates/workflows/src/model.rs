//! Artifact, variant, revision.

use kernel::{ArtifactId, ProjectId, RevisionId, Timestamp, VariantId};
use serde_json::Value;
use uuid::Uuid;

/// What has a history: workflows, and environments that say which revision is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Workflow,
    Environment,
}

impl Family {
    pub fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Environment => "environment",
        }
    }

    /// As errors call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Workflow => "Workflow",
            Self::Environment => "Environment",
        }
    }
}

/// The root of a history.
#[derive(Clone, Debug)]
pub struct Artifact {
    pub id: ArtifactId,
    pub project: ProjectId,
    pub slug: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub flags: Option<Value>,
    pub tags: Option<Value>,
    pub meta: Option<Value>,
    pub is_guarded: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    pub created_by: Option<Uuid>,
}

/// One line of a history.
#[derive(Clone, Debug)]
pub struct Variant {
    pub id: VariantId,
    pub project: ProjectId,
    pub artifact: ArtifactId,
    pub slug: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    pub created_by: Option<Uuid>,
}

/// One state of a variant; it never changes.
#[derive(Clone, Debug)]
pub struct Revision {
    pub id: RevisionId,
    pub project: ProjectId,
    pub artifact: ArtifactId,
    pub variant: VariantId,
    pub slug: String,
    pub version: i64,
    pub data: Option<Value>,
    pub message: Option<String>,
    pub created_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    pub created_by: Option<Uuid>,
}

/// What a new artifact shall be.
#[derive(Clone, Debug, Default)]
pub struct NewArtifact {
    pub slug: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub flags: Option<Value>,
    pub tags: Option<Value>,
    pub meta: Option<Value>,
}

/// New words for an artifact; what is left out stays.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    pub name: Option<String>,
    pub description: Option<String>,
    pub flags: Option<Value>,
    pub tags: Option<Value>,
    pub meta: Option<Value>,
}

/// What a new variant shall be.
#[derive(Clone, Debug)]
pub struct NewVariant {
    pub artifact: ArtifactId,
    pub slug: String,
    pub name: Option<String>,
    pub description: Option<String>,
}

/// Which rows to list.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Part of the slug or name.
    pub text: Option<String>,
    pub slug: Option<String>,
    pub artifact: Option<ArtifactId>,
    pub variant: Option<VariantId>,
    pub include_archived: bool,
    pub limit: Option<i64>,
    /// The id after which the next page begins.
    pub next: Option<Uuid>,
}
