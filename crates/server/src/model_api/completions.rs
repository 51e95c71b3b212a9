//! `POST /v1/chat/completions`.

use agent_runs::stream::Completion;
use axum::extract::State;
use axum::response::Response;
use document::ToSchema;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::begin::{Begun, Question, begin};
use super::error::{ModelApiError, ModelFailure};
use super::follow::{Following, said};
use super::function;
use crate::App;
use crate::edge::auth::RunWorkflows;
use crate::edge::{ApiError, Payload, Scoped};

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

/// Ask an agent as a model
///
/// Speaks OpenAI's chat completions, streamed and not. The agent's own tools run here, and calls of the client's tools come back as
/// `tool_calls`. Where a person has to decide, the answer says where, and the next message goes on with the same run. A client that hangs
/// up cancels the run.
#[document::path(post, path = "/v1/chat/completions", operation_id = "create_agent_completion", tag = "Agents as models", security(("key" = ["run_workflows"])), request_body = ChatCompletion,
    responses((status = 200, body = Object, description = "A completion, or with `stream` a stream of chunks"),
        super::failures::ModelFailures,
        (status = 413, body = ModelFailure, description = "The request body is larger than the limit"),
        (status = 415, body = ModelFailure, description = "The request body is not JSON"),
        (status = 503, body = ModelFailure, description = "The database is not there now")))]
pub(crate) async fn completions(
    scoped: Result<Scoped<RunWorkflows>, ApiError>,
    State(app): State<App>,
    headers: HeaderMap,
    payload: Result<Payload<ChatCompletion>, ApiError>,
) -> Result<Response, ModelApiError> {
    let Scoped(scope, _) = scoped?;
    let Payload(asked) = payload?;
    let (created, is_streamed) = (app.clock.now().seconds(), asked.stream == Some(true));
    let includes_usage = asked.stream_options.and_then(|options| options.include_usage) == Some(true);
    let tools = asked.tools.unwrap_or_default().into_iter().enumerate().map(|(index, tool)| client_tool(index, tool));
    let question = Question {
        model: asked.model.clone(),
        messages: asked.messages,
        tools: tools.collect::<Result<_, _>>()?,
        inputs: asked.metadata,
        continues: None,
    };
    let answer = |run| Box::new(Completion::new(run, created, asked.model.clone(), includes_usage));
    let following = match begin(&app, scope, &headers, question).await? {
        Begun::Run(run) => Following::new(&app, scope, run, answer(run)),
        Begun::Resumed(run) => Following::resumed(&app, scope, run, answer(run)).await?,
        Begun::Asks(words) => {
            let (completion, chunks) = Completion::of_words(words, created, asked.model);
            return Ok(said(&completion, &chunks, is_streamed));
        }
    };
    following.respond(is_streamed).await
}

fn client_tool(index: usize, tool: ClientTool) -> Result<Value, ModelApiError> {
    let wrong = |what: &str| ModelApiError::bad_request("invalid_tool", format!("`tools.{index}`: {what}"));
    if tool.kind.is_some_and(|kind| kind != "function") {
        return Err(wrong("only tools of type `function` are taken"));
    }
    let ClientFunction { name, description, parameters } = tool.function.ok_or_else(|| wrong("`function` is missing"))?;
    Ok(function(&name, description, parameters))
}
