//! OpenAI's Responses. Nothing is stored there: the conversation is ours, and reasoning travels with it, encrypted.

use serde_json::{Map, Value, json};

use crate::error::of_envelope;
use crate::fields::{count, json_text, list, text};
use crate::prompt::{Message, Prompt, ToolCall, argument_text, set_inside, told_schema, with_extras};
use crate::reply::{MOST_CALLS, Reply, Stop, Usage};
use crate::{Delta, ErrorKind, ModelError, schema};

const OPAQUE: &str = "openai_responses";

pub(crate) fn body(prompt: &Prompt<'_>) -> Map<String, Value> {
    let mut body = with_extras(prompt);
    let mut system = prompt.system.to_owned();
    if let Some(wanted) = prompt.output_schema {
        let is_free = body.get("text").is_none_or(|text| text.get("format").is_none());
        match schema::openai(wanted) {
            Some(format) if is_free => {
                let mut written = json!({"type": "json_schema"});
                written.as_object_mut().into_iter().for_each(|written| written.extend(format.clone()));
                set_inside(&mut body, "text", "format", written);
            }
            _ => system = told_schema(&system, wanted),
        }
    }
    body.insert("model".into(), prompt.model.into());
    if !system.is_empty() {
        body.insert("instructions".into(), system.into());
    }
    body.insert("input".into(), prompt.messages.iter().flat_map(items).collect());
    if !prompt.tools.is_empty() {
        // Functions are strict here unless a request says otherwise, and most schemas do not fit that.
        let function = |tool: &crate::Tool| json!({"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters, "strict": false});
        body.insert("tools".into(), prompt.tools.iter().map(function).collect());
    }
    if let Some(most) = prompt.max_output_tokens {
        body.insert("max_output_tokens".into(), most.into());
    }
    body.insert("store".into(), false.into());
    if may_reason(prompt.model) {
        body.entry("include").or_insert_with(|| json!(["reasoning.encrypted_content"]));
    }
    body.insert("stream".into(), prompt.stream.into());
    body
}

/// Models that never reason refuse a request that asks for their reasoning.
fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !["gpt-4", "gpt-3", "chatgpt"].iter().any(|family| name.starts_with(family)) && !name.contains("-chat")
}

fn items(message: &Message) -> Vec<Value> {
    match message {
        Message::User { text } => vec![json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})],
        Message::Tool { call_id, content, .. } => {
            vec![json!({"type": "function_call_output", "call_id": call_id, "output": content})]
        }
        Message::Assistant { text, calls, opaque } => {
            if let Some(items) = opaque.as_ref().and_then(|opaque| opaque.get(OPAQUE)).and_then(Value::as_array) {
                return items.clone();
            }
            let said = (!text.is_empty())
                .then(|| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}));
            let call = |call: &ToolCall| json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": argument_text(&call.arguments)});
            said.into_iter().chain(calls.iter().map(call)).collect()
        }
    }
}

pub(crate) fn reply(body: &Value) -> Result<Reply, ModelError> {
    if !body.get("output").is_some_and(Value::is_array) {
        return Err(ModelError::new(ErrorKind::Malformed, "the model's answer has no `output`"));
    }
    read(body, list(body, "output"))
}

/// Reads the items of a response that has come to its end.
fn read(response: &Value, items: &[Value]) -> Result<Reply, ModelError> {
    if text(response, "status") == "failed" {
        return Err(of_envelope(None, &response["error"]));
    }
    let (mut said, mut refusal, mut calls) = (String::new(), String::new(), Vec::new());
    for item in items {
        match text(item, "type") {
            "message" => {
                for part in list(item, "content") {
                    said.push_str(text(part, "text"));
                    refusal.push_str(text(part, "refusal"));
                }
            }
            "function_call" => calls.push(call(item)),
            _ => {}
        }
    }
    let stop = match (text(response, "status"), text(&response["incomplete_details"], "reason")) {
        _ if !refusal.is_empty() => Stop::Refusal,
        ("incomplete", "max_output_tokens") => Stop::Length,
        ("incomplete", "content_filter") => Stop::Refusal,
        ("completed" | "", _) => Stop::End,
        _ => Stop::Other,
    };
    let is_plain = items.iter().all(|item| matches!(text(item, "type"), "message" | "function_call"));
    let opaque = (!is_plain).then(|| json!({OPAQUE: items}));
    let text = if said.is_empty() { refusal } else { said };
    Ok(Reply { text, calls, stop, usage: usage(&response["usage"]), opaque })
}

fn call(item: &Value) -> ToolCall {
    ToolCall { id: text(item, "call_id").to_owned(), name: text(item, "name").to_owned(), arguments: json_text(item.get("arguments")) }
}

fn usage(usage: &Value) -> Usage {
    let read = |path: &[&str]| count(usage, path).unwrap_or_default();
    Usage {
        input: read(&["input_tokens"]),
        output: read(&["output_tokens"]),
        cached_input: read(&["input_tokens_details", "cached_tokens"]),
        cache_write: read(&["input_tokens_details", "cache_write_tokens"]),
        reasoning: read(&["output_tokens_details", "reasoning_tokens"]),
    }
}

/// An answer as its events build it up.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    /// The place of each call among the items.
    calls: Vec<u64>,
    items: Vec<Value>,
    response: Option<Value>,
}

impl Streamed {
    pub(crate) fn event(&mut self, event: &Value, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        let delta = text(event, "delta");
        match text(event, "type") {
            "response.output_text.delta" | "response.refusal.delta" if !delta.is_empty() => deltas.push(Delta::Text(delta.to_owned())),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" if !delta.is_empty() => {
                deltas.push(Delta::Reasoning(delta.to_owned()));
            }
            "response.output_item.added" if text(&event["item"], "type") == "function_call" => self.begin(event, deltas)?,
            "response.function_call_arguments.delta" if !delta.is_empty() => {
                let place = count(event, &["output_index"]);
                if let Some(index) = self.calls.iter().rposition(|call| Some(*call) == place) {
                    deltas.push(Delta::CallArguments { index, text: delta.to_owned() });
                }
            }
            "response.output_item.done" => self.items.push(event["item"].clone()),
            "response.completed" | "response.incomplete" | "response.failed" => self.response = Some(event["response"].clone()),
            "error" => return Err(of_envelope(None, event.get("error").filter(|error| error.is_object()).unwrap_or(event))),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, event: &Value, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.calls.len() >= MOST_CALLS {
            return Err(ModelError::too_large());
        }
        let ToolCall { id, name, .. } = call(&event["item"]);
        deltas.push(Delta::CallBegins { index: self.calls.len(), id, name });
        self.calls.push(count(event, &["output_index"]).unwrap_or_default());
        Ok(())
    }

    pub(crate) fn end(self) -> Result<Reply, ModelError> {
        let response = self.response.ok_or_else(ModelError::cut_off)?;
        // Some servers leave the output out at the end, because each item was sent before.
        let items = match list(&response, "output") {
            [] => &self.items,
            output => output,
        };
        read(&response, items)
    }
}
