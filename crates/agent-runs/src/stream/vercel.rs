//! The UI message stream of Vercel's AI SDK.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Encoder, Renders, readable};
use crate::{RunEvent, RunState};

/// Tells a run in the chunks of a UI message stream.
#[derive(Debug)]
pub struct Vercel {
    run: String,
    renders: Renders,
    parts: u32,
    text: Option<String>,
    reasoning: Option<String>,
    in_step: bool,
    /// The calls whose arguments are being written: their names, and the arguments so far.
    calls: HashMap<String, (String, String)>,
}

impl Vercel {
    pub fn new(run: impl Into<String>, renders: Renders) -> Self {
        Self { run: run.into(), renders, parts: 0, text: None, reasoning: None, in_step: false, calls: HashMap::new() }
    }

    fn close_parts(&mut self, told: &mut Vec<Value>) {
        for (kind, open) in [("reasoning-end", &mut self.reasoning), ("text-end", &mut self.text)] {
            told.extend(open.take().map(|id| json!({"type": kind, "id": id})));
        }
    }

    fn close_step(&mut self, told: &mut Vec<Value>) {
        self.close_parts(told);
        if std::mem::take(&mut self.in_step) {
            told.push(json!({"type": "finish-step"}));
        }
    }

    fn piece(&mut self, kind: &str, text: &str, told: &mut Vec<Value>) {
        let (open, other) = if kind == "text" { (&mut self.text, &mut self.reasoning) } else { (&mut self.reasoning, &mut self.text) };
        let other_kind = if kind == "text" { "reasoning" } else { "text" };
        told.extend(other.take().map(|id| json!({"type": format!("{other_kind}-end"), "id": id})));
        if open.is_none() {
            self.parts += 1;
            let id = format!("{kind}-{}", self.parts);
            told.push(json!({"type": format!("{kind}-start"), "id": id}));
            *open = Some(id);
        }
        told.push(json!({"type": format!("{kind}-delta"), "id": open, "delta": text}));
    }

    fn call_ended(&mut self, id: &str, told: &mut Vec<Value>) {
        let Some((name, arguments)) = self.calls.remove(id) else { return };
        let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
        told.push(match serde_json::from_str::<Value>(&arguments) {
            Ok(input) => json!({"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": input, "dynamic": true}),
            Err(error) => json!({
                "type": "tool-input-error", "toolCallId": id, "toolName": name, "input": arguments, "dynamic": true,
                "errorText": format!("the arguments are no JSON: {error}"),
            }),
        });
        self.render(id, &name, told);
    }

    fn render(&self, id: &str, name: &str, told: &mut Vec<Value>) {
        if let Some(render) = self.renders.get(name) {
            told.push(json!({"type": "data-render", "data": {"toolCallId": id, "render": render}}));
        }
    }

    fn end(state: RunState, message: &str, outputs: Option<&Value>, told: &mut Vec<Value>) {
        let stopped = outputs.and_then(|outputs| outputs.get("stop_reason")).and_then(Value::as_str);
        let reason = match (state, stopped) {
            (RunState::Cancelled, _) => return told.push(json!({"type": "abort", "reason": message})),
            (RunState::Failed, _) => {
                told.push(json!({"type": "error", "errorText": message}));
                "error"
            }
            (RunState::Limit, _) => "other",
            (_, Some("length")) => "length",
            (_, Some("tool_calls")) => "tool-calls",
            _ => "stop",
        };
        told.push(json!({"type": "finish", "finishReason": reason}));
    }
}

