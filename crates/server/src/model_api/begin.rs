//! From a question to the run that answers it: a new one, or one that waited for a person.

use std::time::Duration;

use ::workflows::{Family, InvokeRequest, Query, References};
use agent_runs::stream::run_named;
use calls::CallError;
use http::{HeaderMap, StatusCode};
use kernel::suggest::did_you_mean;
use kernel::{RunId, Scope};
use serde_json::{Map, Value, json};

use super::error::ModelApiError;
use crate::App;
use crate::edge::ApiError;
use crate::tools::call::idempotency_key;

pub(super) const AGENT: &str = "agent:";
/// How many agents are listed.
const MOST_MODELS: i64 = 500;

/// What an agent is asked, whichever API asks it.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) model: String,
    /// As chat clients write them.
    pub(super) messages: Vec<Value>,
    /// Tools that the client calls itself: `{name, description, parameters}` each.
    pub(super) tools: Vec<Value>,
    /// More inputs for the agent's instructions.
    pub(super) inputs: Option<Map<String, Value>>,
    /// The run whose conversation goes on.
    pub(super) continues: Option<RunId>,
}

pub(super) enum Begun {
    Run(RunId),
    /// One that waited for a person.
    Resumed(RunId),
    /// A person has to allow the run itself.
    Asks(String),
}

/// The agents of a project: their slugs, and when they were made.
pub(super) async fn agents(app: &App, scope: Scope) -> Result<Vec<(String, i64)>, ModelApiError> {
    let flags = Map::from_iter([("is_agent".to_owned(), Value::Bool(true))]);
    let query = Query { flags: Some(flags), limit: Some(MOST_MODELS), ..Query::default() };
    let page = app.workflows.query_simple(scope, Family::Workflow, &query).await.map_err(ApiError::from)?;
    Ok(page.rows.into_iter().map(|simple| (simple.artifact.slug, simple.artifact.created_at.seconds())).collect())
}

pub(super) async fn begin(app: &App, scope: Scope, headers: &HeaderMap, question: Question) -> Result<Begun, ModelApiError> {
    let Question { model, messages, tools, inputs, continues } = question;
    let Some(name) = model.strip_prefix(AGENT).filter(|name| !name.is_empty()) else {
        let message = format!("`{model}` is no agent: `model` is `agent:` and the slug of a workflow of kind agent.");
        return Err(ModelApiError::new(StatusCode::NOT_FOUND, "model_not_found", message));
    };
    if let Some(run) = waiting(app, scope, continues, &messages).await {
        return Ok(Begun::Resumed(run));
    }
    let (slug, environment) = name.split_once('@').map_or((name, None), |(slug, environment)| (slug, Some(environment)));
    let mut references = Map::from_iter([("workflow".to_owned(), json!({"slug": slug}))]);
    references.extend(environment.map(|environment| ("environment".to_owned(), json!({"slug": environment}))));
    let mut inputs = inputs.unwrap_or_default();
    inputs.insert("messages".to_owned(), messages.into());
    let request = InvokeRequest {
        references: References::read(&references).map_err(ApiError::from)?,
        inputs: Value::Object(inputs),
        idempotency_key: idempotency_key(headers)?,
        limit: Some(Duration::ZERO),
        caller_tools: tools,
        continues,
        agents_only: true,
        ..InvokeRequest::default()
    };
    match app.calls.invoke(scope, request).await {
        Ok(reply) => match app.agent_runs.get(scope, reply.run).await {
            Ok(run) => Ok(Begun::Run(run.id)),
            Err(_) => Err(ModelApiError::of_run(reply.code, reply.message)),
        },
        Err(CallError::Waiting(approval)) => {
            let link = app.calls.page_of(scope.project, approval.id).await.map_err(ApiError::from)?;
            Ok(Begun::Asks(format!("A person has to allow this before I begin: {link}\n\nSend the same message again once it is decided.")))
        }
        Err(error) => Err(unknown_agent(app, scope, slug, error.into()).await),
    }
}

/// The run that goes on where it is: the one whose conversation this is if it has not ended, or the one that the agent's last words name.
async fn waiting(app: &App, scope: Scope, continues: Option<RunId>, messages: &[Value]) -> Option<RunId> {
    let own = async |run: RunId| app.agent_runs.get(scope, run).await.ok().filter(|found| found.key == scope.key);
    match continues {
        Some(run) => own(run).await.filter(|found| !found.state.is_over()).map(|found| found.id),
        None => own(run_named(messages)?).await.map(|found| found.id),
    }
}

/// An unknown agent is refused with the nearest there is.
async fn unknown_agent(app: &App, scope: Scope, slug: &str, error: ApiError) -> ModelApiError {
    if error.status() != StatusCode::NOT_FOUND {
        return error.into();
    }
    let known = agents(app, scope).await.unwrap_or_default();
    let near = did_you_mean(slug, known.iter().map(|(slug, _)| slug.as_str()));
    let message = format!("There is no agent `{slug}` here.{near} `GET /v1/models` lists them.");
    ModelApiError::new(StatusCode::NOT_FOUND, "model_not_found", message)
}
