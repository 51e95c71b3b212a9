//! `test_run`: the agent tries itself, optionally with a change that is not stored.

use std::time::Duration;

use definitions::workflow_names;
use kernel::Scope;
use serde_json::{Map, Value, json};
use workflows::{Delta, Family, InvokeRequest, References};

use super::{AgentError, Answer, Refusal, variant};
use crate::Calls;
use crate::call::Call;

const LIMIT: Duration = Duration::from_mins(2);

impl Calls {
    /// What else rules may call a test of this workflow: by the workflow's own names.
    pub(crate) async fn tested_workflow(&self, scope: Scope, arguments: &Map<String, Value>) -> Vec<String> {
        let Some(Ok(variant)) = arguments.contains_key("target").then(|| variant(arguments, "target")) else { return Vec::new() };
        let found = self.0.workflows.retrieve(scope, &References::variant(variant.uuid()), None).await;
        found.map(|found| workflow_names(&found).to_vec()).unwrap_or_default()
    }

    pub(super) async fn test_run(&self, call: &Call, arguments: &Map<String, Value>) -> Answer {
        let scope = call.scope;
        let variant = variant(arguments, "target")?;
        let references = References::variant(variant.uuid());
        let found = self.0.workflows.retrieve(scope, &references, None).await?;
        let data = match arguments.get("delta").filter(|delta| !delta.is_null()) {
            None => None,
            Some(delta) => Some(changed(delta, found.revision.data.clone())?),
        };
        let request = InvokeRequest {
            references,
            inputs: arguments["inputs"].clone(),
            data,
            depth: call.depth,
            limit: Some(call.limit.map_or(LIMIT, |limit| limit.min(LIMIT))),
            is_test: true,
            origin: call.origin.clone(),
            ..InvokeRequest::default()
        };
        // The rules for this workflow were asked together with those for the op.
        let reply = self.0.executor.run(scope, &found, request).await;
        if !reply.is_success() {
            let incomplete =
                AgentError::new("test_run_incomplete", reply.message).details(json!({"status": reply.code, "run_id": reply.run}));
            return Err(incomplete.retryable().into());
        }
        let output = reply.outputs.unwrap_or(Value::Null);
        let tools = Seen::in_messages(&output);
        let (verdict, reason) = verdict(&tools, expected(arguments));
        Ok(json!({
            "output": output,
            "tools": tools.iter().map(|tool| json!({"name": tool.name, "called": true, "returned": tool.returned})).collect::<Vec<_>>(),
            "approvals": pending(&output),
            "resolved": {},
            "test_id": null,
            "run_id": reply.run,
            "verdict": verdict,
            "verdict_reason": reason,
        }))
    }
}

/// The tool that the run should end with.
fn expected(arguments: &Map<String, Value>) -> Option<&str> {
    arguments.get("expectations")?.get("terminal_tool")?.as_str()
}

/// The stored data with a change to its parameters.
fn changed(delta: &Value, data: Option<Value>) -> Result<Value, Refusal> {
    let set = delta.get("set").and_then(Value::as_object).cloned();
    let remove: Vec<String> = serde_json::from_value(delta.get("remove").cloned().unwrap_or_else(|| json!([]))).unwrap_or_default();
    let outside = set.iter().flat_map(Map::keys).chain(&remove).find(|path| *path != "parameters" && !path.starts_with("parameters."));
    if let Some(outside) = outside {
        let error = AgentError::new("outside_scope", format!("`{outside}` is outside `parameters`, which is all that a test may change."));
        return Err(error.into());
    }
    Ok(Delta { set, remove: Some(remove) }.apply(Family::Workflow, data)?)
}

/// A tool that was called in the messages of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    id: String,
    name: String,
    returned: bool,
    failed: bool,
}

impl Seen {
    /// Calls and results as chat messages write them.
    fn in_messages(output: &Value) -> Vec<Self> {
        let mut seen: Vec<Self> = Vec::new();
        for message in output.get("messages").and_then(Value::as_array).into_iter().flatten() {
            for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                let name = call["function"]["name"].as_str().or_else(|| call["name"].as_str());
                if let (Some(id), Some(name)) = (call["id"].as_str(), name) {
                    seen.push(Self { id: id.to_owned(), name: name.to_owned(), returned: false, failed: false });
                }
            }
            if let Some(tool) = seen.iter_mut().find(|tool| message["tool_call_id"] == tool.id.as_str()) {
                tool.returned = true;
                tool.failed = message["is_error"] == true || message["status"] == "error";
            }
        }
        seen
    }
}

fn pending(output: &Value) -> Vec<&str> {
    output.pointer("/pending_interaction/tool").and_then(Value::as_str).into_iter().collect()
}

fn verdict(tools: &[Seen], terminal: Option<&str>) -> (&'static str, String) {
    if let Some(failed) = tools.iter().find(|tool| tool.failed) {
        return ("failed", format!("`{}` failed", failed.name));
    }
    let Some(terminal) = terminal else { return ("unconfirmed", "no terminal tool was expected".to_owned()) };
    let runs: Vec<&Seen> = tools.iter().filter(|tool| tool.name == terminal).collect();
    match runs.as_slice() {
        [] => ("incomplete", format!("`{terminal}` never ran")),
        runs if runs.iter().any(|tool| tool.returned) => ("pass", format!("`{terminal}` returned")),
        _ => ("unconfirmed", format!("`{terminal}` was called and did not return")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_decide_the_verdict() {
        let call = |name: &str| json!({"role": "assistant", "tool_calls": [{"id": name, "function": {"name": name}}]});
        let result = |name: &str| json!({"role": "tool", "tool_call_id": name, "content": "ok"});
        let error = |name: &str| json!({"role": "tool", "tool_call_id": name, "is_error": true});
        for (messages, terminal, expected) in [
            (json!([]), None, "unconfirmed"),
            (json!([]), Some("send"), "incomplete"),
            (json!([call("find"), result("find")]), Some("send"), "incomplete"),
            (json!([call("send"), result("send")]), Some("send"), "pass"),
            (json!([call("send")]), Some("send"), "unconfirmed"),
            (json!([call("send"), error("send")]), Some("send"), "failed"),
            (json!([call("find"), error("find"), call("send"), result("send")]), Some("send"), "failed"),
        ] {
            let seen = Seen::in_messages(&json!({"messages": messages}));
            assert_eq!(verdict(&seen, terminal).0, expected, "{messages}");
        }
        assert_eq!(Seen::in_messages(&json!("text")), []);
    }

    #[test]
    fn a_test_changes_parameters_only() {
        assert!(changed(&json!({"set": {"url": "https://x"}}), None).is_err());
        assert!(changed(&json!({"remove": ["headers"]}), None).is_err());
        let Ok(data) =
            changed(&json!({"set": {"parameters": {"a": 2}}, "remove": ["parameters.b"]}), Some(json!({"parameters": {"a": 1, "b": 1}})))
        else {
            panic!("a change of parameters")
        };
        assert_eq!(data, json!({"parameters": {"a": 2}}));
    }
}
