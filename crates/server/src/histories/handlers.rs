//! The handlers of one family's history, written once for all. The names of operations stand where a family is made, so that they can be
//! found by them.

/// A family's history: its bodies in a module of their own, and its handlers.
macro_rules! history {
    (
        family: $family:ident, schema: $schema:ident, tag: $tag:tt, references: $references:path, words: [$a_word:tt, $words:tt],
        artifact: $artifact:tt, variant: $variant:tt, revision: $revision:tt,
        create: [$create:tt, $create_path:tt],
        fetch: $fetch:tt, edit: $edit:tt, at: [$path:tt, $id:tt],
        archive: [$archive:tt, $archive_path:tt], unarchive: [$unarchive:tt, $unarchive_path:tt],
        query: [$query:tt, $query_path:tt],
        create_variant: [$create_variant:tt, $create_variant_path:tt],
        fetch_variant: $fetch_variant:tt, edit_variant: $edit_variant:tt, variant_at: [$variant_path:tt, $variant_id:tt],
        archive_variant: [$archive_variant:tt, $archive_variant_path:tt],
        unarchive_variant: [$unarchive_variant:tt, $unarchive_variant_path:tt],
        query_variants: [$query_variants:tt, $query_variants_path:tt],
        fork: [$fork:tt, $fork_path:tt],
        create_revision: [$create_revision:tt, $create_revision_path:tt],
        commit: [$commit:tt, $commit_path:tt],
        fetch_revision: $fetch_revision:tt, edit_revision: $edit_revision:tt, revision_at: [$revision_path:tt, $revision_id:tt],
        archive_revision: [$archive_revision:tt, $archive_revision_path:tt],
        unarchive_revision: [$unarchive_revision:tt, $unarchive_revision_path:tt],
        query_revisions: [$query_revisions:tt, $query_revisions_path:tt],
        log: [$log:tt, $log_path:tt],
        retrieve: [$retrieve:tt, $retrieve_path:tt],
        resolve: [$resolve:tt, $resolve_path:tt],
    ) => {
        use axum::extract::State;
        use kernel::{ArtifactId, RevisionId, VariantId};

        use $crate::App;
        use $crate::edge::auth::{EditWorkflows, ViewWorkflows};
        use $crate::edge::{ApiResult, Json, OptionalPayload, PathOf, Payload, Scoped};
        use $crate::histories::{self, EditBody, FilterParams, FilterPairs};

        pub use bodies::*;

        const FAMILY: ::workflows::Family = ::workflows::Family::$family;

        mod bodies {
            use kernel::Timestamp;
            use serde::{Deserialize, Serialize};
            use serde_json::{Map, Value};
            use document::ToSchema;
            use uuid::Uuid;

            use $crate::histories::{
                self, CommitRequest, DeltaBody, EditBody, FilterBody, FoundRevision, HistoryQuery, LogRequest, NewArtifactBody, NextBody, Page,
                RefBody, ResolutionInfo, ResolveRequest, ResolvedRevision, RetrievalInfo, RetrieveRequest, VersionedRef, WindowingBody, refs,
                words,
            };

            $crate::histories::answers! {
                family: $family, schema: $schema, words: [$a_word, $words], artifact: $artifact, variant: $variant, revision: $revision,
            }
            $crate::histories::requests! {
                family: $family, schema: $schema, references: $references, words: [$a_word, $words],
                artifact: $artifact, variant: $variant, revision: $revision,
            }
        }

        #[document::path(post, path = $create_path, operation_id = $create, tag = $tag, summary = concat!("Create ", $a_word),
            security(("key" = ["edit_workflows"])), request_body = CreateArtifact,
            responses((status = 200, body = ArtifactAnswer), (status = 409, description = "The slug is taken")))]
        pub(crate) async fn create(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<CreateArtifact>,
        ) -> ApiResult<Json<ArtifactAnswer>> {
            Ok(Json(app.workflows.create_artifact(scope, FAMILY, body.into()).await?.into()))
        }

        #[document::path(get, path = $path, operation_id = $fetch, tag = $tag, summary = concat!("Read ", $a_word),
            security(("key" = ["view_workflows"])), params(($id = Uuid, Path)),
            responses((status = 200, body = ArtifactAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn fetch(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<ArtifactId>,
        ) -> ApiResult<Json<ArtifactAnswer>> {
            Ok(Json(app.workflows.artifact(scope, FAMILY, id).await?.into()))
        }

        #[document::path(put, path = $path, operation_id = $edit, tag = $tag, summary = concat!("Change the words of ", $a_word),
            security(("key" = ["edit_workflows"])), params(($id = Uuid, Path)), request_body = EditArtifact,
            responses((status = 200, body = ArtifactAnswer), (status = 400, description = "The ids in path and body differ"),
                (status = 404, description = "No such row, or it is archived")))]
        pub(crate) async fn edit(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<ArtifactId>,
            Payload(body): Payload<EditArtifact>,
        ) -> ApiResult<Json<ArtifactAnswer>> {
            let edit = EditBody::from(body).of(id.uuid())?;
            Ok(Json(app.workflows.edit(scope, FAMILY, id, edit).await?.into()))
        }

        #[document::path(post, path = $archive_path, operation_id = $archive, tag = $tag, summary = concat!("Archive ", $a_word),
            security(("key" = ["edit_workflows"])), params(($id = Uuid, Path)),
            responses((status = 200, body = ArtifactAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn archive(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<ArtifactId>,
        ) -> ApiResult<Json<ArtifactAnswer>> {
            Ok(Json(app.workflows.archive_artifact(scope, FAMILY, id, true).await?.into()))
        }

        #[document::path(post, path = $unarchive_path, operation_id = $unarchive, tag = $tag, summary = concat!("Bring ", $a_word, " back"),
            security(("key" = ["edit_workflows"])), params(($id = Uuid, Path)),
            responses((status = 200, body = ArtifactAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn unarchive(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<ArtifactId>,
        ) -> ApiResult<Json<ArtifactAnswer>> {
            Ok(Json(app.workflows.archive_artifact(scope, FAMILY, id, false).await?.into()))
        }

        #[document::path(post, path = $query_path, operation_id = $query, tag = $tag, summary = concat!("List ", $words, ", newest first"),
            security(("key" = ["view_workflows"])), params(FilterParams), request_body = QueryArtifacts,
            responses((status = 200, body = ArtifactsAnswer)))]
        pub(crate) async fn query(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            pairs: FilterPairs,
            OptionalPayload(body): OptionalPayload<QueryArtifacts>,
        ) -> ApiResult<Json<ArtifactsAnswer>> {
            Ok(Json(histories::artifacts(&app, scope, FAMILY, pairs.fill(FAMILY, body.into())?).await?.into()))
        }

        #[document::path(post, path = $create_variant_path, operation_id = $create_variant, tag = $tag,
            summary = concat!("Create a variant of ", $a_word), security(("key" = ["edit_workflows"])), request_body = CreateVariant,
            responses((status = 200, body = VariantAnswer), (status = 404, description = "What it shall belong to is not there"),
                (status = 409, description = "The slug is taken")))]
        pub(crate) async fn create_variant(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<CreateVariant>,
        ) -> ApiResult<Json<VariantAnswer>> {
            Ok(Json(app.workflows.create_variant(scope, FAMILY, body.into()).await?.into()))
        }

        #[document::path(get, path = $variant_path, operation_id = $fetch_variant, tag = $tag,
            summary = concat!("Read a variant of ", $a_word), security(("key" = ["view_workflows"])), params(($variant_id = Uuid, Path)),
            responses((status = 200, body = VariantAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn fetch_variant(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<VariantId>,
        ) -> ApiResult<Json<VariantAnswer>> {
            Ok(Json(app.workflows.variant(scope, FAMILY, id).await?.into()))
        }

        #[document::path(put, path = $variant_path, operation_id = $edit_variant, tag = $tag,
            summary = concat!("Change the words of a variant of ", $a_word), security(("key" = ["edit_workflows"])),
            params(($variant_id = Uuid, Path)), request_body = EditVariant,
            responses((status = 200, body = VariantAnswer), (status = 400, description = "The ids in path and body differ"),
                (status = 404, description = "No such row, or it is archived")))]
        pub(crate) async fn edit_variant(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<VariantId>,
            Payload(body): Payload<EditVariant>,
        ) -> ApiResult<Json<VariantAnswer>> {
            let words = EditBody::from(body).of(id.uuid())?.words;
            Ok(Json(app.workflows.edit_variant(scope, FAMILY, id, words).await?.into()))
        }

        #[document::path(post, path = $archive_variant_path, operation_id = $archive_variant, tag = $tag,
            summary = concat!("Archive a variant of ", $a_word), description = "Its revisions are archived with it.",
            security(("key" = ["edit_workflows"])), params(($variant_id = Uuid, Path)),
            responses((status = 200, body = VariantAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn archive_variant(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<VariantId>,
        ) -> ApiResult<Json<VariantAnswer>> {
            Ok(Json(app.workflows.archive_variant(scope, FAMILY, id, true).await?.into()))
        }

        #[document::path(post, path = $unarchive_variant_path, operation_id = $unarchive_variant, tag = $tag,
            summary = concat!("Bring a variant of ", $a_word, " back"), description = "All its revisions come back with it.",
            security(("key" = ["edit_workflows"])), params(($variant_id = Uuid, Path)),
            responses((status = 200, body = VariantAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn unarchive_variant(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<VariantId>,
        ) -> ApiResult<Json<VariantAnswer>> {
            Ok(Json(app.workflows.archive_variant(scope, FAMILY, id, false).await?.into()))
        }

        #[document::path(post, path = $query_variants_path, operation_id = $query_variants, tag = $tag,
            summary = concat!("List variants of ", $words, ", newest first"), security(("key" = ["view_workflows"])), params(FilterParams),
            request_body = QueryVariants, responses((status = 200, body = VariantsAnswer)))]
        pub(crate) async fn query_variants(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            pairs: FilterPairs,
            OptionalPayload(body): OptionalPayload<QueryVariants>,
        ) -> ApiResult<Json<VariantsAnswer>> {
            Ok(Json(histories::variants(&app, scope, FAMILY, pairs.fill(FAMILY, body.into())?).await?.into()))
        }

        #[document::path(post, path = $fork_path, operation_id = $fork, tag = $tag, summary = concat!("Fork a variant of ", $a_word),
            description = "Copies every revision that is not archived, oldest first, up to the pinned one.",
            security(("key" = ["edit_workflows"])), request_body = ForkVariant,
            responses((status = 200, body = VariantAnswer), (status = 400, description = "No such variant or revision, or nothing to copy"),
                (status = 409, description = "The slug is taken")))]
        pub(crate) async fn fork(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<ForkVariant>,
        ) -> ApiResult<Json<VariantAnswer>> {
            Ok(Json(app.workflows.fork(scope, FAMILY, body.into()).await?.into()))
        }

        #[document::path(post, path = $create_revision_path, operation_id = $create_revision, tag = $tag,
            summary = concat!("Create the first revision of a variant of ", $a_word),
            description = "Version 0, without data; a commit carries data.", security(("key" = ["edit_workflows"])),
            request_body = CreateRevision,
            responses((status = 200, body = RevisionAnswer), (status = 404, description = "No such variant"),
                (status = 409, description = "The variant has a revision, or the slug is taken")))]
        pub(crate) async fn create_revision(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<CreateRevision>,
        ) -> ApiResult<Json<RevisionAnswer>> {
            Ok(Json(app.workflows.create_first(scope, FAMILY, body.into()).await?.into()))
        }

        #[document::path(post, path = $commit_path, operation_id = $commit, tag = $tag,
            summary = concat!("Commit a revision of ", $a_word), security(("key" = ["edit_workflows"])), request_body = CommitRevision,
            responses((status = 200, body = CommitAnswer),
                (status = 400, description = "Both of data and delta, or neither where there is data"),
                (status = 404, description = "No such variant"),
                (status = 409, description = "There is a newer revision than the one named, or the slug is taken"),
                (status = 422, description = "The data cannot be taken")))]
        pub(crate) async fn commit(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<CommitRevision>,
        ) -> ApiResult<Json<CommitAnswer>> {
            Ok(Json(histories::commit(&app, scope, FAMILY, body.into()).await?.into()))
        }

        #[document::path(get, path = $revision_path, operation_id = $fetch_revision, tag = $tag,
            summary = concat!("Read a revision of ", $a_word), security(("key" = ["view_workflows"])), params(($revision_id = Uuid, Path)),
            responses((status = 200, body = RevisionAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn fetch_revision(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<RevisionId>,
        ) -> ApiResult<Json<RevisionAnswer>> {
            Ok(Json(app.workflows.revision(scope, FAMILY, id).await?.into()))
        }

        #[document::path(put, path = $revision_path, operation_id = $edit_revision, tag = $tag,
            summary = concat!("Change the words of a revision of ", $a_word), description = "Its data, message and version never change.",
            security(("key" = ["edit_workflows"])), params(($revision_id = Uuid, Path)), request_body = EditRevision,
            responses((status = 200, body = RevisionAnswer), (status = 400, description = "The ids in path and body differ"),
                (status = 404, description = "No such row, or it is archived")))]
        pub(crate) async fn edit_revision(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<RevisionId>,
            Payload(body): Payload<EditRevision>,
        ) -> ApiResult<Json<RevisionAnswer>> {
            let words = EditBody::from(body).of(id.uuid())?.words;
            Ok(Json(app.workflows.edit_revision(scope, FAMILY, id, words).await?.into()))
        }

        #[document::path(post, path = $archive_revision_path, operation_id = $archive_revision, tag = $tag,
            summary = concat!("Archive a revision of ", $a_word), security(("key" = ["edit_workflows"])),
            params(($revision_id = Uuid, Path)),
            responses((status = 200, body = RevisionAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn archive_revision(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<RevisionId>,
        ) -> ApiResult<Json<RevisionAnswer>> {
            Ok(Json(app.workflows.archive_revision(scope, FAMILY, id, true).await?.into()))
        }

        #[document::path(post, path = $unarchive_revision_path, operation_id = $unarchive_revision, tag = $tag,
            summary = concat!("Bring a revision of ", $a_word, " back"), security(("key" = ["edit_workflows"])),
            params(($revision_id = Uuid, Path)),
            responses((status = 200, body = RevisionAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn unarchive_revision(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<RevisionId>,
        ) -> ApiResult<Json<RevisionAnswer>> {
            Ok(Json(app.workflows.archive_revision(scope, FAMILY, id, false).await?.into()))
        }

        #[document::path(post, path = $query_revisions_path, operation_id = $query_revisions, tag = $tag,
            summary = concat!("List revisions of ", $words, ", newest first"), security(("key" = ["view_workflows"])),
            params(FilterParams), request_body = QueryRevisions, responses((status = 200, body = RevisionsAnswer)))]
        pub(crate) async fn query_revisions(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            pairs: FilterPairs,
            OptionalPayload(body): OptionalPayload<QueryRevisions>,
        ) -> ApiResult<Json<RevisionsAnswer>> {
            Ok(Json(histories::revisions(&app, scope, FAMILY, pairs.fill(FAMILY, body.into())?).await?.into()))
        }

        #[document::path(post, path = $log_path, operation_id = $log, tag = $tag,
            summary = concat!("Read the history of a variant of ", $a_word, ", newest first"), description = "Archived revisions are passed over.",
            security(("key" = ["view_workflows"])), request_body = LogRevisions,
            responses((status = 200, body = RevisionsAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn log(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<LogRevisions>,
        ) -> ApiResult<Json<RevisionsAnswer>> {
            Ok(Json(histories::log(&app, scope, FAMILY, body.into()).await?.into()))
        }

        #[document::path(post, path = $retrieve_path, operation_id = $retrieve, tag = $tag,
            summary = concat!("Find a revision of ", $a_word, " by references"),
            description = "Archived rows are found too. Direct references that lead nowhere answer `count` 0.",
            security(("key" = ["view_workflows"])), request_body = RetrieveRevision,
            responses((status = 200, body = RevisionAnswer), (status = 400, description = "The references name nothing, or do not agree"),
                (status = 404, description = "Nothing is deployed there")))]
        pub(crate) async fn retrieve(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<RetrieveRevision>,
        ) -> ApiResult<Json<RevisionAnswer>> {
            Ok(Json(histories::retrieve(&app, scope, FAMILY, body.into()).await?.into()))
        }

        #[document::path(post, path = $resolve_path, operation_id = $resolve, tag = $tag,
            summary = concat!("Read a revision of ", $a_word, " with its embeds in place"), security(("key" = ["view_workflows"])),
            request_body = ResolveRevision,
            responses((status = 200, body = ResolveAnswer),
                (status = 400, description = "An embed cannot be resolved; the message names its place"),
                (status = 404, description = "Nothing is deployed there")))]
        pub(crate) async fn resolve(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<ResolveRevision>,
        ) -> ApiResult<Json<ResolveAnswer>> {
            Ok(Json(histories::resolve::<Revision>(&app, scope, FAMILY, body.into()).await?.into()))
        }
    };
}

pub(crate) use history;
