//! `/v1`: an agent is a model to whoever speaks OpenAI's chat completions. Errors have the body that these clients read.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use ::workflows::{Family, InvokeRequest, Query, References};
use agent_runs::stream::{ChatAnswer, ChatChunks, Encoder, Ending, run_named};
use agent_runs::{RunError, RunEvent, RunState};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use calls::{ApprovalStatus, CallError};
use futures_util::stream;
use http::{HeaderMap, StatusCode};
use kernel::suggest::did_you_mean;
use kernel::{RunId, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use utoipa::ToSchema;

use crate::App;
use crate::edge::auth::{RunWorkflows, ViewWorkflows, while_good};
use crate::edge::{ApiError, Json, Payload, Scoped};
use crate::tools::call::idempotency_key;
use crate::workflows::stream::event_headers;

const AGENT: &str = "agent:";
/// How often a stream looks whether its run waits for a person, and says that it is there.
const LOOK: Duration = Duration::from_secs(2);
/// How many agents are listed.
const MOST_MODELS: i64 = 500;

/// A question to an agent. Other fields of the API are ignored: the agent's author decides about its model.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ChatCompletion {
    /// `agent:` and the slug of a workflow of kind agent, or what `@` and the slug of an environment deploys.
    #[schema(example = "agent:triager")]
    pub model: String,
    #[schema(value_type = Vec<Object>)]
    pub messages: Vec<Value>,
    /// Tools that the client calls itself.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<ClientTool>>,
    #[serde(default)]
    pub stream: Option<bool>,
    pub stream_options: Option<StreamOptions>,
    /// More inputs for the agent's instructions, beside the messages.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
}

/// A function of the client's.
#[derive(Debug, Deserialize)]
pub struct ClientTool {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub function: Option<ClientFunction>,
}

#[derive(Debug, Deserialize)]
pub struct ClientFunction {
    pub name: String,
    pub description: Option<String>,
    pub parameters: Option<Value>,
}

/// What a stream says besides.
#[derive(Debug, Deserialize, ToSchema)]
pub struct StreamOptions {
    pub include_usage: Option<bool>,
}

/// The agents of a project, as models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    pub object: &'static str,
    pub data: Vec<ModelBody>,
}

/// An agent as a model.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelBody {
    pub id: String,
    pub object: &'static str,
    pub created: i64,
    pub owned_by: &'static str,
}

/// A failure in the words of this surface.
#[derive(Debug)]
pub(crate) struct ChatError {
    status: StatusCode,
    kind: &'static str,
    code: String,
    message: String,
}

impl ChatError {
    fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let kind = match status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        Self { status, kind, code: code.to_owned(), message: message.into() }
    }

    /// How a run failed. Clients ask again by themselves after 409 and above 500, which would begin another run.
    fn of_run(code: i64, message: impl Into<String>) -> Self {
        let status = match code {
            400 | 403 | 404 | 422 | 429 => u16::try_from(code).ok().and_then(|code| StatusCode::from_u16(code).ok()),
            406 => Some(StatusCode::NOT_FOUND),
            _ => None,
        };
        let code = if code == 406 { "model_not_found".to_owned() } else { code.to_string() };
        Self { kind: "agent_error", ..Self::new(status.unwrap_or(StatusCode::FAILED_DEPENDENCY), &code, message) }
    }
}

impl From<ApiError> for ChatError {
    fn from(error: ApiError) -> Self {
        Self::new(error.status(), error.code().name(), error.message())
    }
}

impl From<RunError> for ChatError {
    fn from(error: RunError) -> Self {
        ApiError::from(error).into()
    }
}

impl IntoResponse for ChatError {
    fn into_response(self) -> Response {
        let error = ModelError { message: self.message, kind: self.kind, param: None, code: self.code };
        (self.status, Json(ModelFailure { error })).into_response()
    }
}

/// Why a request failed, as OpenAI's API says it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelFailure {
    pub error: ModelError,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelError {
    pub message: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Always nothing: the message names the place.
    pub param: Option<String>,
    pub code: String,
}

