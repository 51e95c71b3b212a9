//! `POST /workflows/revisions/deploy`

use ::workflows::{Deploy, References};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::history::Revision;
use crate::App;
use crate::edge::auth::EditWorkflows;
use crate::edge::{ApiResult, Payload, Scoped};
use crate::environments;
use crate::histories::ReferenceFields;

/// Which revision to deploy, and where.
#[derive(Debug, Deserialize, ToSchema)]
pub struct DeployRevision {
    /// `{workflow slug}.revision` if it is left out.
    pub key: Option<String>,
    pub message: Option<String>,
    #[serde(flatten)]
    #[schema(value_type = ReferenceFields)]
    pub references: Map<String, Value>,
}

/// What is deployed now.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeployAnswer {
    pub count: usize,
    pub workflow_revision: Revision,
    pub environment_revision: environments::history::Revision,
    /// `committed`, or `no_change` when it was deployed there already.
    pub status: &'static str,
}

/// Deploy a revision to an environment
///
/// Name one workflow, variant or revision and one environment. From now on the environment leads to exactly this revision.
#[utoipa::path(post, path = "/workflows/revisions/deploy", operation_id = "deploy_workflow_revision", tag = "Workflows",
    security(("key" = ["edit_workflows"])), request_body = DeployRevision,
    responses((status = 200, body = DeployAnswer), (status = 404, description = "No such workflow or environment"), (status = 409, description = "The environment is guarded")))]
pub(crate) async fn deploy(
    Scoped(scope, _): Scoped<EditWorkflows>,
    State(app): State<App>,
    Payload(body): Payload<DeployRevision>,
) -> ApiResult<Json<DeployAnswer>> {
    let references = References::read(&body.references)?;
    let deployed = app.workflows.deploy(scope, Deploy { references, key: body.key, message: body.message }).await?;
    let status = if deployed.environment.changed { "committed" } else { "no_change" };
    Ok(Json(DeployAnswer {
        count: 1,
        workflow_revision: deployed.revision.into(),
        environment_revision: deployed.environment.revision.into(),
        status,
    }))
}
