//! The tools that a model is given, and what becomes of its calls. Which tools there are and whether a call may be made is decided by `agents`.

use std::time::Duration;

use agents::toolset::GrantedTool;
use agents::{AgentCall, AgentError, ToolOwner, Toolset};
use calls::permission::{ToolFacts, decide};
use calls::{CallError, CallReply, CallRequest, NoRoute, OwnRoutes, Resumes, ToolResult};
use definitions::Verdict;
use definitions::format::Format;
use definitions::ops::{self, Assembled, Op};
use futures_util::future::BoxFuture;
use kernel::suggest::did_you_mean;
use kernel::{ApprovalId, CallRef, Origin, Permission, Scope, Timestamp};
use models::{Api, Tool, ToolCall};
use serde_json::{Map, Value, json};

use crate::AgentRuns;
use crate::config::AgentConfig;
use crate::conversation::{CallOutcome, Conversation, OutcomeKind};
use crate::error::RunError;
use crate::rows::AgentRun;

/// With more tools than this a model gets a search in their place.
const LISTED: usize = 25;
/// How many tools a search finds.
const FOUND: usize = 8;
/// The most bytes of a result that are kept.
const MOST: usize = 1 << 20;
/// As long as answers under an idempotency key are kept, with an hour to spare.
const KEYS_KEPT: Duration = Duration::from_hours(23);

const FIND: &str = "find_tools";
const CALL: &str = "call_tool";
const READ: &str = "read_result";

/// The tools of a run.
#[derive(Debug)]
pub(crate) struct Toolbox {
    owner: ToolOwner,
    toolset: Toolset,
    /// Tools that whoever asks calls itself.
    theirs: Vec<Tool>,
}

/// What a call is made of, besides what the model said.
pub(crate) struct CallContext<'a> {
    pub(crate) run: &'a AgentRun,
    pub(crate) scope: Scope,
    pub(crate) config: &'a AgentConfig,
    pub(crate) conversation: &'a Conversation,
    pub(crate) step: i64,
    /// When an earlier try began it, whose end nobody knows.
    pub(crate) began_before: Option<Timestamp>,
    /// How long a workflow may take.
    pub(crate) limit: Duration,
}

/// What a call came to.
#[derive(Debug)]
pub(crate) enum Called {
    Ended(CallOutcome),
    /// A person has to decide first, until then at most.
    Waits {
        approval: ApprovalId,
        until: Timestamp,
    },
}

impl Toolbox {
    pub(crate) fn new(owner: ToolOwner, mut toolset: Toolset, theirs: Vec<Tool>) -> Self {
        toolset.tools.retain(|tool| !needs_context(tool));
        Self { owner, toolset, theirs }
    }

    fn is_searched(&self) -> bool {
        self.toolset.tools.len() > LISTED
    }

    /// The tools as the model is told of them.
    pub(crate) fn definitions(&self, api: Api, has_results: bool) -> Vec<Tool> {
        let mut tools = Vec::new();
        if self.is_searched() {
            tools.extend([find_tools(self.toolset.tools.len()), call_tool()]);
        } else {
            tools.extend(self.toolset.tools.iter().map(|tool| defined(tool, api)));
        }
        if has_results {
            tools.push(read_result());
        }
        // A tool of the client's takes the place of ours with the same name.
        tools.retain(|tool| self.theirs.iter().all(|other| other.name != tool.name));
        tools.extend(self.theirs.iter().cloned());
        tools
    }

    fn find(&self, name: &str) -> Option<&GrantedTool> {
        self.toolset.tools.iter().find(|tool| tool.name == name)
    }

    fn unknown(&self, name: &str) -> CallOutcome {
        let near = did_you_mean(name, self.toolset.tools.iter().map(|tool| tool.name.as_str()));
        let why = self.toolset.left_out.iter().find(|out| out.tool == name).map(|out| format!(" {}", out.reason)).unwrap_or_default();
        let hint = if self.is_searched() { " Look for tools with find_tools." } else { "" };
        CallOutcome::failed(format!("There is no tool `{name}`.{why}{near}{hint}"))
    }