/// Agents as models
#[utoipa::path(get, path = "/v1/models", operation_id = "list_agent_models", tag = "Agents as models", security(("key" = ["view_workflows"])),
    responses((status = 200, body = ModelList),
        (status = 400, body = ModelFailure, description = "The messages or tools do not fit"),
        (status = 401, body = ModelFailure, description = "No key, or a bad one"),
        (status = 403, body = ModelFailure, description = "The key lacks a permission, or the project does not allow it"),
        (status = 404, body = ModelFailure, description = "No such agent"),
        (status = 422, body = ModelFailure, description = "Not of the documented shape, or the run failed or took too long for an answer in one piece"),
        (status = 424, body = ModelFailure, description = "The agent's model failed"),
        (status = 429, body = ModelFailure, description = "The project has as many runs as it may"),
        (status = 503, body = ModelFailure, description = "The database is not there now")))]
pub(crate) async fn models(scoped: Result<Scoped<ViewWorkflows>, ApiError>, State(app): State<App>) -> Result<Json<ModelList>, ChatError> {
    let Scoped(scope, _) = scoped?;
    let found = agents(&app, scope).await?;
    let model = |(slug, created): (String, i64)| ModelBody { id: format!("{AGENT}{slug}"), object: "model", created, owned_by: "toolyard" };
    Ok(Json(ModelList { object: "list", data: found.into_iter().map(model).collect() }))
}

async fn agents(app: &App, scope: Scope) -> Result<Vec<(String, i64)>, ChatError> {
    let flags = Map::from_iter([("is_agent".to_owned(), Value::Bool(true))]);
    let query = Query { flags: Some(flags), limit: Some(MOST_MODELS), ..Query::default() };
    let page = app.workflows.query_simple(scope, Family::Workflow, &query).await.map_err(ApiError::from)?;
    Ok(page.rows.into_iter().map(|simple| (simple.artifact.slug, simple.artifact.created_at.seconds())).collect())
}

/// Ask an agent as a model
///
/// Speaks OpenAI's chat completions, streamed and not. The agent's own tools run here, and calls of the client's tools come back as
/// `tool_calls`. Where a person has to decide, the answer says where, and the next message goes on with the same run. A client that hangs
/// up cancels the run.
#[utoipa::path(post, path = "/v1/chat/completions", operation_id = "create_agent_completion", tag = "Agents as models", security(("key" = ["run_workflows"])), request_body = ChatCompletion,
    responses((status = 200, body = Object, description = "A completion, or with `stream` a stream of chunks"),
        (status = 400, body = ModelFailure, description = "The messages or tools do not fit"),
        (status = 401, body = ModelFailure, description = "No key, or a bad one"),
        (status = 403, body = ModelFailure, description = "The key lacks a permission, or the project does not allow it"),
        (status = 404, body = ModelFailure, description = "No such agent"),
        (status = 413, body = ModelFailure, description = "The request body is larger than the limit"),
        (status = 415, body = ModelFailure, description = "The request body is not JSON"),
        (status = 422, body = ModelFailure, description = "Not of the documented shape, or the run failed or took too long for an answer in one piece"),
        (status = 424, body = ModelFailure, description = "The agent's model failed"),
        (status = 429, body = ModelFailure, description = "The project has as many runs as it may"),
        (status = 503, body = ModelFailure, description = "The database is not there now")))]
pub(crate) async fn completions(
    scoped: Result<Scoped<RunWorkflows>, ApiError>,
    State(app): State<App>,
    headers: HeaderMap,
    payload: Result<Payload<ChatCompletion>, ApiError>,
) -> Result<Response, ChatError> {
    let Scoped(scope, _) = scoped?;
    let Payload(asked) = payload?;
    let created = app.clock.now().seconds();
    let (run, resumed) = match begin(&app, scope, &headers, &asked).await? {
        Begun::Run(run) => (run, false),
        Begun::Resumed(run) => (run, true),
        Begun::Asks(words) => return Ok(said(&asked, &words, created)),
    };
    // What was said before the decision is known to the client already.
    let guard = Guard { app: app.clone(), scope, run, armed: !resumed };
    let after = if resumed { last_approval(&app, scope, run).await? } else { 0 };
    let id = format!("chatcmpl-{run}");
    if asked.stream == Some(true) {
        let usage = asked.stream_options.and_then(|options| options.include_usage) == Some(true);
        let chunks = ChatChunks::new(id, created, asked.model, run, usage);
        return Ok(streamed(Told { guard, chunks, seen: 0, after, pending: VecDeque::new(), is_over: false }));
    }
    let answer = whole(guard, after).await?;
    if let Some(Ending::Failed { code, message }) = answer.ending {
        return Err(ChatError::of_run(code, message));
    }
    Ok(Json(answer.body(&id, created, &asked.model)).into_response())
}

