//! `GET /workflows/runs` and the secret that signs runs over HTTP.

use ::workflows::{Run, RunFilter, RunState, StepRecord};
use agent_runs::{AgentRun, AgentRunFilter, RunError, RunState as AgentState, Used};
use axum::extract::State;
use document::{IntoParams, ToSchema};
use kernel::suggest::did_you_mean;
use kernel::{ArtifactId, Id, RunId, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditWorkflows, RunWorkflows, ViewWorkflows};
use crate::edge::{ApiError, ApiResult, Code, Json, PathOf, QueryOf, Scoped, end_user};

/// Every run of an agent that has not ended.
pub(crate) const OPEN: &str = "open";
/// Such a run, unless it waits for a person.
pub(crate) const RUNNING: &str = "running";

/// A run for the record.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunBody {
    pub id: Uuid,
    pub workflow_id: Uuid,
    pub workflow_revision_id: Uuid,
    pub key_id: Uuid,
    /// The end user whom it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_user_id: Option<Uuid>,
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
    /// For a run of an agent, where one run is read or open runs are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRunBody>,
}

/// Where a run of an agent stands.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentRunBody {
    /// `ready`, `running`, `waiting` for a person, `done`, `failed`, `limit` or `cancelled`.
    #[schema(value_type = crate::shapes::RunStateWord)]
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The approval that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Uuid>,
    /// Where a person decides about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_url: Option<String>,
    pub usage: RunUsage,
}

/// What a run of an agent has used.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunUsage {
    pub turns: u64,
    pub tool_calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The part of `input_tokens` that came from a cache.
    pub cached_input_tokens: u64,
    /// By the prices that the agent's author gave; 0 without them.
    pub usd: f64,
    /// The time in which it was at work.
    pub seconds: f64,
}

impl From<Used> for RunUsage {
    fn from(used: Used) -> Self {
        Self {
            turns: used.turns,
            tool_calls: used.tool_calls,
            input_tokens: used.tokens.input,
            output_tokens: used.tokens.output,
            cached_input_tokens: used.tokens.cached_input,
            usd: used.usd,
            seconds: used.active.as_secs_f64(),
        }
    }
}

impl RunBody {
    /// A run that has no record yet, or more to say than its record.
    async fn of_agent(app: &App, run: AgentRun) -> ApiResult<Self> {
        let approval_url = app.agent_runs.approval_url(&run).await?;
        let is_over = run.state.is_over();
        let ended = run.ended_at.unwrap_or_else(|| app.clock.now());
        let agent = AgentRunBody {
            state: run.state.name(),
            session_id: run.session,
            approval_id: run.approval.map(kernel::ApprovalId::uuid),
            approval_url,
            usage: run.used.into(),
        };
        #[expect(clippy::cast_precision_loss, reason = "a run takes far less than what a float holds exactly")]
        let duration_ms = ended.micros().saturating_sub(run.created_at.micros()) as f64 / 1000.0;
        Ok(Self {
            id: run.id.uuid(),
            workflow_id: run.workflow.uuid(),
            workflow_revision_id: run.revision.uuid(),
            key_id: run.key.uuid(),
            end_user_id: run.end_user.map(Id::uuid),
            state: word(run.state),
            approval_id: run.approval.map(kernel::ApprovalId::uuid),
            status: RunStatus { code: run.code.unwrap_or(202), message: run.message.filter(|_| is_over) },
            inputs: run.inputs,
            outputs: run.outputs,
            duration_ms,
            created_at: run.created_at.to_string(),
            steps: Vec::new(),
            agent: Some(agent),
        })
    }
}

/// What the state of an agent's run is called where runs of all kinds are.
fn word(state: AgentState) -> &'static str {
    match state {
        AgentState::Ready | AgentState::Running => RUNNING,
        AgentState::Waiting => RunState::Waiting.name(),
        AgentState::Done => RunState::Succeeded.name(),
        AgentState::Failed | AgentState::Limit => RunState::Failed.name(),
        AgentState::Cancelled => RunState::Cancelled.name(),
    }
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
            end_user_id: run.end_user.map(Id::uuid),
            state: run.state().name(),
            approval_id: run.waits_for.map(kernel::ApprovalId::uuid),
            status: RunStatus { code: run.code, message: run.message },
            inputs: run.inputs,
            outputs: run.outputs,
            duration_ms: run.duration.as_secs_f64() * 1000.0,
            created_at: run.created_at.to_string(),
            steps: run.steps.into_iter().map(Into::into).collect(),
            agent: None,
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
    /// How they ended. `open` lists the runs of agents that have not.
    #[param(inline, required = false, value_type = crate::shapes::RunFilterWord)]
    pub state: Option<String>,
    /// The runs that were made for one end user.
    #[param(inline, required = false, value_type = crate::shapes::EndUserText)]
    pub end_user: Option<String>,
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    /// The `cursor` of the page before.
    pub cursor: Option<Uuid>,
}

