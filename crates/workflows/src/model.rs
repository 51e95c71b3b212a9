//! Artifact, variant, revision.

use kernel::{ArtifactId, ProjectId, RevisionId, Timestamp, VariantId};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::flags;

/// What has a history: workflows, and environments that say which revision is deployed. Applications and evaluators are workflows under
/// other names: what is written through such a name has the role, and only what has it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Workflow,
    Environment,
    Application,
    Evaluator,
}

impl Family {
    /// Those that a reference may name.
    pub const ALL: [Self; 4] = [Self::Workflow, Self::Environment, Self::Application, Self::Evaluator];

    pub fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Environment => "environment",
            Self::Application => "application",
            Self::Evaluator => "evaluator",
        }
    }

    /// As errors call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Workflow => "Workflow",
            Self::Environment => "Environment",
            Self::Application => "Application",
            Self::Evaluator => "Evaluator",
        }
    }

    /// Whose rows they are.
    pub(crate) fn kept_as(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Workflow | Self::Application | Self::Evaluator => "workflow",
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
    pub tags: Option<Value>,
    pub meta: Option<Value>,
    /// What a workflow is used as, in bits.
    pub(crate) roles: Option<i64>,
    pub is_guarded: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    pub created_by: Option<Uuid>,
    pub updated_by: Option<Uuid>,
    pub archived_by: Option<Uuid>,
}

impl Artifact {
    /// A workflow's flags, as they are shown.
    pub fn flags(&self) -> Option<Value> {
        flags::shown(self.roles, None)
    }
}

/// One line of a history.
#[derive(Clone, Debug)]
pub struct Variant {
    pub id: VariantId,
    pub project: ProjectId,
    pub artifact: ArtifactId,
    pub artifact_slug: String,
    pub slug: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Option<Value>,
    pub meta: Option<Value>,
    pub(crate) roles: Option<i64>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    pub created_by: Option<Uuid>,
    pub updated_by: Option<Uuid>,
    pub archived_by: Option<Uuid>,
}

impl Variant {
    /// The flags of what it belongs to.
    pub fn flags(&self) -> Option<Value> {
        flags::shown(self.roles, None)
    }
}

/// One state of a variant. Its words can change; its data, message and version never do.
#[derive(Clone, Debug)]
pub struct Revision {
    pub id: RevisionId,
    pub project: ProjectId,
    pub artifact: ArtifactId,
    pub artifact_slug: String,
    pub variant: VariantId,
    pub variant_slug: String,
    pub slug: String,
    pub version: i64,
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Option<Value>,
    pub meta: Option<Value>,
    pub(crate) roles: Option<i64>,
    /// What its data says that it is, in bits.
    pub(crate) traits: Option<i64>,
    pub data: Option<Value>,
    pub message: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub archived_at: Option<Timestamp>,
    pub created_by: Option<Uuid>,
    pub updated_by: Option<Uuid>,
    pub archived_by: Option<Uuid>,
}

impl Revision {
    /// The flags of what it belongs to and its own, as they are shown.
    pub fn flags(&self) -> Option<Value> {
        flags::shown(self.roles, self.traits)
    }
}

/// What people write on a row. In a change, what is left out stays.
#[derive(Clone, Debug, Default)]
pub struct Words {
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Option<Value>,
    pub meta: Option<Value>,
}

/// What a new artifact shall be.
#[derive(Clone, Debug, Default)]
pub struct NewArtifact {
    pub slug: String,
    pub words: Words,
    /// What it is used as; other flags mean nothing.
    pub flags: Option<Map<String, Value>>,
}

/// New words for an artifact; what is left out stays.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    pub words: Words,
    pub flags: Option<Map<String, Value>>,
}

/// What a new variant shall be.
#[derive(Clone, Debug)]
pub struct NewVariant {
    pub artifact: ArtifactId,
    pub slug: String,
    pub words: Words,
}

/// The first revision of a variant.
#[derive(Clone, Debug)]
pub struct FirstRevision {
    pub variant: VariantId,
    /// What the variant belongs to, if the caller says so.
    pub artifact: Option<ArtifactId>,
    pub slug: Option<String>,
    pub words: Words,
}

/// An artifact with its default variant and the newest data there.
#[derive(Clone, Debug)]
pub struct Simple {
    pub artifact: Artifact,
    pub variant: Option<VariantId>,
    pub revision: Option<Revision>,
}

impl Simple {
    /// The flags of the newest revision, or of the artifact where there is none.
    pub fn flags(&self) -> Option<Value> {
        flags::shown(self.artifact.roles, self.revision.as_ref().and_then(|revision| revision.traits))
    }
}

/// Which rows to list; every part narrows.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub id: Option<Uuid>,
    pub slug: Option<String>,
    /// Part of the name or slug.
    pub name: Option<String>,
    pub description: Option<String>,
    /// What the row's tags contain.
    pub tags: Option<Value>,
    /// What the row shows.
    pub flags: Option<Map<String, Value>>,
    /// Part of a revision's message.
    pub message: Option<String>,
    /// Who committed a revision.
    pub author: Option<Uuid>,
    /// When a revision was committed.
    pub date: Option<Timestamp>,
    /// Which of a variant's revisions it is.
    pub version: Option<i64>,
    pub artifact: Option<ArtifactId>,
    pub variant: Option<VariantId>,
    pub include_archived: bool,
    pub limit: Option<i64>,
    /// The id after which the next page begins.
    pub next: Option<Uuid>,
    /// Oldest first.
    pub ascending: bool,
    /// Not made after this.
    pub newest: Option<Timestamp>,
    /// Not made before this.
    pub oldest: Option<Timestamp>,
}