    fn search(&self, arguments: &Map<String, Value>) -> CallOutcome {
        let Some(query) = arguments.get("query").and_then(Value::as_str).filter(|query| !query.trim().is_empty()) else {
            return CallOutcome::failed("`query` must be a sentence that says what you want to do.");
        };
        let picked = self.toolset.select(Some(query), Some(FOUND)).picked;
        let found = picked.iter().filter(|picked| picked.is_named || picked.score > Some(0.0)).map(|picked| {
            json!({"name": picked.tool.name, "description": picked.tool.description(), "parameters": picked.tool.tool.input_schema()})
        });
        let found: Vec<Value> = found.collect();
        let told = if found.is_empty() {
            json!({"tools": found, "note": "Nothing fits; say it in other words."})
        } else {
            json!({"tools": found})
        };
        CallOutcome::new(OutcomeKind::Done, told.to_string())
    }
}

impl AgentRuns {
    /// Makes one call of a model. What it comes to is for the model to read; only a failure of our own is an error.
    pub(crate) async fn call(&self, toolbox: &Toolbox, call: &ToolCall, context: &CallContext<'_>) -> Result<Called, RunError> {
        let arguments = match read_arguments(&call.arguments) {
            Ok(arguments) => arguments,
            Err(outcome) => return Ok(Called::Ended(outcome)),
        };
        match call.name.as_str() {
            READ if context.conversation.has_results() => Ok(Called::Ended(read_on(context.conversation, &arguments))),
            FIND if toolbox.is_searched() => Ok(Called::Ended(toolbox.search(&arguments))),
            CALL if toolbox.is_searched() => {
                let (name, arguments) = match named_call(arguments) {
                    Ok(named) => named,
                    Err(outcome) => return Ok(Called::Ended(outcome)),
                };
                self.call_tool(toolbox, &name, arguments, context).await
            }
            name => self.call_tool(toolbox, name, arguments, context).await,
        }
    }

    async fn call_tool(
        &self,
        toolbox: &Toolbox,
        name: &str,
        arguments: Map<String, Value>,
        context: &CallContext<'_>,
    ) -> Result<Called, RunError> {
        let Some(tool) = toolbox.find(name) else { return Ok(Called::Ended(toolbox.unknown(name))) };
        if !context.scope.may(Permission::RunTools) {
            let told = format!("Whoever began this run lacks `{}`.", Permission::RunTools);
            return Ok(Called::Ended(CallOutcome::new(OutcomeKind::Denied, told)));
        }
        let only_reads = tool.tool.read_only() == Some(true);
        let is_op = matches!(tool.call_ref, CallRef::Reserved { .. });
        if let Some(began) = context.began_before.filter(|_| !only_reads) {
            // An op has no key by which its answer could be found again, and keys are not kept for ever.
            if is_op || self.0.parts.clock.now() > began.plus(KEYS_KEPT) {
                return Ok(Called::Ended(unknown_outcome(name, "the server that made it went away")));
            }
        }
        // An earlier try may have begun it, whose end nobody knows: what only reads is made again, and so is what was not sent.
        let resumes = if only_reads { Resumes::Always } else { Resumes::IfUnsent };
        let request = CallRequest { resumes, ..Self::request(tool, &arguments, context) };
        match self.make(toolbox, request, context).await {
            Ok(CallReply { waits_for: Some(approval), .. }) => self.waits(context.scope, approval).await,
            Ok(reply) => Ok(Called::Ended(said(reply.result))),
            Err(error) => refused(name, error),
        }
    }

    fn request(tool: &GrantedTool, arguments: &Map<String, Value>, context: &CallContext<'_>) -> CallRequest {
        let (run, is_op) = (context.run, matches!(tool.call_ref, CallRef::Reserved { .. }));
        let is_workflow = matches!(tool.call_ref, CallRef::Variant { .. } | CallRef::Environment { .. });
        let planned = context.config.plan.as_ref().map(|plan| {
            let (name, permission) = (tool.call_ref.to_string(), Some(tool.permission).filter(|verdict| *verdict != Verdict::Allow));
            let facts = ToolFacts { name: &name, read_only: tool.tool.read_only(), permission, ..ToolFacts::default() };
            decide(plan, &facts, &Value::Object(arguments.clone()))
        });
        CallRequest {
            name: tool.call_ref.clone().into(),
            arguments: Value::Object(arguments.clone()),
            idempotency_key: (!is_op).then(|| format!("agent-run:{}:{}", run.id, context.step)),
            permission: planned,
            // A run of a workflow is counted; another tool's failure is an answer that is kept.
            depth: if is_workflow { run.depth + 1 } else { 0 },
            in_test: run.is_test,
            limit: Some(context.limit),
            origin: Origin {
                run: Some(run.id),
                step: Some(format!("{}.{}", context.step, tool.name)),
                delivery: run.delivery,
                agent: None,
            },
            ..CallRequest::default()
        }
    }

