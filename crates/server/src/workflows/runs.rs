//! `GET /workflows/runs` and the secret that signs runs over HTTP.

use ::workflows::{Run, RunFilter, StepRecord};
use axum::extract::State;
use kernel::{ArtifactId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditWorkflows, ViewWorkflows};
use crate::edge::{ApiResult, Json, PathOf, QueryOf, Scoped};

/// A run for the record.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunBody {
    pub id: Uuid,
    pub workflow_id: Uuid,
    pub workflow_revision_id: Uuid,
    pub key_id: Uuid,
    #[schema(inline, value_type = crate::shapes::RunWord)]
    pub state: &'static str,
    pub status: RunStatus,
    /// What a step waits for, where the run stopped there: it goes on with the next try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Uuid>,
    #[schema(value_type = Object)]
    pub inputs: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Value>,
    pub duration_ms: f64,
    pub created_at: String,
    /// What each step did, in order; only where one run is read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RunStep>,
}

/// What a step of a run did. Values above 16 KiB, or above 256 KiB for the whole run, are cut.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunStep {
    pub name: String,
    #[schema(example = "tools.native.github.CREATE_AN_ISSUE.github-main")]
    pub call: String,
    /// `done`, `failed`, `skipped`, `waiting` for an approval, `unknown` when it may have taken effect or not and is not repeated, or
    /// `unfinished` when the run ended before the step did.
    pub state: &'static str,
    /// The status of a failure, and why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
    pub started_at: String,
    pub duration_ms: f64,
    /// Says what was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl From<StepRecord> for RunStep {
    fn from(step: StepRecord) -> Self {
        Self {
            started_at: step.started_at().to_string(),
            duration_ms: step.duration().as_secs_f64() * 1000.0,
            name: step.name,
            call: step.call,
            state: step.state.name(),
            status: step.code.map(|code| RunStatus { code, message: step.error }),
            arguments: step.arguments,
            result: step.result,
            note: step.note,
        }
    }
}

/// How a run ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunStatus {
    /// 2xx is success; 499 says that the caller went away.
    pub code: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl From<Run> for RunBody {
    fn from(run: Run) -> Self {
        Self {
            id: run.id.uuid(),
            workflow_id: run.workflow.uuid(),
            workflow_revision_id: run.revision.uuid(),
            key_id: run.key.uuid(),
            state: run.state().name(),
            approval_id: run.waits_for.map(|approval| approval.uuid()),
            status: RunStatus { code: run.code, message: run.message },
            inputs: run.inputs,
            outputs: run.outputs,
            duration_ms: run.duration.as_secs_f64() * 1000.0,
            created_at: run.created_at.to_string(),
            steps: run.steps.into_iter().map(Into::into).collect(),
        }
    }
}

/// An answer with one run.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunAnswer {
    pub count: usize,
    pub run: RunBody,
}

/// A page of runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunsAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub runs: Vec<RunBody>,
}

/// Which runs to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListRuns {
    pub workflow_id: Option<Uuid>,
    /// How they ended.
    #[param(inline, required = false, value_type = crate::shapes::RunWord)]
    pub state: Option<String>,
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    /// The `cursor` of the page before.
    pub cursor: Option<Uuid>,
}

/// List runs, newest first
#[utoipa::path(get, path = "/workflows/runs", operation_id = "list_workflow_runs", tag = "Workflows", security(("key" = ["view_workflows"])), params(ListRuns),
    responses((status = 200, body = RunsAnswer), (status = 422, description = "Not a state")))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewWorkflows>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListRuns>,
) -> ApiResult<Json<RunsAnswer>> {
    let ListRuns { workflow_id, state, limit, cursor } = list;
    let filter = RunFilter { workflow: workflow_id.map(ArtifactId::from), state, limit, cursor };
    let page = app.workflows.runs(scope, &filter).await?;
    Ok(Json(RunsAnswer { count: page.runs.len(), cursor: page.cursor, runs: page.runs.into_iter().map(Into::into).collect() }))
}

/// Read a run, with its steps
#[utoipa::path(get, path = "/workflows/runs/{run_id}", operation_id = "fetch_workflow_run", tag = "Workflows", security(("key" = ["view_workflows"])),
    params(("run_id" = Uuid, Path)), responses((status = 200, body = RunAnswer), (status = 404, description = "No such run")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewWorkflows>,
    State(app): State<App>,
    PathOf(id): PathOf<RunId>,
) -> ApiResult<Json<RunAnswer>> {
    Ok(Json(RunAnswer { count: 1, run: app.workflows.run(scope, id).await?.into() }))
}

/// The secret behind `X-Toolyard-Signature`.
#[derive(Serialize, ToSchema)]
pub struct SigningSecret {
    #[schema(example = "whs_…")]
    pub secret: String,
}

impl std::fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningSecret")
    }
}

/// Read the secret that signs the project's runs over HTTP
#[utoipa::path(get, path = "/workflows/signing-secret", operation_id = "fetch_workflow_signing_secret", tag = "Workflows", security(("key" = ["edit_workflows"])),
    responses((status = 200, body = SigningSecret)))]
pub(crate) async fn signing_secret(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>) -> Json<SigningSecret> {
    Json(SigningSecret { secret: app.workflows.signing_secret(scope.project) })
}
