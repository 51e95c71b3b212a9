//! Search mode: three tools in place of hundreds. A model finds what it needs, calls it by name, and connects what is missing.

use std::sync::Arc;
use std::time::Duration;

use calls::{CallRequest, ToolResult};
use definitions::format::function_name;
use futures_util::future::BoxFuture;
use kernel::CallRef;
use serde_json::{Map, Value, json};

use crate::project::{ProjectTool, ProjectTools};
use crate::{Call, CallOutcome, Page, RpcError, Surface, connect, reply};

const DEFAULT_LIMIT: u64 = 5;
const MAX_LIMIT: u64 = 20;
const MAX_USE_CASES: usize = 20;
/// The tool that connects an account.
pub(crate) const CONNECT: &str = "connect";

/// A surface that can be searched.
pub trait Searchable: Surface {
    /// The tools that fit each use case, the best first: `{use_case, tools, connect?, note?}`.
    fn find(&self, use_cases: Vec<String>, limit: u64) -> BoxFuture<'_, Result<Vec<Value>, RpcError>>;

    /// Connects an account, or says what a person has to do for it.
    fn connect(&self, arguments: Map<String, Value>) -> BoxFuture<'_, Result<CallOutcome, RpcError>>;
}

/// Search mode over a surface.
pub struct SearchMode(pub Arc<dyn Searchable>);

impl std::fmt::Debug for SearchMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SearchMode")
    }
}

impl SearchMode {
    async fn find(&self, arguments: Map<String, Value>) -> Result<CallOutcome, RpcError> {
        let use_cases = match arguments.get("use_cases") {
            Some(Value::String(case)) => Some(vec![case.clone()]),
            Some(Value::Array(cases)) => cases.iter().map(|case| case.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        let Some(use_cases) = use_cases.filter(|cases| (1..=MAX_USE_CASES).contains(&cases.len())) else {
            return Ok(CallOutcome::failure(format!("`use_cases` must be 1 to {MAX_USE_CASES} sentences that say what you want to do.")));
        };
        let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let found = match self.0.find(use_cases, limit).await {
            Err(RpcError::Params(why)) => return Ok(CallOutcome::failure(why)),
            found => json!({"results": found?}),
        };
        Ok(CallOutcome::text(found.to_string(), Some(found), false))
    }

    async fn pass_on(&self, mut call: Call) -> Result<CallOutcome, RpcError> {
        let Some(Value::String(name)) = call.arguments.remove("name") else {
            return Ok(CallOutcome::failure("`name` must be the name of a tool, as `find_tools` returned it."));
        };
        let arguments = match call.arguments.remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Ok(CallOutcome::failure("`arguments` must be an object that fits the tool's input_schema.")),
        };
        match self.0.call(Call { name, arguments, ..call }).await {
            // The model chose the name, and can choose another.
            Err(RpcError::Params(why)) => Ok(CallOutcome::failure(why)),
            other => other,
        }
    }
}

impl Surface for SearchMode {
    fn instructions(&self) -> String {
        "Find tools for what you want to do with `find_tools`, then call them by name with `call_tool`. Where a result says `connect`, connect \
         the account first with `connect` and let the person open the link."
            .to_owned()
    }

    fn list<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Page, RpcError>> {
        Box::pin(async move {
            match cursor {
                None => Ok(Page { tools: definitions(), next: None }),
                Some(_) => Err(RpcError::Params("There is one page only.".to_owned())),
            }
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<CallOutcome, RpcError>> {
        Box::pin(async move {
            match call.name.as_str() {
                "find_tools" => self.find(call.arguments).await,
                "call_tool" => self.pass_on(call).await,
                CONNECT => self.0.connect(call.arguments).await,
                other => Err(RpcError::Params(format!("Unknown tool: {}", other.chars().take(200).collect::<String>()))),
            }
        })
    }

    /// The three tools never change.
    fn fingerprint(&self) -> BoxFuture<'_, Result<u64, RpcError>> {
        Box::pin(async { Ok(0) })
    }

    fn watch_every(&self) -> Duration {
        Duration::from_hours(1)
    }

    fn capabilities(&self) -> Value {
        json!({"tools": {}})
    }
}

fn definitions() -> Vec<Value> {
    vec![
        json!({
            "name": "find_tools",
            "title": "Find tools",
            "description": "Finds the tools that fit what you want to do, with the schema of their arguments. One result per use case, the best tool first.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "use_cases": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_USE_CASES,
                        "description": "What you want to do, one sentence each, such as `open an issue on GitHub`"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT, "description": "The most tools per use case"},
                },
                "required": ["use_cases"],
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        }),
        json!({
            "name": "call_tool",
            "title": "Call a tool",
            "description": "Calls a tool that `find_tools` returned.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "The tool's name"},
                    "arguments": {"type": "object", "description": "What fits the tool's input_schema"},
                },
                "required": ["name"],
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true},
        }),
        connect_definition(),
    ]
}