/// List runs, newest first
#[document::path(get, path = "/workflows/runs", operation_id = "list_workflow_runs", tag = "Workflows", security(("key" = ["view_workflows"])), params(ListRuns),
    responses((status = 200, body = RunsAnswer), (status = 422, description = "Not a state")))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewWorkflows>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListRuns>,
) -> ApiResult<Json<RunsAnswer>> {
    let ListRuns { workflow_id, state, end_user, limit, cursor } = list;
    let workflow = workflow_id.map(ArtifactId::from);
    let end_user = end_user::wanted(&app, scope, end_user.as_deref()).await?;
    let state = match state.as_deref() {
        None => None,
        Some(OPEN) => {
            let cursor = cursor.map(RunId::from);
            return list_open(scope, &app, AgentRunFilter { state: None, workflow, end_user, limit, cursor }).await;
        }
        Some(text) => Some(RunState::named(text).ok_or_else(|| unknown_state(text))?),
    };
    let filter = RunFilter { workflow, state, end_user, limit, cursor };
    let page = app.workflows.runs(scope, &filter).await?;
    Ok(Json(RunsAnswer { count: page.runs.len(), cursor: page.cursor, runs: page.runs.into_iter().map(Into::into).collect() }))
}

fn unknown_state(text: &str) -> ApiError {
    let known = || RunState::ALL.map(RunState::name).into_iter().chain([OPEN]);
    let (near, all) = (did_you_mean(text, known()), known().collect::<Vec<_>>().join(", "));
    ApiError::new(Code::FilterInvalid, format!("`{text}` is not a state of a run; there are {all}.{near}"))
}

async fn list_open(scope: Scope, app: &App, filter: AgentRunFilter) -> ApiResult<Json<RunsAnswer>> {
    let page = app.agent_runs.list(scope, &filter).await?;
    let mut runs = Vec::with_capacity(page.runs.len());
    for run in page.runs {
        runs.push(RunBody::of_agent(app, run).await?);
    }
    Ok(Json(RunsAnswer { count: runs.len(), cursor: page.cursor.map(|cursor| cursor.to_string()), runs }))
}

/// Read a run, with its steps
#[document::path(get, path = "/workflows/runs/{run_id}", operation_id = "fetch_workflow_run", tag = "Workflows", security(("key" = ["view_workflows"])),
    params(("run_id" = Uuid, Path)), responses((status = 200, body = RunAnswer), (status = 404, description = "No such run")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewWorkflows>,
    State(app): State<App>,
    PathOf(id): PathOf<RunId>,
) -> ApiResult<Json<RunAnswer>> {
    let body = match app.agent_runs.get(scope, id).await {
        Ok(run) => {
            let steps = app.agent_runs.steps(scope, id).await?;
            RunBody { steps: steps.into_iter().map(Into::into).collect(), ..RunBody::of_agent(&app, run).await? }
        }
        Err(RunError::NotFound) => app.workflows.run(scope, id).await?.into(),
        Err(error) => return Err(error.into()),
    };
    Ok(Json(RunAnswer { count: 1, run: body }))
}

/// Cancel a run of an agent
///
/// It ends at once, whichever node works on it. A call of a tool that is under way runs to its end. Runs of other workflows end with their
/// caller and cannot be cancelled.
#[document::path(post, path = "/workflows/runs/{run_id}/cancel", operation_id = "cancel_workflow_run", tag = "Workflows", security(("key" = ["run_workflows"])),
    params(("run_id" = Uuid, Path)), responses((status = 200, body = RunAnswer), (status = 404, description = "No such run"),
        (status = 409, description = "It has ended already, or ends with its caller")))]
pub(crate) async fn cancel(
    Scoped(scope, _): Scoped<RunWorkflows>,
    State(app): State<App>,
    PathOf(id): PathOf<RunId>,
) -> ApiResult<Json<RunAnswer>> {
    match app.agent_runs.cancel(scope, id).await {
        Ok(run) => Ok(Json(RunAnswer { count: 1, run: RunBody::of_agent(&app, run).await? })),
        Err(RunError::NotFound) => {
            app.workflows.run(scope, id).await?;
            Err(RunError::Ended("over").into())
        }
        Err(error) => Err(error.into()),
    }
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
#[document::path(get, path = "/workflows/signing-secret", operation_id = "fetch_workflow_signing_secret", tag = "Workflows", security(("key" = ["edit_workflows"])),
    responses((status = 200, body = SigningSecret)))]
pub(crate) async fn signing_secret(Scoped(scope, _): Scoped<EditWorkflows>, State(app): State<App>) -> Json<SigningSecret> {
    Json(SigningSecret { secret: app.workflows.signing_secret(scope.project) })
}
