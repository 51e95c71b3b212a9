//! AG-UI 1.0: events between an agent and whoever shows it.

use models::Usage;
use serde_json::{Value, json};

use super::Encoder;
use crate::{RunEvent, RunState};

/// Tells a run in the events of AG-UI.
#[derive(Debug)]
pub struct AgUi {
    run: String,
    thread: String,
    messages: u32,
    text: Option<String>,
    reasoning: Option<String>,
    step: Option<String>,
    calls: Vec<String>,
    usage: Usage,
}

impl AgUi {
    pub fn new(run: impl Into<String>) -> Self {
        let run = run.into();
        let thread = run.clone();
        Self { run, thread, messages: 0, text: None, reasoning: None, step: None, calls: Vec::new(), usage: Usage::default() }
    }

    fn message_id(&mut self) -> String {
        self.messages += 1;
        format!("{}-{}", self.run, self.messages)
    }

    fn close_text(&mut self, told: &mut Vec<Value>) {
        if let Some(id) = self.text.take() {
            told.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}));
        }
    }

    fn close_reasoning(&mut self, told: &mut Vec<Value>) {
        if let Some(id) = self.reasoning.take() {
            told.push(json!({"type": "REASONING_MESSAGE_END", "messageId": id}));
            told.push(json!({"type": "REASONING_END", "messageId": id}));
        }
    }

    /// What is open when a turn ends, also one that a crash cut off.
    fn close_turn(&mut self, told: &mut Vec<Value>) {
        self.close_reasoning(told);
        self.close_text(told);
        for id in std::mem::take(&mut self.calls) {
            told.push(json!({"type": "TOOL_CALL_END", "toolCallId": id}));
        }
        if let Some(name) = self.step.take() {
            told.push(json!({"type": "STEP_FINISHED", "stepName": name}));
        }
    }

    fn text(&mut self, text: &str, told: &mut Vec<Value>) {
        self.close_reasoning(told);
        let id = if let Some(id) = &self.text {
            id.clone()
        } else {
            let id = self.message_id();
            told.push(json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}));
            self.text.insert(id).clone()
        };
        told.push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text}));
    }

    fn reasoning(&mut self, text: &str, told: &mut Vec<Value>) {
        let id = if let Some(id) = &self.reasoning {
            id.clone()
        } else {
            let id = self.message_id();
            told.push(json!({"type": "REASONING_START", "messageId": id}));
            told.push(json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}));
            self.reasoning.insert(id).clone()
        };
        told.push(json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": text}));
    }

    fn end(&self, state: RunState, code: i64, message: &str, outputs: Option<&Value>) -> Value {
        let usage = json!([{
            "inputTokens": self.usage.input, "outputTokens": self.usage.output, "totalTokens": self.usage.input + self.usage.output,
            "cachedInputTokens": self.usage.cached_input, "reasoningTokens": self.usage.reasoning,
        }]);
        let outcome = match state {
            RunState::Cancelled => "cancelled",
            RunState::Failed => return json!({"type": "RUN_ERROR", "message": message, "code": code.to_string(), "usage": usage}),
            _ => "success",
        };
        let mut end =
            json!({"type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run, "outcome": {"type": outcome}, "usage": usage});
        if let Some(outputs) = outputs {
            end["result"] = outputs.clone();
        }
        end
    }
}

impl Encoder for AgUi {
    fn encode(&mut self, event: &RunEvent) -> Vec<Value> {
        let mut told = Vec::new();
        match event {
            RunEvent::RunStarted { session_id } => {
                self.thread = session_id.clone().unwrap_or_else(|| self.run.clone());
                told.push(json!({"type": "RUN_STARTED", "threadId": self.thread, "runId": self.run}));
            }
            RunEvent::TurnStarted { turn, .. } => {
                self.close_turn(&mut told);
                let name = format!("turn {turn}");
                told.push(json!({"type": "STEP_STARTED", "stepName": name}));
                self.step = Some(name);
            }
            RunEvent::TextDelta { text, .. } if !text.is_empty() => self.text(text, &mut told),
            RunEvent::ReasoningDelta { text, .. } if !text.is_empty() => self.reasoning(text, &mut told),
            RunEvent::TextDelta { .. } | RunEvent::ReasoningDelta { .. } => {}
            RunEvent::TextEnd { .. } => self.close_text(&mut told),
            RunEvent::ToolCallStarted { id, name, .. } => {
                self.close_reasoning(&mut told);
                self.close_text(&mut told);
                self.calls.push(id.clone());
                told.push(json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name}));
            }
            RunEvent::ToolCallArguments { id, text } => {
                if self.calls.contains(id) && !text.is_empty() {
                    told.push(json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": text}));
                }
            }
            RunEvent::ToolCallEnded { id } => {
                if let Some(at) = self.calls.iter().position(|open| open == id) {
                    self.calls.remove(at);
                    told.push(json!({"type": "TOOL_CALL_END", "toolCallId": id}));
                }
            }
            RunEvent::ToolResult { id, content, is_error, .. } => {
                let message = self.message_id();
                let mut result =
                    json!({"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": id, "content": content, "role": "tool"});
                if *is_error {
                    result["metadata"] = json!({"isError": true});
                }
                told.push(result);
            }
            RunEvent::ApprovalNeeded { approval, url, id, name, arguments } => {
                let value = json!({"approvalId": approval, "url": url, "toolCallId": id, "toolName": name, "arguments": arguments});
                told.push(json!({"type": "CUSTOM", "name": "approval_needed", "value": value}));
            }
            RunEvent::Usage { usage, .. } => self.usage += *usage,
            RunEvent::RunEnded { state, code, message, outputs } => {
                self.close_turn(&mut told);
                told.push(self.end(*state, *code, message, outputs.as_ref()));
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::whole_run;
    use super::*;

    #[test]
    fn what_begins_also_ends() {
        let mut encoder = AgUi::new("r");
        let told: Vec<Value> = whole_run().iter().flat_map(|event| encoder.encode(event)).collect();
        let count = |kind: &str| told.iter().filter(|value| value["type"] == kind).count();
        for (begins, ends) in [
            ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END"),
            ("REASONING_START", "REASONING_END"),
            ("TOOL_CALL_START", "TOOL_CALL_END"),
            ("STEP_STARTED", "STEP_FINISHED"),
            ("RUN_STARTED", "RUN_FINISHED"),
        ] {
            assert!(count(begins) > 0 && count(begins) == count(ends), "{begins}");
        }
        assert_eq!((&told[0]["threadId"], &told[0]["runId"]), (&json!("s-1"), &json!("r")));
        let end = told.last().unwrap();
        assert_eq!((&end["outcome"]["type"], &end["usage"][0]["inputTokens"]), (&json!("success"), &json!(200)));
        // A turn that was cut off is another message, so that its words can be told from those that count.
        let starts: Vec<&Value> =
            told.iter().filter(|value| value["type"] == "TEXT_MESSAGE_START").map(|value| &value["messageId"]).collect();
        assert_eq!(starts.len(), 3);
        assert_ne!(starts[1], starts[2]);
    }

    #[test]
    fn a_failure_is_an_error() {
        let failed = RunEvent::RunEnded { state: RunState::Failed, code: 424, message: "The model said no.".to_owned(), outputs: None };
        let told = AgUi::new("r").encode(&failed);
        assert_eq!((&told[0]["type"], &told[0]["code"]), (&json!("RUN_ERROR"), &json!("424")));
    }
}