/// The tool that connects an account.
pub(crate) fn connect_definition() -> Value {
    json!({
        "name": CONNECT,
        "title": "Connect an account",
        "description": "Connects an account of an integration. Answers with a link for the person, where one has to sign in or type a key.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "integration": {"type": "string", "description": "The integration's key, such as `github`"},
                "provider": {"type": "string", "description": "The provider, where several offer the integration"},
                "slug": {"type": "string", "description": "A name for the connection, where there shall be several"},
            },
            "required": ["integration"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true},
    })
}

impl ProjectTools {
    /// Asks discovery, and turns what it found into tools that can be called.
    async fn search(&self, use_cases: Vec<String>, limit: u64) -> Result<Vec<Value>, RpcError> {
        let arguments = json!({"use_cases": use_cases, "limit_alternatives": limit - 1});
        let request =
            CallRequest { name: CallRef::Reserved { op: "find_capabilities".to_owned() }.into(), arguments, ..CallRequest::default() };
        let ToolResult { data, error, .. } = match self.calls().call(self.scope(), request).await {
            Ok(reply) => reply.result,
            Err(error) => {
                return Err(reply::of_error(error).err().unwrap_or_else(|| RpcError::Params("Discovery is not allowed here.".to_owned())));
            }
        };
        if let Some(error) = error {
            return Err(RpcError::Params(error));
        }
        let entries = self.callable().await?;
        let mut results = Vec::with_capacity(use_cases.len());
        for capability in data["capabilities"].as_array().into_iter().flatten() {
            results.push(self.result(capability, &entries).await?);
        }
        Ok(results)
    }

    async fn result(&self, capability: &Value, entries: &[ProjectTool]) -> Result<Value, RpcError> {
        let alternatives = capability["alternatives"].as_array().into_iter().flatten();
        let primary = Some(&capability["tool"]).filter(|tool| tool.is_object());
        let (mut tools, mut missing) = (Vec::new(), Vec::new());
        for candidate in primary.into_iter().chain(alternatives) {
            let (provider, integration) = (candidate["provider"].as_str(), candidate["integration"].as_str());
            let fitting: Vec<&ProjectTool> = entries.iter().filter(|entry| is(entry, candidate)).collect();
            for entry in &fitting {
                tools.extend(self.define(entry).await?.map(|defined| brief(entry, &defined)));
            }
            if let (true, Some(integration)) = (fitting.is_empty(), integration)
                && !missing.iter().any(|known: &Value| known["integration"] == integration && known["provider"].as_str() == provider)
            {
                missing.push(json!({"integration": integration, "provider": provider, "for": candidate["description"]}));
            }
        }
        let mut result = json!({"use_case": capability["use_case"], "tools": tools});
        if !missing.is_empty() {
            result["connect"] = missing.into();
        }
        if let Some(note) = capability.get("note") {
            result["note"] = note.clone();
        }
        Ok(result)
    }
}

impl Searchable for ProjectTools {
    fn find(&self, use_cases: Vec<String>, limit: u64) -> BoxFuture<'_, Result<Vec<Value>, RpcError>> {
        Box::pin(self.search(use_cases, limit))
    }

    fn connect(&self, arguments: Map<String, Value>) -> BoxFuture<'_, Result<CallOutcome, RpcError>> {
        Box::pin(connect::connect(&self.approver.domains, self.scope(), arguments))
    }
}

pub(crate) fn is(entry: &ProjectTool, candidate: &Value) -> bool {
    match entry {
        ProjectTool::Action { integration, action, .. } => {
            candidate["provider"] == integration.provider
                && candidate["integration"] == integration.key.as_str()
                && candidate["action"] == action.key.as_str()
        }
        ProjectTool::Workflow(_) => false,
    }
}

pub(crate) fn brief(entry: &ProjectTool, defined: &Value) -> Value {
    json!({
        "name": function_name(&entry.call_ref().to_string()),
        "description": defined["description"],
        "input_schema": defined["inputSchema"],
    })
}
