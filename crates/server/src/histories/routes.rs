//! The handlers of one family's history, written once for both.

/// The routes of one family below its root: the same handlers with the family's own field names.
macro_rules! routes {
    (
        schema: $schema:ident, tag: $tag:literal, root: $root:literal, words: [$a_word:literal, $words:literal],
        artifact: [$artifact:ident, $artifacts:ident, $artifact_id:ident, $artifact_key:literal, $artifact_refs:ident],
        variant: [$variant:ident, $variants:ident, $variant_id:ident, $variant_key:literal, $variant_refs:ident, $variant_ref:ident],
        revision: [$revision:ident, $revisions:ident, $revision_id:ident, $revision_key:literal, $revision_refs:ident, $revision_ref:ident],
    ) => {
        use axum::Json;
        use axum::extract::State;
        use kernel::{ArtifactId, RevisionId, VariantId};
        use serde_json::json;

        use crate::App;
        use crate::edge::auth::{EditWorkflows, ViewWorkflows};
        use crate::edge::{ApiError, ApiResult, OptionalPayload, PathOf, Payload, Scoped};
        use crate::histories::{Ask, RetrieveRevision};

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

pub(crate) use routes;