    async fn make(&self, toolbox: &Toolbox, request: CallRequest, context: &CallContext<'_>) -> Result<CallReply, AgentError> {
        let routes = self.routes(context.scope);
        let call = AgentCall { request, context: Map::new() };
        self.0.parts.agents.call_of(context.scope, &toolbox.owner, call, &*routes).await
    }

    async fn waits(&self, scope: Scope, approval: ApprovalId) -> Result<Called, RunError> {
        let until = self.0.parts.calls.approval(scope, approval).await.map(|approval| approval.expires_at);
        Ok(Called::Waits { approval, until: until.unwrap_or_else(|_| self.0.parts.clock.now().plus(Duration::from_hours(24))) })
    }
}

/// What the model is told of a call that came to no result.
fn refused(name: &str, error: AgentError) -> Result<Called, RunError> {
    let outcome = match error {
        AgentError::Call(CallError::Waiting(approval)) => return Ok(Called::Waits { approval: approval.id, until: approval.expires_at }),
        AgentError::Call(CallError::InProgress(_)) => unknown_outcome(name, "an earlier try of it was cut off"),
        AgentError::Call(error) if error.is_uncertain() => unknown_outcome(name, &error.to_string()),
        AgentError::Call(CallError::Store(error)) | AgentError::Store(error) => return Err(error.into()),
        AgentError::Call(error @ (CallError::NotRecorded(_) | CallError::Sealed(_))) => return Err(error.into()),
        AgentError::Call(error @ (CallError::Denied(_) | CallError::Forbidden(_))) => {
            CallOutcome::new(OutcomeKind::Denied, error.to_string())
        }
        AgentError::Refused(reason) => CallOutcome::new(OutcomeKind::Denied, reason.to_string()),
        other => CallOutcome::failed(other.to_string()),
    };
    Ok(Called::Ended(outcome))
}

fn unknown_outcome(name: &str, why: &str) -> CallOutcome {
    CallOutcome::new(
        OutcomeKind::Unknown,
        format!(
            "Outcome unknown: the call of `{name}` may have taken effect or not ({why}). It was not repeated. Look whether it took effect \
             before you do it again."
        ),
    )
}

fn said(result: ToolResult) -> CallOutcome {
    let ToolResult { data, error, .. } = result;
    match error {
        None => CallOutcome::new(OutcomeKind::Done, capped(&text(&data))),
        Some(error) if data.is_null() => CallOutcome::failed(capped(&error)),
        Some(error) => CallOutcome::failed(capped(&format!("{error}\n{}", text(&data)))),
    }
}

fn text(data: &Value) -> String {
    match data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn capped(text: &str) -> String {
    if text.len() <= MOST {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MOST);
    format!("{}\n[Cut: the first {end} of {} bytes.]", &text[..end], text.len())
}

/// Arguments as an object; a model may leave them out.
pub(crate) fn read_arguments(text: &str) -> Result<Map<String, Value>, CallOutcome> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(CallOutcome::failed("The arguments are JSON, but not an object. Call again with an object.")),
        Err(error) => Err(CallOutcome::failed(format!("The arguments are not JSON ({error}). Call again with a JSON object."))),
    }
}

fn named_call(mut arguments: Map<String, Value>) -> Result<(String, Map<String, Value>), CallOutcome> {
    let Some(Value::String(name)) = arguments.remove("name") else {
        return Err(CallOutcome::failed("`name` must be the name of a tool, as find_tools returned it."));
    };
    match arguments.remove("arguments") {
        None | Some(Value::Null) => Ok((name, Map::new())),
        Some(Value::Object(arguments)) => Ok((name, arguments)),
        Some(Value::String(text)) => read_arguments(&text).map(|arguments| (name, arguments)),
        Some(_) => Err(CallOutcome::failed("`arguments` must be an object that fits the tool's parameters.")),
    }
}

fn read_on(conversation: &Conversation, arguments: &Map<String, Value>) -> CallOutcome {
    let number = match arguments.get("result") {
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(number) => number.as_u64(),
        None => None,
    };
    let Some(number) = number else {
        return CallOutcome::failed("`result` must be the number of a result, as the note in its place names it.");
    };
    let offset = arguments.get("offset").and_then(Value::as_u64).and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0);
    match conversation.result(number, offset) {
        Some(text) => CallOutcome::new(OutcomeKind::Done, text),
        None => CallOutcome::failed(format!("There is no result `{number}` that was cut or left out.")),
    }
}

