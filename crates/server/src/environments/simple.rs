//! `/simple/environments`: an environment in one request, and its guard.

use ::workflows::Family;
use axum::Json;
use axum::extract::State;
use kernel::ArtifactId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::history::{Artifact, ArtifactAnswer};
use crate::App;
use crate::edge::auth::EditWorkflows;
use crate::edge::{ApiResult, PathOf, Payload, Scoped};
use crate::histories::NewArtifactBody;

/// A request to make an environment.
#[derive(Debug, Deserialize, ToSchema)]
pub struct CreateSimpleEnvironment {
    pub environment: NewSimpleEnvironment,
}

/// What a new environment shall be.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewSimpleEnvironment {
    #[serde(flatten)]
    pub artifact: NewArtifactBody,
    /// `{"references": {…}}`: what is deployed there from the start.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Value>,
}

/// An environment with what is deployed there.
#[derive(Debug, Serialize, ToSchema)]
pub struct SimpleEnvironment {
    #[serde(flatten)]
    pub artifact: Artifact,
    pub variant_id: Uuid,
    pub revision_id: Uuid,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub data: Option<Value>,
}

/// An answer with one environment.
#[derive(Debug, Serialize, ToSchema)]
pub struct SimpleEnvironmentAnswer {
    pub count: usize,
    pub environment: SimpleEnvironment,
}

/// Create an environment
#[utoipa::path(post, path = "/simple/environments", operation_id = "create_simple_environment", tag = "Environments", security(("key" = ["edit_workflows"])),
    request_body = CreateSimpleEnvironment, responses((status = 200, body = SimpleEnvironmentAnswer), (status = 409, description = "The slug is taken")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditWorkflows>,
    State(app): State<App>,
    Payload(body): Payload<CreateSimpleEnvironment>,
) -> ApiResult<Json<SimpleEnvironmentAnswer>> {
    let NewSimpleEnvironment { artifact, data } = body.environment;
    let (artifact, variant, revision) = app.workflows.create_simple(scope, Family::Environment, artifact.into(), data).await?;
    let environment = SimpleEnvironment {
        artifact: artifact.into(),
        variant_id: variant.id.uuid(),
        revision_id: revision.id.uuid(),
        version: revision.version.to_string(),
        data: revision.data,
    };
    Ok(Json(SimpleEnvironmentAnswer { count: 1, environment }))
}

/// Keep an environment from being deployed to
#[utoipa::path(post, path = "/simple/environments/{environment_id}/guard", operation_id = "guard_environment", tag = "Environments",
    security(("key" = ["edit_workflows"])), params(("environment_id" = Uuid, Path)),
    responses((status = 200, body = ArtifactAnswer), (status = 404, description = "No such environment")))]
pub(crate) async fn guard(
    Scoped(scope, _): Scoped<EditWorkflows>,
    State(app): State<App>,
    PathOf(id): PathOf<ArtifactId>,
) -> ApiResult<Json<ArtifactAnswer>> {
    Ok(Json(app.workflows.guard(scope, id, true).await?.into()))
}

/// Let an environment be deployed to again
#[utoipa::path(post, path = "/simple/environments/{environment_id}/unguard", operation_id = "unguard_environment", tag = "Environments",
    security(("key" = ["edit_workflows"])), params(("environment_id" = Uuid, Path)),
    responses((status = 200, body = ArtifactAnswer), (status = 404, description = "No such environment")))]
pub(crate) async fn unguard(
    Scoped(scope, _): Scoped<EditWorkflows>,
    State(app): State<App>,
    PathOf(id): PathOf<ArtifactId>,
) -> ApiResult<Json<ArtifactAnswer>> {
    Ok(Json(app.workflows.guard(scope, id, false).await?.into()))
}
