//! A run as streams that clients speak: AG-UI, the UI messages of Vercel's AI SDK, and OpenAI's chat completions and responses. Functions of
//! events; each encoder remembers only what is open in its stream, so that it is built up again by reading the log from its beginning.

mod ag_ui;
mod chat;
mod model;
mod responses;
mod vercel;

use std::collections::HashMap;

use kernel::{RunId, Scope};
use serde_json::Value;

use crate::{AgentRuns, RunError, RunEvent, rows};

pub use ag_ui::AgUi;
pub use chat::Completion;
pub use model::{Ending, ModelAnswer, run_named};
pub use responses::{Response, ResponseFrame, response_id, run_of_response};
pub use vercel::{Vercel, plain_messages};

/// How tools of a run are to be shown, by their names.
pub type Renders = HashMap<String, Value>;

/// A stream of values that a run is told in.
pub trait Encoder: Send {
    /// What one event of the run is in this stream.
    fn encode(&mut self, event: &RunEvent) -> Vec<Value>;

    /// What the stream ends with, after its last value.
    fn farewell(&self) -> Option<&'static str> {
        None
    }
}

impl AgentRuns {
    /// How the tools of a run are to be shown, where its author says so.
    #[kernel::boxed]
    pub async fn renders(&self, scope: Scope, id: RunId) -> Result<Renders, RunError> {
        let config = rows::config(&self.0.parts.db, scope.project, id).await?.ok_or(RunError::NotFound)?;
        Ok(renders(&config["data"]))
    }
}

fn renders(data: &Value) -> Renders {
    let lists = [data.get("tools"), data.pointer("/parameters/agent/tools")];
    let tools = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
    tools.filter_map(|tool| Some((tool_name(tool)?, tool.get("render").filter(|render| render.is_object())?.clone()))).collect()
}

/// The name under which the model knows a tool config.
fn tool_name(tool: &Value) -> Option<String> {
    let field = |name: &str| tool.get(name).and_then(Value::as_str);
    let pair = || Some(format!("{}__{}", field("integration")?, field("action")?));
    field("name").or_else(|| field("op")).or_else(|| field("slug")).map(str::to_owned).or_else(pair)
}

/// A result as JSON where it is that.
fn readable(content: &str) -> Value {
    serde_json::from_str(content).unwrap_or_else(|_| content.into())
}

#[cfg(test)]
pub(crate) mod tests {
    use kernel::ApprovalId;
    use models::Usage;
    use serde_json::json;

    use super::*;
    use crate::RunState;

    /// A run with everything in it: thoughts, words, two calls, an approval, a turn that was cut off, and an answer.
    pub(crate) fn whole_run() -> Vec<RunEvent> {
        let usage = Usage { input: 100, output: 20, cached_input: 60, ..Usage::default() };
        let text = |turn: u32, text: &str| RunEvent::TextDelta { turn, text: text.to_owned() };
        let call = |id: &str, arguments: &str| {
            [
                RunEvent::ToolCallStarted { turn: 1, id: id.to_owned(), name: "weather".to_owned() },
                RunEvent::ToolCallArguments { id: id.to_owned(), text: arguments.to_owned() },
                RunEvent::ToolCallEnded { id: id.to_owned() },
            ]
        };
        let result = |id: &str, content: &str, is_error: bool| RunEvent::ToolResult {
            id: id.to_owned(),
            name: "weather".to_owned(),
            content: content.to_owned(),
            is_error,
        };
        let mut events = vec![
            RunEvent::RunStarted { session_id: Some("s-1".to_owned()) },
            RunEvent::TurnStarted { turn: 1, repeated: false },
            RunEvent::ReasoningDelta { turn: 1, text: "Two cities.".to_owned() },
            text(1, "Let me "),
            text(1, "look."),
            RunEvent::TextEnd { turn: 1 },
        ];
        events.extend(call("c1", "{\"city\":\"Paris\"}"));
        events.extend(call("c2", "{\"city\":"));
        events.push(RunEvent::Usage { turn: 1, usage });
        events.push(RunEvent::ApprovalNeeded {
            approval: ApprovalId::new(),
            url: "https://yard.example/approvals/1".to_owned(),
            id: "c1".to_owned(),
            name: "weather".to_owned(),
            arguments: json!({"city": "Paris"}),
        });
        events.push(result("c1", "{\"degrees\":12}", false));
        events.push(result("c2", "no JSON", true));
        events.extend([
            RunEvent::TurnStarted { turn: 2, repeated: false },
            text(2, "It is"),
            RunEvent::TurnStarted { turn: 2, repeated: true },
            text(2, "12 degrees."),
            RunEvent::TextEnd { turn: 2 },
            RunEvent::Usage { turn: 2, usage },
            RunEvent::RunEnded {
                state: RunState::Done,
                code: 200,
                message: "Success".to_owned(),
                outputs: Some(json!({"text": "12 degrees.", "messages": [], "stop_reason": "end"})),
            },
        ]);
        events
    }

    #[test]
    fn renders_are_found_by_the_names_of_tools() {
        let connect = json!({"kind": "connect"});
        let data = json!({"tools": [
            {"type": "client", "name": "ask", "render": connect},
            {"type": "gateway", "integration": "github", "action": "LIST", "connection": "main", "render": connect},
            {"type": "platform", "op": "find", "render": null},
        ]});
        let found = renders(&data);
        assert_eq!(found.len(), 2);
        assert_eq!((&found["ask"], &found["github__LIST"]), (&connect, &connect));
    }
}
