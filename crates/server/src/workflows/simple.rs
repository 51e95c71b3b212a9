//! `/simple/workflows`: a workflow with its variant and data in one request.

use ::workflows::{Family, References};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::history::Artifact;
use crate::App;
use crate::edge::auth::{EditWorkflows, ViewWorkflows};
use crate::edge::{ApiResult, PathOf, Payload, Scoped};
use crate::histories::NewArtifactBody;

/// A request to make a workflow with its data.
#[derive(Debug, Deserialize, ToSchema)]
pub struct CreateSimpleWorkflow {
    pub workflow: NewSimpleWorkflow,
}

/// What a new workflow shall be and do.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewSimpleWorkflow {
    #[serde(flatten)]
    pub artifact: NewArtifactBody,
    /// What the first version holds.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Value>,
}

/// A workflow with the newest data of its default variant.
#[derive(Debug, Serialize, ToSchema)]
pub struct SimpleWorkflow {
    #[serde(flatten)]
    pub artifact: Artifact,
    pub variant_id: Uuid,
    pub revision_id: Uuid,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub data: Option<Value>,
}

/// An answer with one workflow.
#[derive(Debug, Serialize, ToSchema)]
pub struct SimpleWorkflowAnswer {
    pub count: usize,
    pub workflow: SimpleWorkflow,
}

type Parts = (::workflows::Artifact, ::workflows::Variant, ::workflows::Revision);

fn answer((artifact, variant, revision): Parts) -> Json<SimpleWorkflowAnswer> {
    let workflow = SimpleWorkflow {
        artifact: artifact.into(),
        variant_id: variant.id.uuid(),
        revision_id: revision.id.uuid(),
        version: revision.version.to_string(),
        data: revision.data,
    };
    Json(SimpleWorkflowAnswer { count: 1, workflow })
}

/// Create a workflow with its data
///
/// Makes the workflow, a variant of the same slug, an empty version 0 and, with `data`, version 1.
#[utoipa::path(post, path = "/simple/workflows", operation_id = "create_simple_workflow", tag = "Workflows", security(("key" = ["edit_workflows"])),
    request_body = CreateSimpleWorkflow, responses((status = 200, body = SimpleWorkflowAnswer), (status = 409, description = "The slug is taken")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditWorkflows>,
    State(app): State<App>,
    Payload(body): Payload<CreateSimpleWorkflow>,
) -> ApiResult<Json<SimpleWorkflowAnswer>> {
    let NewSimpleWorkflow { artifact, data } = body.workflow;
    Ok(answer(app.workflows.create_simple(scope, Family::Workflow, artifact.into(), data).await?))
}

/// Read a workflow with its newest data
#[utoipa::path(get, path = "/simple/workflows/{workflow_id}", operation_id = "fetch_simple_workflow", tag = "Workflows", security(("key" = ["view_workflows"])),
    params(("workflow_id" = Uuid, Path)), responses((status = 200, body = SimpleWorkflowAnswer), (status = 404, description = "No such workflow")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewWorkflows>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<SimpleWorkflowAnswer>> {
    let found = app.workflows.retrieve(scope, &References::artifact(id), None).await?;
    Ok(answer((found.artifact, found.variant, found.revision)))
}
