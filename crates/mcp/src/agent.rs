//! The tools of one agent: exactly those that it may use right now.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use agents::toolset::{GrantedTool, Toolset};
use agents::{AgentCall, AgentError, AgentRef, Agents};
use calls::{CallError, OwnRoutes};
use definitions::format::Format;
use definitions::ops::{self, Op};
use futures_util::future::BoxFuture;
use kernel::CallRef;
use serde_json::{Map, Value, json};

use crate::approval::Approver;
use crate::find::Searchable;
use crate::page::{PAGE, after, cursor_of};
use crate::{Call, CallOutcome, Page, RpcError, Surface, connect, reply};

/// The tools of an agent, as one key sees them.
#[derive(Clone)]
pub struct AgentTools {
    pub agents: Agents,
    pub agent: AgentRef,
    pub approver: Approver,
    /// For platform ops among the tools.
    pub routes: Arc<dyn OwnRoutes>,
    /// How long a workflow may take.
    pub limit: Duration,
    /// Whether platform ops are among the tools.
    pub has_ops: bool,
}

impl std::fmt::Debug for AgentTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentTools").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl AgentTools {
    /// Without ops that need the values of a run: a client of the protocol has no run to take them from.
    async fn toolset(&self) -> Result<Toolset, RpcError> {
        let mut toolset = self.agents.toolset(self.approver.scope, self.agent).await.map_err(fault)?;
        toolset.tools.retain(|tool| !needs_context(tool) && (self.has_ops || !matches!(tool.call_ref, CallRef::Reserved { .. })));
        Ok(toolset)
    }

    async fn page(&self, cursor: Option<&str>) -> Result<Page, RpcError> {
        let toolset = self.toolset().await?;
        let start = after(toolset.tools.iter().map(|tool| tool.name.as_str()), cursor)?;
        let rest = &toolset.tools[start..];
        let shown = &rest[..rest.len().min(PAGE)];
        let next = shown.last().filter(|_| rest.len() > PAGE).map(|last| cursor_of(&last.name));
        Ok(Page { tools: shown.iter().map(defined).collect(), next })
    }

    async fn run(&self, call: Call) -> Result<CallOutcome, RpcError> {
        if let Some(outcome) = self.approver.hear(&call).await? {
            return Ok(outcome);
        }
        let is_it = |tool: &GrantedTool| tool.name == call.name || tool.call_ref.to_string() == call.name;
        if !self.has_ops && !self.toolset().await?.tools.iter().any(is_it) {
            return Err(RpcError::Params(format!("Unknown tool: {}", call.name.chars().take(200).collect::<String>())));
        }
        let (request, _stop) = call.to(call.name.clone().into(), self.limit);
        let made = AgentCall { request, context: Map::new() };
        match self.agents.call(self.approver.scope, self.agent, made, &*self.routes).await {
            Ok(reply) => Ok(reply::of_reply(reply)),
            Err(AgentError::Call(CallError::Waiting(approval))) => Ok(self.approver.ask(&approval, &call)),
            Err(AgentError::Call(error)) => reply::of_error(error),
            Err(AgentError::Refused(reason)) => Ok(CallOutcome::failure(reason.to_string())),
            Err(other) => Err(fault(other)),
        }
    }

    async fn look(&self) -> Result<u64, RpcError> {
        let mut hasher = DefaultHasher::new();
        for tool in self.toolset().await?.tools {
            (tool.name.as_str(), tool.description()).hash(&mut hasher);
            match tool.tool.action() {
                Some((_, action)) => action.input_schema.hash(&mut hasher),
                None => tool.tool.input_schema().hash(&mut hasher),
            }
        }
        Ok(hasher.finish())
    }

    async fn search(&self, use_cases: Vec<String>, limit: u64) -> Result<Vec<Value>, RpcError> {
        let toolset = self.toolset().await?;
        let limit = usize::try_from(limit).ok();
        let found = use_cases.into_iter().map(|case| {
            let picked = toolset.select(Some(&case), limit).picked;
            let tools: Vec<Value> =
                picked.iter().filter(|picked| picked.is_named || picked.score > Some(0.0)).map(|picked| brief(picked.tool)).collect();
            json!({"use_case": case, "tools": tools})
        });
        Ok(found.collect())
    }
}

impl Surface for AgentTools {
    fn instructions(&self) -> String {
        "The tools of one agent of a Toolyard project. A call that must be approved by a person says so and how.".to_owned()
    }

    fn list<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Page, RpcError>> {
        Box::pin(self.page(cursor))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<CallOutcome, RpcError>> {
        Box::pin(self.run(call))
    }

    fn fingerprint(&self) -> BoxFuture<'_, Result<u64, RpcError>> {
        Box::pin(self.look())
    }
}

impl Searchable for AgentTools {
    fn find(&self, use_cases: Vec<String>, limit: u64) -> BoxFuture<'_, Result<Vec<Value>, RpcError>> {
        Box::pin(self.search(use_cases, limit))
    }

    fn connect(&self, arguments: Map<String, Value>) -> BoxFuture<'_, Result<CallOutcome, RpcError>> {
        Box::pin(connect::connect(&self.approver.domains, self.approver.scope, arguments))
    }
}

fn needs_context(tool: &GrantedTool) -> bool {
    match &tool.call_ref {
        CallRef::Reserved { op } => ops::find(op).is_some_and(Op::needs_context),
        _ => false,
    }
}

fn defined(tool: &GrantedTool) -> Value {
    let mut defined = tool.define(Format::Mcp);
    defined["title"] = json!(tool.tool.title());
    if tool.tool.action().is_some() {
        defined["annotations"]["openWorldHint"] = true.into();
    }
    defined
}

fn brief(tool: &GrantedTool) -> Value {
    let defined = tool.define(Format::Mcp);
    json!({"name": defined["name"], "description": defined["description"], "input_schema": defined["inputSchema"]})
}

fn fault(error: AgentError) -> RpcError {
    match error {
        AgentError::NotFound => RpcError::Params("There is no such agent any more.".to_owned()),
        other => RpcError::internal(&other),
    }
}
