//! The bodies of one family's history, written once for both.

/// What one family's routes take and answer: the same bodies with the family's own field names.
macro_rules! bodies {
    (
        schema: $schema:ident, tag: $tag:literal, root: $root:literal, words: [$a_word:literal, $words:literal],
        artifact: [$artifact:ident, $artifacts:ident, $artifact_id:ident, $artifact_key:literal, $artifact_refs:ident],
        variant: [$variant:ident, $variants:ident, $variant_id:ident, $variant_key:literal, $variant_refs:ident, $variant_ref:ident],
        revision: [$revision:ident, $revisions:ident, $revision_id:ident, $revision_key:literal, $revision_refs:ident, $revision_ref:ident],
    ) => {
        use kernel::Timestamp;
        use serde::{Deserialize, Serialize};
        use serde_json::{Map, Value};
        use utoipa::ToSchema;
        use uuid::Uuid;

        use crate::histories::{
            self, DeltaBody, EditBody, EmbedOptions, FilterBody, NewArtifactBody, NextBody, RefBody, ReferenceFields, ResolutionInfo,
            RetrievalInfo, WindowingBody,
        };

        #[doc = concat!("The root of a history: ", $a_word, ".")]
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::Artifact)]
        pub struct Artifact {
            pub id: Uuid,
            pub slug: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub description: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub flags: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub tags: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub meta: Option<Value>,
            pub created_at: String,
            pub updated_at: String,
            /// When it was archived.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deleted_at: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub created_by_id: Option<Uuid>,
        }

        impl From<::workflows::Artifact> for Artifact {
            fn from(row: ::workflows::Artifact) -> Self {
                Self {
                    id: row.id.uuid(),
                    flags: histories::flags(FAMILY, &row),
                    slug: row.slug,
                    name: row.name,
                    description: row.description,
                    tags: row.tags,
                    meta: row.meta,
                    created_at: row.created_at.to_string(),
                    updated_at: row.updated_at.to_string(),
                    deleted_at: row.archived_at.as_ref().map(Timestamp::to_string),
                    created_by_id: row.created_by,
                }
            }
        }

        /// One line of a history.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::Variant)]
        pub struct Variant {
            pub id: Uuid,
            pub slug: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub description: Option<String>,
            pub $artifact_id: Uuid,
            pub created_at: String,
            pub updated_at: String,
            /// When it was archived.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deleted_at: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub created_by_id: Option<Uuid>,
        }

        impl From<::workflows::Variant> for Variant {
            fn from(row: ::workflows::Variant) -> Self {
                Self {
                    id: row.id.uuid(),
                    slug: row.slug,
                    name: row.name,
                    description: row.description,
                    $artifact_id: row.artifact.uuid(),
                    created_at: row.created_at.to_string(),
                    updated_at: row.updated_at.to_string(),
                    deleted_at: row.archived_at.as_ref().map(Timestamp::to_string),
                    created_by_id: row.created_by,
                }
            }
        }

        /// One state of a variant; it never changes.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::Revision)]
        pub struct Revision {
            pub id: Uuid,
            pub slug: String,
            /// `0`, `1`, … in each variant.
            #[schema(example = "1")]
            pub version: String,
            pub $artifact_id: Uuid,
            pub $variant_id: Uuid,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub data: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub message: Option<String>,
            pub created_at: String,
            /// When it was archived.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deleted_at: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub created_by_id: Option<Uuid>,
        }

        impl From<::workflows::Revision> for Revision {
            fn from(row: ::workflows::Revision) -> Self {
                Self {
                    id: row.id.uuid(),
                    slug: row.slug,
                    version: row.version.to_string(),
                    $artifact_id: row.artifact.uuid(),
                    $variant_id: row.variant.uuid(),
                    data: row.data,
                    message: row.message,
                    created_at: row.created_at.to_string(),
                    deleted_at: row.archived_at.as_ref().map(Timestamp::to_string),
                    created_by_id: row.created_by,
                }
            }
        }

        #[doc = concat!("An answer with ", $a_word, ".")]
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::ArtifactAnswer)]
        pub struct ArtifactAnswer {
            pub count: usize,
            pub $artifact: Artifact,
        }

        impl From<::workflows::Artifact> for ArtifactAnswer {
            fn from(row: ::workflows::Artifact) -> Self {
                Self { count: 1, $artifact: row.into() }
            }
        }

        #[doc = concat!("A page of ", $words, ", newest first.")]
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::ArtifactsAnswer)]
        pub struct ArtifactsAnswer {
            pub count: usize,
            pub $artifacts: Vec<Artifact>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub windowing: Option<NextBody>,
        }

        /// An answer with one variant.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::VariantAnswer)]
        pub struct VariantAnswer {
            pub count: usize,
            pub $variant: Variant,
            /// The first revision of a fork.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $revision: Option<Revision>,
        }

        impl From<::workflows::Variant> for VariantAnswer {
            fn from(row: ::workflows::Variant) -> Self {
                Self { count: 1, $variant: row.into(), $revision: None }
            }
        }

        /// A page of variants, newest first.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::VariantsAnswer)]
        pub struct VariantsAnswer {
            pub count: usize,
            pub $variants: Vec<Variant>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub windowing: Option<NextBody>,
        }

        /// An answer with one revision.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::RevisionAnswer)]
        pub struct RevisionAnswer {
            pub count: usize,
            pub $revision: Revision,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub resolution_info: Option<ResolutionInfo>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub retrieval_info: Option<RetrievalInfo>,
        }

        impl From<::workflows::Revision> for RevisionAnswer {
            fn from(row: ::workflows::Revision) -> Self {
                Self { count: 1, $revision: row.into(), resolution_info: None, retrieval_info: None }
            }
        }

        /// Revisions, newest first.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::RevisionsAnswer)]
        pub struct RevisionsAnswer {
            pub count: usize,
            pub $revisions: Vec<Revision>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub windowing: Option<NextBody>,
        }

        /// What a commit came to.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::CommitAnswer)]
        pub struct CommitAnswer {
            pub count: usize,
            /// The new revision, or the newest one when nothing changed.
            pub $revision: Revision,
            /// `committed` or `no_change`.
            pub status: &'static str,
        }

        impl From<::workflows::Committed> for CommitAnswer {
            fn from(committed: ::workflows::Committed) -> Self {
                let status = if committed.changed { "committed" } else { "no_change" };
                Self { count: 1, $revision: committed.revision.into(), status }
            }
        }

        /// A revision with its embeds in place.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::ResolveAnswer)]
        pub struct ResolveAnswer {
            pub count: usize,
            /// The revision that was found, or the one that was given, with its data resolved.
            #[schema(value_type = Object)]
            pub $revision: Value,
            pub resolution_info: ResolutionInfo,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub retrieval_info: Option<RetrievalInfo>,
        }

        #[doc = concat!("A request to make ", $a_word, ".")]
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::CreateArtifact)]
        pub struct CreateArtifact {
            pub $artifact: NewArtifactBody,
        }

        #[doc = concat!("A request to change the words of ", $a_word, ".")]
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::EditArtifact)]
        pub struct EditArtifact {
            #[serde(default)]
            pub $artifact: EditBody,
        }

        #[doc = concat!("Which ", $words, " to list.")]
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::QueryArtifacts)]
        pub struct QueryArtifacts {
            pub $artifact: Option<FilterBody>,
            pub $artifact_refs: Option<Vec<RefBody>>,
            pub include_archived: Option<bool>,
            pub windowing: Option<WindowingBody>,
        }

        /// A request to make a variant.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::CreateVariant)]
        pub struct CreateVariant {
            pub $variant: NewVariant,
        }

        /// What a new variant shall be.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::NewVariant)]
        pub struct NewVariant {
            pub $artifact_id: Uuid,
            /// Letters, digits, `-` and single `_`.
            pub slug: String,
            pub name: Option<String>,
            pub description: Option<String>,
        }

        /// Which variants to list.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::QueryVariants)]
        pub struct QueryVariants {
            pub $variant: Option<VariantFilter>,
            pub $artifact_refs: Option<Vec<RefBody>>,
            pub $variant_refs: Option<Vec<RefBody>>,
            pub include_archived: Option<bool>,
            pub windowing: Option<WindowingBody>,
        }

        /// Variants by their words or what they belong to.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::VariantFilter)]
        pub struct VariantFilter {
            pub $artifact_id: Option<Uuid>,
            /// The whole slug.
            pub slug: Option<String>,
            /// Part of the slug or name.
            pub name: Option<String>,
        }

        /// A request to fork a variant: name the source in one of the two ways.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::ForkVariant)]
        pub struct ForkVariant {
            pub $variant: NewFork,
            pub $variant_ref: Option<RefBody>,
            /// Not supported: a fork begins with the newest data.
            #[schema(value_type = Option<Object>)]
            pub $revision_ref: Option<Value>,
        }

        /// The variant that a fork makes.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::NewFork)]
        pub struct NewFork {
            /// The source.
            pub $variant_id: Option<Uuid>,
            pub slug: String,
            pub name: Option<String>,
        }

        /// A request to commit a revision.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::CommitRevision)]
        pub struct CommitRevision {
            pub $revision: NewRevision,
        }

        /// What a new revision shall be: `data`, or `delta` over the newest data.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::NewRevision)]
        pub struct NewRevision {
            pub $variant_id: Uuid,
            #[schema(value_type = Option<Object>)]
            pub data: Option<Value>,
            pub delta: Option<DeltaBody>,
            /// The revision that you saw last; if there is a newer one, the answer is 409.
            pub base_revision_id: Option<Uuid>,
            pub message: Option<String>,
        }

        /// Which revisions to list.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::QueryRevisions)]
        pub struct QueryRevisions {
            pub $revision: Option<RevisionFilter>,
            pub $artifact_refs: Option<Vec<RefBody>>,
            pub $variant_refs: Option<Vec<RefBody>>,
            pub $revision_refs: Option<Vec<RefBody>>,
            pub include_archived: Option<bool>,
            pub windowing: Option<WindowingBody>,
        }

        /// Revisions by their slug or what they belong to.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::RevisionFilter)]
        pub struct RevisionFilter {
            pub $artifact_id: Option<Uuid>,
            pub $variant_id: Option<Uuid>,
            /// The whole slug.
            pub slug: Option<String>,
            /// Part of the slug.
            pub name: Option<String>,
        }

        /// Whose history to read; the two names mean the same.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::LogRevisions)]
        pub struct LogRevisions {
            pub $revisions: Option<LogStart>,
            pub $revision: Option<LogStart>,
        }

        /// Where a history begins and how far back it goes.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::LogStart)]
        pub struct LogStart {
            /// Its default variant.
            pub $artifact_id: Option<Uuid>,
            pub $variant_id: Option<Uuid>,
            /// This revision and those before it.
            pub $revision_id: Option<Uuid>,
            /// 100 by default, 500 at most.
            pub depth: Option<i64>,
        }

        /// A revision to resolve: one that references name, or data given inline.
        #[derive(Debug, Default, Deserialize, ToSchema)]
        #[schema(as = $schema::ResolveRevision)]
        pub struct ResolveRevision {
            #[schema(value_type = Option<Object>)]
            pub $revision: Option<Map<String, Value>>,
            pub key: Option<String>,
            #[serde(flatten)]
            pub options: EmbedOptions,
            #[serde(flatten)]
            #[schema(value_type = ReferenceFields)]
            pub references: Map<String, Value>,
        }
    };
}

pub(crate) use bodies;
