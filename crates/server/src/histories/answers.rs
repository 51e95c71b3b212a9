//! What the routes of one family's history answer, written once for all.

/// The same rows and answers with a family's own field names. A macro, because neither serde nor utoipa can name a field after a type
/// parameter.
macro_rules! answers {
    (
        family: $family:ident, schema: $schema:ident, words: [$a_word:tt, $words:tt],
        artifact: [$artifact:ident, $artifacts:ident, $artifact_id:ident, $artifact_slug:ident, $artifact_refs:ident],
        variant: [$variant:ident, $variants:ident, $variant_id:ident, $variant_slug:ident, $variant_refs:ident, $variant_ref:ident],
        revision: [$revision:ident, $revisions:ident, $revision_id:ident, $revision_refs:ident, $revision_ref:ident],
    ) => {
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
            #[serde(skip_serializing_if = "Option::is_none")]
            pub updated_by_id: Option<Uuid>,
            /// Who archived it.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deleted_by_id: Option<Uuid>,
        }

        impl From<::workflows::Artifact> for Artifact {
            fn from(row: ::workflows::Artifact) -> Self {
                Self {
                    id: row.id.uuid(),
                    flags: histories::flags(::workflows::Family::$family, &row),
                    slug: row.slug,
                    name: row.name,
                    description: row.description,
                    tags: row.tags,
                    meta: row.meta,
                    created_at: row.created_at.to_string(),
                    updated_at: row.updated_at.to_string(),
                    deleted_at: row.archived_at.as_ref().map(Timestamp::to_string),
                    created_by_id: row.created_by,
                    updated_by_id: row.updated_by,
                    deleted_by_id: row.archived_by,
                }
            }
        }

        /// One line of a history. Its flags are those of what it belongs to, and its name is its slug unless it has another.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::Variant)]
        pub struct Variant {
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
            pub tags: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub meta: Option<Value>,
            pub $artifact_id: Uuid,
            pub $artifact_slug: String,
            pub created_at: String,
            pub updated_at: String,
            /// When it was archived.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deleted_at: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub created_by_id: Option<Uuid>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub updated_by_id: Option<Uuid>,
            /// Who archived it.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deleted_by_id: Option<Uuid>,
        }

        impl From<::workflows::Variant> for Variant {
            fn from(row: ::workflows::Variant) -> Self {
                Self {
                    id: row.id.uuid(),
                    flags: row.flags(),
                    name: row.name.or_else(|| Some(row.slug.clone())),
                    slug: row.slug,
                    description: row.description,
                    tags: row.tags,
                    meta: row.meta,
                    $artifact_id: row.artifact.uuid(),
                    $artifact_slug: row.artifact_slug,
                    created_at: row.created_at.to_string(),
                    updated_at: row.updated_at.to_string(),
                    deleted_at: row.archived_at.as_ref().map(Timestamp::to_string),
                    created_by_id: row.created_by,
                    updated_by_id: row.updated_by,
                    deleted_by_id: row.archived_by,
                }
            }
        }

        /// One state of a variant. Its words can change; its data, message and version never do.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::Revision)]
        pub struct Revision {
            pub id: Uuid,
            pub slug: String,
            /// `0`, `1`, … in each variant.
            #[schema(example = "1")]
            pub version: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub description: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub flags: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tags: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub meta: Option<Value>,
            pub $artifact_id: Uuid,
            pub $artifact_slug: String,
            pub $variant_id: Uuid,
            pub $variant_slug: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub data: Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub message: Option<String>,
            /// Who committed it.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub author: Option<Uuid>,
            /// When it was committed.
            pub date: String,
            pub created_at: String,
            pub updated_at: String,
            /// When it was archived.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deleted_at: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub created_by_id: Option<Uuid>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub updated_by_id: Option<Uuid>,
            /// Who archived it.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deleted_by_id: Option<Uuid>,
        }

        impl From<::workflows::Revision> for Revision {
            fn from(row: ::workflows::Revision) -> Self {
                Self {
                    id: row.id.uuid(),
                    flags: row.flags(),
                    slug: row.slug,
                    version: row.version.to_string(),
                    name: row.name,
                    description: row.description,
                    tags: row.tags,
                    meta: row.meta,
                    $artifact_id: row.artifact.uuid(),
                    $artifact_slug: row.artifact_slug,
                    $variant_id: row.variant.uuid(),
                    $variant_slug: row.variant_slug,
                    data: row.data,
                    message: row.message,
                    author: row.created_by,
                    date: row.created_at.to_string(),
                    created_at: row.created_at.to_string(),
                    updated_at: row.updated_at.to_string(),
                    deleted_at: row.archived_at.as_ref().map(Timestamp::to_string),
                    created_by_id: row.created_by,
                    updated_by_id: row.updated_by,
                    deleted_by_id: row.archived_by,
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

        impl From<Page<::workflows::Artifact>> for ArtifactsAnswer {
            fn from(page: Page<::workflows::Artifact>) -> Self {
                let (rows, windowing) = page.bodies::<Artifact>();
                Self { count: rows.len(), $artifacts: rows, windowing }
            }
        }

        /// An answer with one variant.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::VariantAnswer)]
        pub struct VariantAnswer {
            pub count: usize,
            pub $variant: Variant,
        }

        impl From<::workflows::Variant> for VariantAnswer {
            fn from(row: ::workflows::Variant) -> Self {
                Self { count: 1, $variant: row.into() }
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

        impl From<Page<::workflows::Variant>> for VariantsAnswer {
            fn from(page: Page<::workflows::Variant>) -> Self {
                let (rows, windowing) = page.bodies::<Variant>();
                Self { count: rows.len(), $variants: rows, windowing }
            }
        }

        /// An answer with one revision, or with none where references led nowhere.
        #[derive(Debug, Default, Serialize, ToSchema)]
        #[schema(as = $schema::RevisionAnswer)]
        pub struct RevisionAnswer {
            pub count: usize,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $revision: Option<Revision>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub resolution_info: Option<ResolutionInfo>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub retrieval_info: Option<RetrievalInfo>,
        }

        impl From<::workflows::Revision> for RevisionAnswer {
            fn from(row: ::workflows::Revision) -> Self {
                Self { count: 1, $revision: Some(row.into()), ..Self::default() }
            }
        }

        impl From<Option<FoundRevision>> for RevisionAnswer {
            fn from(found: Option<FoundRevision>) -> Self {
                let Some(FoundRevision { revision, resolution_info, retrieval_info }) = found else { return Self::default() };
                Self { resolution_info, retrieval_info: Some(retrieval_info), ..revision.into() }
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

        impl From<Page<::workflows::Revision>> for RevisionsAnswer {
            fn from(page: Page<::workflows::Revision>) -> Self {
                let (rows, windowing) = page.bodies::<Revision>();
                Self { count: rows.len(), $revisions: rows, windowing }
            }
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

        /// A revision with its embeds in place, or none where references led nowhere.
        #[derive(Debug, Default, Serialize, ToSchema)]
        #[schema(as = $schema::ResolveAnswer)]
        pub struct ResolveAnswer {
            pub count: usize,
            /// The revision that was found, or the one that was given, with its data resolved.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub $revision: Option<Value>,
            pub resolution_info: ResolutionInfo,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub retrieval_info: Option<RetrievalInfo>,
        }

        impl From<Option<ResolvedRevision>> for ResolveAnswer {
            fn from(resolved: Option<ResolvedRevision>) -> Self {
                let Some(ResolvedRevision { revision, resolution_info, retrieval_info }) = resolved else { return Self::default() };
                Self { count: 1, $revision: Some(revision), resolution_info, retrieval_info }
            }
        }
    };
}

pub(crate) use answers;