fn defined(tool: &GrantedTool, api: Api) -> Tool {
    let (format, parameters) = match api {
        Api::Anthropic => (Format::Anthropic, "/input_schema"),
        Api::OpenaiChat | Api::OpenaiResponses => (Format::OpenAi, "/function/parameters"),
    };
    let mut definition = tool.define(format);
    let parameters = definition.pointer_mut(parameters).map_or_else(|| json!({"type": "object", "properties": {}}), Value::take);
    Tool { name: tool.name.clone(), description: tool.description().into_owned(), parameters }
}

fn find_tools(count: usize) -> Tool {
    Tool {
        name: FIND.to_owned(),
        description: format!("Finds those of {count} tools that fit what you want to do. Call them with {CALL}."),
        parameters: json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "What you want to do, in a sentence"}},
            "required": ["query"],
        }),
    }
}

fn call_tool() -> Tool {
    Tool {
        name: CALL.to_owned(),
        description: format!("Calls a tool that {FIND} returned."),
        parameters: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The name of the tool"},
                "arguments": {"type": "object", "description": "Arguments that fit its parameters"},
            },
            "required": ["name", "arguments"],
        }),
    }
}

fn read_result() -> Tool {
    Tool {
        name: READ.to_owned(),
        description: "Reads a result of an earlier call that was cut or left out, from an offset on.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "result": {"type": "string", "description": "As the note in its place names it"},
                "offset": {"type": "integer", "description": "The byte to begin at"},
            },
            "required": ["result"],
        }),
    }
}

/// Ops that the values of a runner are bound to; a run here has none.
fn needs_context(tool: &GrantedTool) -> bool {
    match &tool.call_ref {
        CallRef::Reserved { op } => ops::find(op).is_some_and(Op::needs_context),
        _ => false,
    }
}

/// Our own routes where there are none: an op that is a request leads nowhere.
#[derive(Debug)]
pub(crate) struct NoRoutes;

impl OwnRoutes for NoRoutes {
    fn send(&self, _: Assembled) -> BoxFuture<'_, Result<(u16, bytes::Bytes), NoRoute>> {
        Box::pin(async { Err(NoRoute) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_an_explanation() {
        assert_eq!(read_arguments("").unwrap(), Map::new());
        assert_eq!(read_arguments("{\"a\": 1}").unwrap()["a"], 1);
        for text in ["[1]", "{\"a\": ", "nothing"] {
            let told = read_arguments(text).unwrap_err();
            assert!(told.is_error() && told.content.contains("Call again"), "{text}");
        }
        let named = named_call(json!({"name": "x", "arguments": "{\"a\": 1}"}).as_object().unwrap().clone()).unwrap();
        assert_eq!((named.0.as_str(), &named.1["a"]), ("x", &json!(1)));
        assert!(named_call(Map::new()).is_err());
    }

    #[test]
    fn a_result_is_told_as_the_model_reads_it() {
        assert_eq!(said(ToolResult::ok(json!("plain"))).content, "plain");
        assert_eq!(said(ToolResult::ok(json!({"a": 1}))).content, "{\"a\":1}");
        let no = said(ToolResult::refused(Value::Null, "no", Some(404)));
        assert_eq!((no.kind, no.content.as_str()), (OutcomeKind::Failed, "no"));
        assert!(capped(&"x".repeat(MOST + 5)).contains("[Cut: the first 1048576 of 1048581 bytes.]"));
    }

    #[test]
    fn what_nobody_knows_is_said_and_not_repeated() {
        let uncertain = CallError::Upstream { message: "gone".to_owned(), uncertain: true };
        for error in [uncertain, CallError::InProgress(String::new())] {
            let Ok(Called::Ended(outcome)) = refused("pay", error.into()) else { panic!() };
            assert_eq!(outcome.kind, OutcomeKind::Unknown);
            assert!(outcome.content.starts_with("Outcome unknown: the call of `pay`"));
        }
        let Ok(Called::Ended(outcome)) = refused("pay", CallError::Denied("no: too much".to_owned()).into()) else { panic!() };
        assert_eq!((outcome.kind, outcome.content.as_str()), (OutcomeKind::Denied, "no: too much"));
    }
}