enum Begun {
    Run(RunId),
    /// One that waited for a person.
    Resumed(RunId),
    /// A person has to allow the run itself.
    Asks(String),
}

async fn begin(app: &App, scope: Scope, headers: &HeaderMap, asked: &ChatCompletion) -> Result<Begun, ChatError> {
    let name = asked.model.strip_prefix(AGENT).filter(|name| !name.is_empty());
    let Some(name) = name else {
        let message = format!("`{}` is no agent: `model` is `agent:` and the slug of a workflow of kind agent.", asked.model);
        return Err(ChatError::new(StatusCode::NOT_FOUND, "model_not_found", message));
    };
    if let Some(run) = run_named(&asked.messages)
        && let Ok(found) = app.agent_runs.get(scope, run).await
        && found.key == scope.key
    {
        return Ok(Begun::Resumed(run));
    }
    let (slug, environment) = name.split_once('@').map_or((name, None), |(slug, environment)| (slug, Some(environment)));
    let mut references = Map::from_iter([("workflow".to_owned(), json!({"slug": slug}))]);
    references.extend(environment.map(|environment| ("environment".to_owned(), json!({"slug": environment}))));
    let mut inputs = asked.metadata.clone().unwrap_or_default();
    inputs.insert("messages".to_owned(), asked.messages.clone().into());
    let request = InvokeRequest {
        references: References::read(&references).map_err(ApiError::from)?,
        inputs: Value::Object(inputs),
        idempotency_key: idempotency_key(headers)?,
        limit: Some(Duration::ZERO),
        caller_tools: client_tools(asked.tools.as_deref().unwrap_or_default())?,
        agents_only: true,
        ..InvokeRequest::default()
    };
    match app.calls.invoke(scope, request).await {
        Ok(reply) => match app.agent_runs.get(scope, reply.run).await {
            Ok(run) => Ok(Begun::Run(run.id)),
            Err(_) => Err(ChatError::of_run(reply.code, reply.message)),
        },
        Err(CallError::Waiting(approval)) => {
            let link = app.calls.page_of(scope.project, approval.id).await.map_err(ApiError::from)?;
            Ok(Begun::Asks(format!("A person has to allow this before I begin: {link}\n\nSend the same message again once it is decided.")))
        }
        Err(error) => Err(unknown_agent(app, scope, slug, error.into()).await),
    }
}

/// An unknown agent is refused with the nearest there is.
async fn unknown_agent(app: &App, scope: Scope, slug: &str, error: ApiError) -> ChatError {
    if error.status() != StatusCode::NOT_FOUND {
        return error.into();
    }
    let known = agents(app, scope).await.unwrap_or_default();
    let near = did_you_mean(slug, known.iter().map(|(slug, _)| slug.as_str()));
    ChatError::new(StatusCode::NOT_FOUND, "model_not_found", format!("There is no agent `{slug}` here.{near} `GET /v1/models` lists them."))
}

fn client_tools(tools: &[ClientTool]) -> Result<Vec<Value>, ChatError> {
    let wrong = |index: usize, what: &str| {
        let message = format!("`tools.{index}`: {what}");
        ChatError::new(StatusCode::BAD_REQUEST, "invalid_tool", message)
    };
    let read = |(index, tool): (usize, &ClientTool)| {
        if tool.kind.as_deref().is_some_and(|kind| kind != "function") {
            return Err(wrong(index, "only tools of type `function` are taken"));
        }
        let function = tool.function.as_ref().ok_or_else(|| wrong(index, "`function` is missing"))?;
        let parameters = function.parameters.clone().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        let description = function.description.as_deref().unwrap_or_default();
        Ok(json!({"name": function.name, "description": description, "parameters": parameters}))
    };
    tools.iter().enumerate().map(read).collect()
}

/// Cancels a run whose client went away before its answer.
struct Guard {
    app: App,
    scope: Scope,
    run: RunId,
    armed: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.armed {
            let (app, scope, run) = (self.app.clone(), self.scope, self.run);
            runtime.spawn(async move { drop(app.agent_runs.cancel(scope, run).await) });
        }
    }
}

impl Guard {
    /// Whether the run waits for a person who has not decided; it goes on without its client.
    async fn waits(&mut self) -> Result<bool, RunError> {
        let run = self.app.agent_runs.get(self.scope, self.run).await?;
        let Some(approval) = run.approval.filter(|_| run.state == RunState::Waiting) else { return Ok(false) };
        self.armed = false;
        // What is decided wakes the run within a moment.
        let found = self.app.calls.approval(self.scope, approval).await;
        Ok(found.is_ok_and(|found| found.status == ApprovalStatus::Pending))
    }
}

