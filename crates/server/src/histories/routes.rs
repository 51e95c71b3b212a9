//! The bodies and handlers of one family's history, written once for both.

/// The routes of one family below its root: the same handlers with the family's own field names.
macro_rules! history {
    (
        family: $family:ident, schema: $schema:ident, tag: $tag:literal, root: $root:literal, words: [$a_word:literal, $words:literal],
        artifact: [$artifact:ident, $artifacts:ident, $artifact_id:ident, $artifact_key:literal, $artifact_refs:ident],
        variant: [$variant:ident, $variants:ident, $variant_id:ident, $variant_key:literal, $variant_refs:ident, $variant_ref:ident],
        revision: [$revision:ident, $revisions:ident, $revision_id:ident, $revision_key:literal, $revision_refs:ident, $revision_ref:ident],
    ) => {
        use axum::Json;
        use axum::extract::State;
        use kernel::{ArtifactId, RevisionId, Timestamp, VariantId};
        use serde::{Deserialize, Serialize};
        use serde_json::{Map, Value, json};
        use utoipa::ToSchema;
        use uuid::Uuid;

        use crate::App;
        use crate::edge::auth::{EditWorkflows, ViewWorkflows};
        use crate::edge::{ApiError, ApiResult, OptionalPayload, PathOf, Payload, Scoped};
        use crate::histories::{
            self, Ask, DeltaBody, EditBody, EmbedOptions, FilterBody, NewArtifactBody, NextBody, RefBody, ReferenceFields, ResolutionInfo, RetrievalInfo,
            RetrieveRevision, WindowingBody,
        };

        const FAMILY: ::workflows::Family = ::workflows::Family::$family;

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

        fn refs(named: Option<Vec<RefBody>>, id: Option<Uuid>) -> Vec<RefBody> {
            let mut refs = named.unwrap_or_default();
            refs.extend(id.map(|id| RefBody { id: Some(id), slug: None }));
            refs
        }

        fn next(next: Option<Uuid>) -> Option<NextBody> {
            next.map(|next| NextBody { next })
        }

        #[utoipa::path(post, path = $root, operation_id = concat!("create_", stringify!($artifact)), summary = concat!("Create ", $a_word), tag = $tag,
            security(("key" = ["edit_workflows"])), request_body = CreateArtifact,
            responses((status = 200, body = ArtifactAnswer), (status = 409, description = "The slug is taken")))]
        pub(crate) async fn create(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, Payload(body): Payload<CreateArtifact>) -> ApiResult<Json<ArtifactAnswer>> {
            Ok(Json(app.workflows.create_artifact(scope, FAMILY, body.$artifact.into()).await?.into()))
        }

        #[utoipa::path(get, path = concat!($root, "/{", $artifact_key, "}"), operation_id = concat!("fetch_", stringify!($artifact)), summary = concat!("Read ", $a_word), tag = $tag,
            security(("key" = ["view_workflows"])), params(($artifact_key = Uuid, Path)),
            responses((status = 200, body = ArtifactAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn fetch(Scoped(scope, _): Scoped<ViewWorkflows>, State(app): State<App>, PathOf(id): PathOf<ArtifactId>) -> ApiResult<Json<ArtifactAnswer>> {
            Ok(Json(app.workflows.artifact(scope, FAMILY, id).await?.into()))
        }

        #[utoipa::path(put, path = concat!($root, "/{", $artifact_key, "}"), operation_id = concat!("edit_", stringify!($artifact)), summary = concat!("Change the words of ", $a_word), tag = $tag,
            security(("key" = ["edit_workflows"])), params(($artifact_key = Uuid, Path)), request_body = EditArtifact,
            responses((status = 200, body = ArtifactAnswer), (status = 400, description = "The ids in path and body differ"), (status = 404, description = "No such row")))]
        pub(crate) async fn edit(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<ArtifactId>,
            Payload(body): Payload<EditArtifact>,
        ) -> ApiResult<Json<ArtifactAnswer>> {
            let edit = body.$artifact.of(id.uuid())?;
            Ok(Json(app.workflows.edit(scope, FAMILY, id, edit).await?.into()))
        }

        #[utoipa::path(post, path = concat!($root, "/{", $artifact_key, "}/archive"), operation_id = concat!("archive_", stringify!($artifact)), summary = concat!("Archive ", $a_word), tag = $tag,
            security(("key" = ["edit_workflows"])), params(($artifact_key = Uuid, Path)),
            responses((status = 200, body = ArtifactAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn archive(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, PathOf(id): PathOf<ArtifactId>) -> ApiResult<Json<ArtifactAnswer>> {
            Ok(Json(app.workflows.archive_artifact(scope, FAMILY, id, true).await?.into()))
        }

        #[utoipa::path(post, path = concat!($root, "/{", $artifact_key, "}/unarchive"), operation_id = concat!("unarchive_", stringify!($artifact)), summary = concat!("Bring ", $a_word, " back"), tag = $tag,
            security(("key" = ["edit_workflows"])), params(($artifact_key = Uuid, Path)),
            responses((status = 200, body = ArtifactAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn unarchive(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, PathOf(id): PathOf<ArtifactId>) -> ApiResult<Json<ArtifactAnswer>> {
            Ok(Json(app.workflows.archive_artifact(scope, FAMILY, id, false).await?.into()))
        }

        #[utoipa::path(post, path = concat!($root, "/query"), operation_id = concat!("query_", stringify!($artifacts)), summary = concat!("List ", $words, ", newest first"), tag = $tag,
            security(("key" = ["view_workflows"])), request_body = QueryArtifacts, responses((status = 200, body = ArtifactsAnswer)))]
        pub(crate) async fn query(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            OptionalPayload(body): OptionalPayload<QueryArtifacts>,
        ) -> ApiResult<Json<ArtifactsAnswer>> {
            let ask = Ask {
                filter: body.$artifact.unwrap_or_default(),
                artifact_refs: refs(body.$artifact_refs, None),
                include_archived: body.include_archived.unwrap_or(false),
                windowing: body.windowing.unwrap_or_default(),
                ..Ask::default()
            };
            let page = histories::artifacts(&app, scope, FAMILY, ask).await?;
            let rows: Vec<Artifact> = page.rows.into_iter().map(Into::into).collect();
            Ok(Json(ArtifactsAnswer { count: rows.len(), $artifacts: rows, windowing: next(page.next) }))
        }

        #[utoipa::path(post, path = concat!($root, "/variants"), operation_id = concat!("create_", stringify!($variant)), summary = concat!("Create a variant of ", $a_word), tag = $tag,
            security(("key" = ["edit_workflows"])), request_body = CreateVariant,
            responses((status = 200, body = VariantAnswer), (status = 404, description = "What it shall belong to is not there"), (status = 409, description = "The slug is taken")))]
        pub(crate) async fn create_variant(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, Payload(body): Payload<CreateVariant>) -> ApiResult<Json<VariantAnswer>> {
            let NewVariant { $artifact_id: artifact, slug, name, description } = body.$variant;
            let new = ::workflows::NewVariant { artifact: artifact.into(), slug, name, description };
            Ok(Json(app.workflows.create_variant(scope, FAMILY, new).await?.into()))
        }

        #[utoipa::path(get, path = concat!($root, "/variants/{", $variant_key, "}"), operation_id = concat!("fetch_", stringify!($variant)), summary = concat!("Read a variant of ", $a_word), tag = $tag,
            security(("key" = ["view_workflows"])), params(($variant_key = Uuid, Path)),
            responses((status = 200, body = VariantAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn fetch_variant(Scoped(scope, _): Scoped<ViewWorkflows>, State(app): State<App>, PathOf(id): PathOf<VariantId>) -> ApiResult<Json<VariantAnswer>> {
            Ok(Json(app.workflows.variant(scope, FAMILY, id).await?.into()))
        }

        #[utoipa::path(post, path = concat!($root, "/variants/{", $variant_key, "}/archive"), operation_id = concat!("archive_", stringify!($variant)), summary = concat!("Archive a variant of ", $a_word), tag = $tag,
            security(("key" = ["edit_workflows"])), params(($variant_key = Uuid, Path)),
            responses((status = 200, body = VariantAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn archive_variant(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, PathOf(id): PathOf<VariantId>) -> ApiResult<Json<VariantAnswer>> {
            Ok(Json(app.workflows.archive_variant(scope, FAMILY, id, true).await?.into()))
        }

        #[utoipa::path(post, path = concat!($root, "/variants/{", $variant_key, "}/unarchive"), operation_id = concat!("unarchive_", stringify!($variant)), summary = concat!("Bring a variant of ", $a_word, " back"), tag = $tag,
            security(("key" = ["edit_workflows"])), params(($variant_key = Uuid, Path)),
            responses((status = 200, body = VariantAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn unarchive_variant(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, PathOf(id): PathOf<VariantId>) -> ApiResult<Json<VariantAnswer>> {
            Ok(Json(app.workflows.archive_variant(scope, FAMILY, id, false).await?.into()))
        }

        #[utoipa::path(post, path = concat!($root, "/variants/query"), operation_id = concat!("query_", stringify!($variants)), summary = concat!("List variants of ", $words, ", newest first"), tag = $tag,
            security(("key" = ["view_workflows"])), request_body = QueryVariants, responses((status = 200, body = VariantsAnswer)))]
        pub(crate) async fn query_variants(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            OptionalPayload(body): OptionalPayload<QueryVariants>,
        ) -> ApiResult<Json<VariantsAnswer>> {
            let VariantFilter { $artifact_id: artifact, slug, name } = body.$variant.unwrap_or_default();
            let ask = Ask {
                filter: FilterBody { slug, name },
                artifact_refs: refs(body.$artifact_refs, artifact),
                variant_refs: refs(body.$variant_refs, None),
                include_archived: body.include_archived.unwrap_or(false),
                windowing: body.windowing.unwrap_or_default(),
                ..Ask::default()
            };
            let page = histories::variants(&app, scope, FAMILY, ask).await?;
            let rows: Vec<Variant> = page.rows.into_iter().map(Into::into).collect();
            Ok(Json(VariantsAnswer { count: rows.len(), $variants: rows, windowing: next(page.next) }))
        }

        #[utoipa::path(post, path = concat!($root, "/variants/fork"), operation_id = concat!("fork_", stringify!($variant)), summary = concat!("Fork a variant of ", $a_word), tag = $tag,
            security(("key" = ["edit_workflows"])), request_body = ForkVariant,
            responses((status = 200, body = VariantAnswer), (status = 404, description = "No such variant"), (status = 409, description = "The slug is taken")))]
        pub(crate) async fn fork(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, Payload(body): Payload<ForkVariant>) -> ApiResult<Json<VariantAnswer>> {
            if body.$revision_ref.is_some() {
                return Err(ApiError::bad_request(concat!("A fork begins with the newest data: leave `", stringify!($revision_ref), "` out.")));
            }
            let source = histories::fork_source(&app, scope, FAMILY, body.$variant.$variant_id, body.$variant_ref.as_ref()).await?;
            let (variant, revision) = app.workflows.fork(scope, FAMILY, source, &body.$variant.slug, body.$variant.name).await?;
            Ok(Json(VariantAnswer { $revision: Some(revision.into()), ..variant.into() }))
        }

        #[utoipa::path(post, path = concat!($root, "/revisions/commit"), operation_id = concat!("commit_", stringify!($revision)), summary = concat!("Commit a revision of ", $a_word), tag = $tag,
            security(("key" = ["edit_workflows"])), request_body = CommitRevision,
            responses((status = 200, body = CommitAnswer), (status = 400, description = "Both of data and delta, or neither where there is data"), (status = 404, description = "No such variant"),
                (status = 409, description = "There is a newer revision than the one named"), (status = 422, description = "The data cannot be taken")))]
        pub(crate) async fn commit(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, Payload(body): Payload<CommitRevision>) -> ApiResult<Json<CommitAnswer>> {
            let NewRevision { $variant_id: variant, data, delta, base_revision_id, message } = body.$revision;
            let change = histories::change(FAMILY, data, delta)?;
            let new = ::workflows::NewRevision { variant: variant.into(), change, base: base_revision_id, message, is_own: false };
            Ok(Json(app.workflows.commit(scope, FAMILY, new).await?.into()))
        }

        #[utoipa::path(get, path = concat!($root, "/revisions/{", $revision_key, "}"), operation_id = concat!("fetch_", stringify!($revision)), summary = concat!("Read a revision of ", $a_word), tag = $tag,
            security(("key" = ["view_workflows"])), params(($revision_key = Uuid, Path)),
            responses((status = 200, body = RevisionAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn fetch_revision(Scoped(scope, _): Scoped<ViewWorkflows>, State(app): State<App>, PathOf(id): PathOf<RevisionId>) -> ApiResult<Json<RevisionAnswer>> {
            Ok(Json(app.workflows.revision(scope, FAMILY, id).await?.into()))
        }

        #[utoipa::path(post, path = concat!($root, "/revisions/{", $revision_key, "}/archive"), operation_id = concat!("archive_", stringify!($revision)), summary = concat!("Archive a revision of ", $a_word), tag = $tag,
            security(("key" = ["edit_workflows"])), params(($revision_key = Uuid, Path)),
            responses((status = 200, body = RevisionAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn archive_revision(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, PathOf(id): PathOf<RevisionId>) -> ApiResult<Json<RevisionAnswer>> {
            Ok(Json(app.workflows.archive_revision(scope, FAMILY, id, true).await?.into()))
        }

        #[utoipa::path(post, path = concat!($root, "/revisions/{", $revision_key, "}/unarchive"), operation_id = concat!("unarchive_", stringify!($revision)), summary = concat!("Bring a revision of ", $a_word, " back"), tag = $tag,
            security(("key" = ["edit_workflows"])), params(($revision_key = Uuid, Path)),
            responses((status = 200, body = RevisionAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn unarchive_revision(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>, PathOf(id): PathOf<RevisionId>) -> ApiResult<Json<RevisionAnswer>> {
            Ok(Json(app.workflows.archive_revision(scope, FAMILY, id, false).await?.into()))
        }

        #[utoipa::path(post, path = concat!($root, "/revisions/query"), operation_id = concat!("query_", stringify!($revisions)), summary = concat!("List revisions of ", $words, ", newest first"), tag = $tag,
            security(("key" = ["view_workflows"])), request_body = QueryRevisions, responses((status = 200, body = RevisionsAnswer)))]
        pub(crate) async fn query_revisions(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            OptionalPayload(body): OptionalPayload<QueryRevisions>,
        ) -> ApiResult<Json<RevisionsAnswer>> {
            let RevisionFilter { $artifact_id: artifact, $variant_id: variant, slug, name } = body.$revision.unwrap_or_default();
            let ask = Ask {
                filter: FilterBody { slug, name },
                artifact_refs: refs(body.$artifact_refs, artifact),
                variant_refs: refs(body.$variant_refs, variant),
                revision_refs: refs(body.$revision_refs, None),
                include_archived: body.include_archived.unwrap_or(false),
                windowing: body.windowing.unwrap_or_default(),
            };
            let page = histories::revisions(&app, scope, FAMILY, ask).await?;
            let rows: Vec<Revision> = page.rows.into_iter().map(Into::into).collect();
            Ok(Json(RevisionsAnswer { count: rows.len(), $revisions: rows, windowing: next(page.next) }))
        }

        #[utoipa::path(post, path = concat!($root, "/revisions/log"), operation_id = concat!("log_", stringify!($revisions)), summary = "Read the history of a variant, newest first", tag = $tag,
            security(("key" = ["view_workflows"])), request_body = LogRevisions, responses((status = 200, body = RevisionsAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn log(Scoped(scope, _): Scoped<ViewWorkflows>, State(app): State<App>, Payload(body): Payload<LogRevisions>) -> ApiResult<Json<RevisionsAnswer>> {
            let LogStart { $artifact_id: artifact, $variant_id: variant, $revision_id: revision, depth } = body.$revision.or(body.$revisions).unwrap_or_default();
            let start = histories::log_start(&app, scope, FAMILY, [artifact, variant, revision]).await?;
            let rows = histories::log(&app, scope, FAMILY, start, depth).await?;
            let rows: Vec<Revision> = rows.into_iter().map(Into::into).collect();
            Ok(Json(RevisionsAnswer { count: rows.len(), $revisions: rows, windowing: None }))
        }

        #[utoipa::path(post, path = concat!($root, "/revisions/retrieve"), operation_id = concat!("retrieve_", stringify!($revision)), summary = concat!("Find a revision of ", $a_word, " by references"), tag = $tag,
            security(("key" = ["view_workflows"])), request_body = RetrieveRevision,
            responses((status = 200, body = RevisionAnswer), (status = 400, description = "The references name nothing, or do not agree"), (status = 404, description = "Not there, archived or not deployed")))]
        pub(crate) async fn retrieve(Scoped(scope, _): Scoped<ViewWorkflows>, State(app): State<App>, Payload(body): Payload<RetrieveRevision>) -> ApiResult<Json<RevisionAnswer>> {
            let found = histories::retrieve(&app, scope, FAMILY, &body.references, body.key.as_deref()).await?;
            let retrieval_info = Some(RetrievalInfo::of(FAMILY, &found));
            let mut revision = found.revision;
            let mut resolution_info = None;
            if let Some(data) = revision.data.take_if(|_| body.resolve) {
                let (data, info) = histories::resolve(&app, scope, data, &EmbedOptions::default()).await?;
                (revision.data, resolution_info) = (Some(data), Some(info));
            }
            Ok(Json(RevisionAnswer { resolution_info, retrieval_info, ..revision.into() }))
        }

        #[utoipa::path(post, path = concat!($root, "/revisions/resolve"), operation_id = concat!("resolve_", stringify!($revision)), summary = concat!("Read a revision of ", $a_word, " with its embeds in place"), tag = $tag,
            security(("key" = ["view_workflows"])), request_body = ResolveRevision,
            responses((status = 200, body = ResolveAnswer), (status = 400, description = "An embed cannot be resolved; the message names its place"), (status = 404, description = "Not there or archived")))]
        pub(crate) async fn resolve(Scoped(scope, _): Scoped<ViewWorkflows>, State(app): State<App>, Payload(body): Payload<ResolveRevision>) -> ApiResult<Json<ResolveAnswer>> {
            let (mut revision, retrieval_info) = match body.$revision {
                Some(given) => (Value::Object(given), None),
                None => {
                    let found = histories::retrieve(&app, scope, FAMILY, &body.references, body.key.as_deref()).await?;
                    let info = RetrievalInfo::of(FAMILY, &found);
                    (json!(Revision::from(found.revision)), Some(info))
                }
            };
            let Some(data) = revision.get_mut("data").map(Value::take) else {
                return Err(ApiError::bad_request("The revision has no data, so there is nothing to resolve."));
            };
            let (data, resolution_info) = histories::resolve(&app, scope, data, &body.options).await?;
            revision["data"] = data;
            Ok(Json(ResolveAnswer { count: 1, $revision: revision, resolution_info, retrieval_info }))
        }
    };
}

pub(crate) use history;
