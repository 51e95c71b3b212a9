//! `/simple/…` of one family, written once for all: an artifact with its default variant and the newest data there, in one request.

/// A family's simple routes, with the rows of its history.
macro_rules! simple {
    (
        family: $family:ident, schema: $schema:ident, tag: $tag:tt, words: [$a_word:tt, $words:tt],
        names: [$artifact:ident, $artifacts:ident],
        create: [$create:tt, $create_path:tt],
        fetch: $fetch:tt, edit: $edit:tt, at: [$path:tt, $id:tt],
        archive: [$archive:tt, $archive_path:tt], unarchive: [$unarchive:tt, $unarchive_path:tt],
        query: [$query:tt, $query_path:tt],
    ) => {
        use axum::extract::State;
        use kernel::ArtifactId;
        use serde::{Deserialize, Serialize};
        use serde_json::{Map, Value};
        use document::ToSchema;
        use uuid::Uuid;

        use $crate::App;
        use $crate::edge::auth::{EditWorkflows, ViewWorkflows};
        use $crate::edge::{ApiResult, Json, OptionalPayload, PathOf, Payload, Scoped};
        use $crate::histories::{self, EditBody, FilterPairs, FilterParams, NewArtifactBody, NextBody, Page};
        use super::history::{Artifact, QueryArtifacts};

        const FAMILY: ::workflows::Family = ::workflows::Family::$family;

        #[doc = concat!("A request to make ", $a_word, " with its data.")]
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::CreateSimple)]
        pub struct CreateSimple {
            pub $artifact: NewSimple,
        }

        #[doc = concat!("What ", $a_word, " shall be and hold from the start.")]
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::NewSimple)]
        pub struct NewSimple {
            #[serde(flatten)]
            pub artifact: NewArtifactBody,
            /// What the first version holds.
            #[schema(value_type = Option<Object>)]
            pub data: Option<Value>,
        }

        #[doc = concat!("A request to change ", $a_word, ".")]
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::EditSimple)]
        pub struct EditSimple {
            pub $artifact: SimpleEdit,
        }

        /// New words, and new data; what is left out stays.
        #[derive(Debug, Deserialize, ToSchema)]
        #[schema(as = $schema::SimpleEdit)]
        pub struct SimpleEdit {
            /// The same as in the path, or left out.
            pub id: Option<Uuid>,
            #[schema(value_type = Option<crate::shapes::NameText>)]
            pub name: Option<String>,
            pub description: Option<String>,
            #[schema(value_type = Option<Object>)]
            pub flags: Option<Map<String, Value>>,
            pub tags: Option<Value>,
            #[schema(value_type = Option<Object>)]
            pub meta: Option<Map<String, Value>>,
            /// A new version of the default variant.
            #[schema(value_type = Option<Object>)]
            pub data: Option<Value>,
        }

        #[doc = concat!("What ", $a_word, " is, with the newest data of its default variant.")]
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::Simple)]
        pub struct Simple {
            #[serde(flatten)]
            pub artifact: Artifact,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub variant_id: Option<Uuid>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub revision_id: Option<Uuid>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub version: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<Object>)]
            pub data: Option<Value>,
        }

        impl From<::workflows::Simple> for Simple {
            fn from(row: ::workflows::Simple) -> Self {
                let flags = histories::simple_flags(FAMILY, &row);
                let ::workflows::Simple { artifact, variant, revision } = row;
                let artifact = Artifact { flags, ..artifact.into() };
                let variant_id = variant.map(|id| id.uuid());
                let revision_id = revision.as_ref().map(|revision| revision.id.uuid());
                let version = revision.as_ref().map(|revision| revision.version.to_string());
                Self { artifact, variant_id, revision_id, version, data: revision.and_then(|revision| revision.data) }
            }
        }

        #[doc = concat!("An answer with ", $a_word, " and its data.")]
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::SimpleAnswer)]
        pub struct SimpleAnswer {
            pub count: usize,
            pub $artifact: Simple,
        }

        impl From<::workflows::Simple> for SimpleAnswer {
            fn from(row: ::workflows::Simple) -> Self {
                Self { count: 1, $artifact: row.into() }
            }
        }

        #[doc = concat!("A page of ", $words, " with their data, newest first.")]
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema::SimplesAnswer)]
        pub struct SimplesAnswer {
            pub count: usize,
            pub $artifacts: Vec<Simple>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub windowing: Option<NextBody>,
        }

        impl From<Page<::workflows::Simple>> for SimplesAnswer {
            fn from(page: Page<::workflows::Simple>) -> Self {
                let (rows, windowing) = page.bodies::<Simple>();
                Self { count: rows.len(), $artifacts: rows, windowing }
            }
        }

        #[document::path(post, path = $create_path, operation_id = $create, tag = $tag, summary = concat!("Create ", $a_word, " with its data"),
            description = "Makes a variant of the same slug, an empty version 0 and, with `data`, version 1.",
            security(("key" = ["edit_workflows"])), request_body = CreateSimple,
            responses((status = 200, body = SimpleAnswer), (status = 409, description = "The slug is taken")))]
        pub(crate) async fn create(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            Payload(body): Payload<CreateSimple>,
        ) -> ApiResult<Json<SimpleAnswer>> {
            let NewSimple { artifact, data } = body.$artifact;
            Ok(Json(app.workflows.create_simple(scope, FAMILY, artifact.into(), data).await?.into()))
        }

        #[document::path(get, path = $path, operation_id = $fetch, tag = $tag, summary = concat!("Read ", $a_word, " with its newest data"),
            security(("key" = ["view_workflows"])), params(($id = Uuid, Path)),
            responses((status = 200, body = SimpleAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn fetch(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<ArtifactId>,
        ) -> ApiResult<Json<SimpleAnswer>> {
            Ok(Json(app.workflows.simple(scope, FAMILY, id).await?.into()))
        }

        #[document::path(put, path = $path, operation_id = $edit, tag = $tag, summary = concat!("Change ", $a_word, " and its data"),
            description = "With `data` a new version of the default variant is made; without, its data stays.",
            security(("key" = ["edit_workflows"])), params(($id = Uuid, Path)), request_body = EditSimple,
            responses((status = 200, body = SimpleAnswer), (status = 400, description = "The ids in path and body differ"),
                (status = 404, description = "No such row, or it is archived")))]
        pub(crate) async fn edit(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<ArtifactId>,
            Payload(body): Payload<EditSimple>,
        ) -> ApiResult<Json<SimpleAnswer>> {
            let SimpleEdit { id: named, name, description, flags, tags, meta, data } = body.$artifact;
            let edit = EditBody { id: named, name, description, flags, tags, meta }.of(id.uuid())?;
            Ok(Json(app.workflows.edit_simple(scope, FAMILY, id, edit, data).await?.into()))
        }

        #[document::path(post, path = $archive_path, operation_id = $archive, tag = $tag, summary = concat!("Archive ", $a_word, " as a whole"),
            security(("key" = ["edit_workflows"])), params(($id = Uuid, Path)),
            responses((status = 200, body = SimpleAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn archive(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<ArtifactId>,
        ) -> ApiResult<Json<SimpleAnswer>> {
            app.workflows.archive_artifact(scope, FAMILY, id, true).await?;
            Ok(Json(app.workflows.simple(scope, FAMILY, id).await?.into()))
        }

        #[document::path(post, path = $unarchive_path, operation_id = $unarchive, tag = $tag,
            summary = concat!("Bring ", $a_word, " back as a whole"), security(("key" = ["edit_workflows"])), params(($id = Uuid, Path)),
            responses((status = 200, body = SimpleAnswer), (status = 404, description = "No such row")))]
        pub(crate) async fn unarchive(
            Scoped(scope, _): Scoped<EditWorkflows>,
            State(app): State<App>,
            PathOf(id): PathOf<ArtifactId>,
        ) -> ApiResult<Json<SimpleAnswer>> {
            app.workflows.archive_artifact(scope, FAMILY, id, false).await?;
            Ok(Json(app.workflows.simple(scope, FAMILY, id).await?.into()))
        }

        #[document::path(post, path = $query_path, operation_id = $query, tag = $tag,
            summary = concat!("List ", $words, " with their newest data, newest first"),
            description = "Flags are those of the newest revision.", security(("key" = ["view_workflows"])),
            params(FilterParams), request_body = QueryArtifacts, responses((status = 200, body = SimplesAnswer)))]
        pub(crate) async fn query(
            Scoped(scope, _): Scoped<ViewWorkflows>,
            State(app): State<App>,
            pairs: FilterPairs,
            OptionalPayload(body): OptionalPayload<QueryArtifacts>,
        ) -> ApiResult<Json<SimplesAnswer>> {
            Ok(Json(histories::simples(&app, scope, FAMILY, pairs.fill(FAMILY, body.into())?).await?.into()))
        }
    };
}

pub(crate) use simple;
