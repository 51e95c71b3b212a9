//! `POST /workflows/check`: whether data could be saved.

use ::workflows::Family;
use axum::extract::State;
use document::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::App;
use crate::edge::auth::EditWorkflows;
use crate::edge::{ApiResult, Json, Payload, Scoped};

/// What would be saved.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckWorkflow {
    pub workflow: Checked,
}

/// The data of a workflow, and the slug that it has or would have.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// A step may call the workflow of this slug, though it is not there yet.
    #[serde(default)]
    pub slug: String,
    #[schema(value_type = Object)]
    pub data: Value,
}

/// That the data could be saved.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckAnswer {
    pub count: usize,
    /// What its steps call, in their order.
    pub calls: Vec<String>,
}

/// Check the data of a workflow
///
/// Looks at it as a save does, its shape and whether the tools, workflows, secrets and inputs that it names are there, and saves nothing.
#[document::path(post, path = "/workflows/check", operation_id = "check_workflow", tag = "Workflows", security(("key" = ["edit_workflows"])),
    request_body = CheckWorkflow, responses((status = 200, body = CheckAnswer), (status = 422, description = "The data cannot be taken")))]
pub(crate) async fn check(
    Scoped(scope, _): Scoped<EditWorkflows>,
    State(app): State<App>,
    Payload(body): Payload<CheckWorkflow>,
) -> ApiResult<Json<CheckAnswer>> {
    let Checked { slug, data } = body.workflow;
    let calls = app.workflows.check(scope, Family::Workflow, &slug, &data).await?;
    Ok(Json(CheckAnswer { count: calls.len(), calls: calls.iter().map(ToString::to_string).collect() }))
}