impl Encoder for Vercel {
    fn encode(&mut self, event: &RunEvent) -> Vec<Value> {
        let mut told = Vec::new();
        match event {
            RunEvent::RunStarted { session_id } => {
                let metadata = json!({"runId": self.run, "sessionId": session_id});
                told.push(json!({"type": "start", "messageId": self.run, "messageMetadata": metadata}));
            }
            RunEvent::TurnStarted { .. } => {
                self.close_step(&mut told);
                told.push(json!({"type": "start-step"}));
                self.in_step = true;
            }
            RunEvent::TextDelta { text, .. } => self.piece("text", text, &mut told),
            RunEvent::ReasoningDelta { text, .. } => self.piece("reasoning", text, &mut told),
            RunEvent::TextEnd { .. } => self.close_parts(&mut told),
            RunEvent::ToolCallStarted { id, name, .. } => {
                self.close_parts(&mut told);
                self.calls.insert(id.clone(), (name.clone(), String::new()));
                told.push(json!({"type": "tool-input-start", "toolCallId": id, "toolName": name, "dynamic": true}));
            }
            RunEvent::ToolCallArguments { id, text } => {
                if let Some((_, arguments)) = self.calls.get_mut(id) {
                    arguments.push_str(text);
                    told.push(json!({"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": text}));
                }
            }
            RunEvent::ToolCallEnded { id } => self.call_ended(id, &mut told),
            RunEvent::ToolResult { id, name, content, is_error } => {
                told.push(if *is_error {
                    json!({"type": "tool-output-error", "toolCallId": id, "errorText": content, "dynamic": true})
                } else {
                    json!({"type": "tool-output-available", "toolCallId": id, "output": readable(content), "dynamic": true})
                });
                self.render(id, name, &mut told);
            }
            RunEvent::ApprovalNeeded { approval, url, id, name, arguments } => {
                let data = json!({"approvalId": approval, "url": url, "toolCallId": id, "toolName": name, "arguments": arguments});
                told.push(json!({"type": "tool-approval-request", "approvalId": approval, "toolCallId": id}));
                told.push(json!({"type": "data-approval", "data": data}));
            }
            RunEvent::Usage { usage, .. } => {
                let tokens = json!({"inputTokens": usage.input, "outputTokens": usage.output, "cachedInputTokens": usage.cached_input});
                told.push(json!({"type": "message-metadata", "messageMetadata": {"usage": tokens}}));
            }
            RunEvent::RunEnded { state, message, outputs, .. } => {
                self.close_step(&mut told);
                Self::end(*state, message, outputs.as_ref(), &mut told);
            }
        }
        told
    }

    fn farewell(&self) -> Option<&'static str> {
        Some("[DONE]")
    }
}

/// UI messages as chat messages: the text of their parts becomes their content.
pub fn plain_messages(inputs: &mut Map<String, Value>) {
    let Some(Value::Array(messages)) = inputs.get_mut("messages") else { return };
    for message in messages.iter_mut().filter_map(Value::as_object_mut) {
        let Some(Value::Array(parts)) = message.get("parts") else { continue };
        let texts = parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
        let content = texts.collect::<Vec<_>>().join("\n");
        message.entry("content").or_insert_with(|| content.into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::whole_run;
    use super::*;

    #[test]
    fn what_begins_also_ends() {
        let renders = Renders::from([("weather".to_owned(), json!({"kind": "component"}))]);
        let mut encoder = Vercel::new("r", renders);
        let told: Vec<Value> = whole_run().iter().flat_map(|event| encoder.encode(event)).collect();
        let count = |kind: &str| told.iter().filter(|value| value["type"] == kind).count();
        for (begins, ends) in
            [("start", "finish"), ("start-step", "finish-step"), ("text-start", "text-end"), ("reasoning-start", "reasoning-end")]
        {
            assert!(count(begins) > 0 && count(begins) == count(ends), "{begins}");
        }
        assert_eq!((count("tool-input-available"), count("tool-input-error")), (1, 1));
        assert_eq!((count("tool-output-available"), count("tool-output-error"), count("data-render")), (1, 1, 4));
        let output = told.iter().find(|value| value["type"] == "tool-output-available").unwrap();
        assert_eq!(output["output"], json!({"degrees": 12}));
    }

    #[test]
    fn ui_messages_become_chat_messages() {
        let mut inputs = Map::from_iter([(
            "messages".to_owned(),
            json!([{"id": "1", "role": "user", "parts": [{"type": "text", "text": "a"}, {"type": "file"}, {"type": "text", "text": "b"}]}]),
        )]);
        plain_messages(&mut inputs);
        assert_eq!(inputs["messages"][0]["content"], "a\nb");
    }
}
