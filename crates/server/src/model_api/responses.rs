//! `POST /v1/responses`.

use agent_runs::stream::{Response as AgentResponse, ResponseFrame, run_of_response};
use axum::extract::State;
use axum::response::Response;
use document::ToSchema;
use http::HeaderMap;
use kernel::RunId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::begin::{Begun, Question, begin};
use super::error::{ModelApiError, ModelFailure};
use super::follow::{Following, said};
use super::{function, input};
use crate::App;
use crate::edge::auth::RunWorkflows;
use crate::edge::{ApiError, Payload, Scoped};

/// A question to an agent. Other fields of the API are ignored: the agent's author decides about its model.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ResponseRequest {
    /// `agent:` and the slug of a workflow of kind agent, or what `@` and the slug of an environment deploys.
    #[schema(example = "agent:triager")]
    pub model: String,
    /// Text, or a list of items: messages, calls of functions and their outputs.
    pub input: Value,
    /// Comes after the agent's own instructions.
    pub instructions: Option<String>,
    /// The response of the same agent that is gone on with.
    #[schema(example = "resp_0198e6b0c1f27cc2a7b8c9d0e1f2a3b4")]
    pub previous_response_id: Option<String>,
    /// Functions that the client calls itself.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<FunctionTool>>,
    pub stream: Option<bool>,
    /// More inputs for the agent's instructions, beside the messages.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// Must be false: an answer is waited for, or streamed.
    pub background: Option<bool>,
    /// Must be left out: conversations are not kept under names. `previous_response_id` goes on.
    #[schema(value_type = Option<Object>)]
    pub conversation: Option<Value>,
}

/// A function of the client's.
#[derive(Debug, Deserialize, Serialize)]
pub struct FunctionTool {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parameters: Option<Value>,
    pub strict: Option<bool>,
}

/// Ask an agent as a model, by responses
///
/// Speaks OpenAI's Responses, streamed and not. The agent's own tools run here, and calls of the client's tools come back as items of type
/// `function_call`; their outputs go on, with `previous_response_id` or with the items of the answer before them. Where a person has to
/// decide, the answer says where, and the next one goes on with the same run. A client that hangs up cancels the run.
#[document::path(post, path = "/v1/responses", operation_id = "create_agent_response", tag = "Agents as models", security(("key" = ["run_workflows"])), request_body = ResponseRequest,
    responses((status = 200, body = Object, description = "A response, or with `stream` a stream of events"),
        super::failures::ModelFailures,
        (status = 413, body = ModelFailure, description = "The request body is larger than the limit"),
        (status = 415, body = ModelFailure, description = "The request body is not JSON"),
        (status = 503, body = ModelFailure, description = "The database is not there now")))]
pub(crate) async fn create(
    scoped: Result<Scoped<RunWorkflows>, ApiError>,
    State(app): State<App>,
    headers: HeaderMap,
    payload: Result<Payload<ResponseRequest>, ApiError>,
) -> Result<Response, ModelApiError> {
    let Scoped(scope, _) = scoped?;
    let Payload(asked) = payload?;
    refuse_unkept(&asked)?;
    let is_streamed = asked.stream == Some(true);
    let continues = asked.previous_response_id.as_deref().map(previous).transpose()?;
    let tools = asked.tools.unwrap_or_default();
    let question = Question {
        model: asked.model.clone(),
        messages: input::messages(&asked.input, asked.instructions.as_deref())?,
        tools: tools.iter().enumerate().map(|(index, tool)| client_tool(index, tool)).collect::<Result<_, _>>()?,
        inputs: asked.metadata.clone(),
        continues,
    };
    let frame = ResponseFrame {
        created: app.clock.now().seconds(),
        model: asked.model,
        instructions: asked.instructions,
        previous: asked.previous_response_id,
        tools: json!(tools),
        metadata: asked.metadata.map_or_else(|| json!({}), Value::Object),
    };
    let answer = |run| Box::new(AgentResponse::new(run, frame.clone()));
    let following = match begin(&app, scope, &headers, question).await? {
        Begun::Run(run) => Following::new(&app, scope, run, answer(run)),
        Begun::Resumed(run) => Following::resumed(&app, scope, run, answer(run)).await?,
        Begun::Asks(words) => {
            let (response, events) = AgentResponse::of_words(&words, frame);
            return Ok(said(&response, &events, is_streamed));
        }
    };
    following.respond(is_streamed).await
}

/// Refuses what would change how the conversation is kept, which is ignored nowhere else.
fn refuse_unkept(asked: &ResponseRequest) -> Result<(), ModelApiError> {
    if asked.background == Some(true) {
        let message =
            "`background`: an answer is waited for here; ask with `stream: true`, or run the workflow with `POST /workflows/invoke`";
        return Err(ModelApiError::bad_request("unsupported_value", message));
    }
    if asked.conversation.as_ref().is_some_and(|conversation| !conversation.is_null()) {
        let message = "`conversation`: conversations are not kept under names here; go on with `previous_response_id`";
        return Err(ModelApiError::bad_request("unsupported_value", message));
    }
    Ok(())
}

fn previous(id: &str) -> Result<RunId, ModelApiError> {
    run_of_response(id).ok_or_else(|| {
        let message = format!("`previous_response_id`: `{id}` is no response of ours.");
        ModelApiError::bad_request("previous_response_not_found", message)
    })
}

fn client_tool(index: usize, tool: &FunctionTool) -> Result<Value, ModelApiError> {
    let wrong = |what: &str| ModelApiError::bad_request("invalid_tool", format!("`tools.{index}`: {what}"));
    if tool.kind.as_deref().is_some_and(|kind| kind != "function") {
        return Err(wrong("only tools of type `function` are taken"));
    }
    let name = tool.name.as_deref().filter(|name| !name.is_empty()).ok_or_else(|| wrong("`name` is missing"))?;
    Ok(function(name, tool.description.clone(), tool.parameters.clone()))
}