/// The number of the last event in which a person was asked.
async fn last_approval(app: &App, scope: Scope, run: RunId) -> Result<i64, ChatError> {
    let events = app.agent_runs.next_events(scope, run, 0).await?;
    Ok(events.iter().rev().find(|told| matches!(told.event, RunEvent::ApprovalNeeded { .. })).map_or(0, |told| told.number))
}

/// Waits for the end of a run, as long as a request may take.
async fn whole(mut guard: Guard, after: i64) -> Result<ChatAnswer, ChatError> {
    let limit = guard.app.options.run_limit();
    let deadline = Instant::now() + limit;
    let (mut answer, mut seen) = (ChatAnswer::default(), 0);
    loop {
        if guard.waits().await? && answer.ask_person(guard.run) {
            return Ok(answer);
        }
        let read = while_good(&guard.app, guard.scope, guard.app.agent_runs.next_events(guard.scope, guard.run, seen));
        let Ok(events) = timeout_at(deadline.min(Instant::now() + Duration::from_millis(700)), read).await else {
            if Instant::now() < deadline {
                continue;
            }
            let message = format!("The agent did not end within {} seconds and was stopped; ask with `stream: true`.", limit.as_secs());
            return Err(ChatError::new(StatusCode::UNPROCESSABLE_ENTITY, "run_too_long", message));
        };
        let events = events??;
        if events.is_empty() {
            return Err(ChatError::of_run(404, "The run is not kept any more."));
        }
        for told in events {
            seen = told.number;
            if told.number <= after && matches!(told.event, RunEvent::TextDelta { .. }) {
                continue;
            }
            answer.hear(&told.event);
        }
        if answer.ending.is_some() {
            guard.armed = false;
            return Ok(answer);
        }
    }
}

/// A run on its way to the client.
struct Told {
    guard: Guard,
    chunks: ChatChunks,
    seen: i64,
    after: i64,
    pending: VecDeque<Value>,
    is_over: bool,
}

fn streamed(told: Told) -> Response {
    let body = Body::from_stream(stream::unfold(told, |mut told| async move {
        let piece = told.next().await?;
        Some((Ok::<_, Infallible>(piece), told))
    }));
    (event_headers(), body).into_response()
}

impl Told {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(value) = self.pending.pop_front() {
                return Some(format!("data: {value}\n\n").into());
            }
            if std::mem::replace(&mut self.is_over, self.chunks.is_over) {
                return None;
            }
            if self.is_over {
                self.guard.armed = false;
                return self.chunks.farewell().map(|word| format!("data: {word}\n\n").into());
            }
            if self.guard.waits().await.unwrap_or(false) {
                self.pending.extend(self.chunks.ask_person());
                if self.chunks.is_over {
                    continue;
                }
            }
            let (app, scope) = (&self.guard.app, self.guard.scope);
            let read = while_good(app, scope, app.agent_runs.next_events(scope, self.guard.run, self.seen));
            let events = match timeout(LOOK, read).await {
                Err(_) => return Some(Bytes::from_static(b": waiting\n\n")),
                Ok(Ok(Ok(events))) => events,
                Ok(_) => return None,
            };
            if events.is_empty() {
                return None;
            }
            for told in events {
                self.seen = told.number;
                let chunks = self.chunks.encode(&told.event);
                if told.number > self.after {
                    self.pending.extend(chunks);
                }
            }
        }
    }
}

/// An answer that no run gave.
fn said(asked: &ChatCompletion, words: &str, created: i64) -> Response {
    let id = format!("chatcmpl-{created}");
    if asked.stream != Some(true) {
        let message = json!({"role": "assistant", "content": words, "refusal": null});
        let usage = json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"});
        let body =
            json!({"id": id, "object": "chat.completion", "created": created, "model": asked.model, "choices": [choice], "usage": usage});
        return Json(body).into_response();
    }
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        json!({"id": id, "object": "chat.completion.chunk", "created": created, "model": asked.model, "choices": [choice]})
    };
    let first = chunk(json!({"role": "assistant", "content": words}), Value::Null);
    let last = chunk(json!({}), json!("stop"));
    (event_headers(), format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n")).into_response()
}
