//! Anthropic's Messages.

use serde_json::{Map, Value, json};

use crate::error::of_envelope;
use crate::fields::{count, list, text};
use crate::prompt::{Message, Prompt, ToolCall, argument_object, set_inside, told_schema, with_extras};
use crate::reply::{MOST_CALLS, Reply, Stop, Usage};
use crate::{Delta, ErrorKind, ModelError, schema};

pub(crate) const VERSION: &str = "2023-06-01";
/// How long an answer may be where nobody says; the API wants a number, and every model takes this one.
const DEFAULT_MAX_TOKENS: u32 = 8_192;
const OPAQUE: &str = "anthropic";
/// The most blocks of content that one answer may have.
const MOST_BLOCKS: u64 = 4_096;

pub(crate) fn body(prompt: &Prompt<'_>) -> Map<String, Value> {
    let mut body = with_extras(prompt);
    let mut system = prompt.system.to_owned();
    if let Some(wanted) = prompt.output_schema {
        let is_free = body.get("output_config").is_none_or(|config| config.get("format").is_none());
        match schema::anthropic(wanted) {
            Some(schema) if is_free => {
                set_inside(&mut body, "output_config", "format", json!({"type": "json_schema", "schema": schema}));
            }
            _ => system = told_schema(&system, wanted),
        }
    }
    // A conversation with tools comes back turn by turn, so that a cache pays for itself from the second turn on.
    let cached = !prompt.tools.is_empty();
    body.insert("model".into(), prompt.model.into());
    if !system.trim().is_empty() {
        let mut block = json!({"type": "text", "text": system});
        mark(Some(&mut block), cached);
        body.insert("system".into(), json!([block]));
    }
    let mut messages = messages(prompt.messages);
    mark(messages.last_mut().and_then(|last| last["content"].as_array_mut()).and_then(|blocks| blocks.last_mut()), cached);
    body.insert("messages".into(), messages.into());
    if !prompt.tools.is_empty() {
        let tool = |tool: &crate::Tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters});
        body.insert("tools".into(), prompt.tools.iter().map(tool).collect());
    }
    match prompt.max_output_tokens {
        Some(most) => drop(body.insert("max_tokens".into(), most.into())),
        None => drop(body.entry("max_tokens").or_insert_with(|| DEFAULT_MAX_TOKENS.into())),
    }
    body.insert("stream".into(), prompt.stream.into());
    body
}

fn mark(block: Option<&mut Value>, cached: bool) {
    if let Some(block) = block.filter(|block| cached && matches!(text(block, "type"), "text" | "tool_result")) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// Neighbours of one role become one message: all results of a turn must be together, before anything else that the user says.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut written: Vec<Value> = Vec::new();
    for message in messages {
        let (role, blocks) = match message {
            Message::Assistant { text, calls, opaque } => ("assistant", said(text, calls, opaque.as_ref())),
            Message::User { text } => ("user", text_block(text)),
            Message::Tool { call_id, content, is_error, .. } => {
                let mut block = json!({"type": "tool_result", "tool_use_id": call_id_of(call_id), "content": content});
                if *is_error {
                    block["is_error"] = true.into();
                }
                ("user", vec![block])
            }
        };
        match written.last_mut().filter(|last| last["role"] == role) {
            Some(last) => last["content"].as_array_mut().into_iter().for_each(|content| content.extend(blocks.iter().cloned())),
            None if blocks.is_empty() => {}
            None => written.push(json!({"role": role, "content": blocks})),
        }
    }
    written
}

/// Blank text is refused, so it is left out.
fn text_block(text: &str) -> Vec<Value> {
    if text.trim().is_empty() { Vec::new() } else { vec![json!({"type": "text", "text": text})] }
}

fn said(text: &str, calls: &[ToolCall], opaque: Option<&Value>) -> Vec<Value> {
    if let Some(blocks) = opaque.and_then(|opaque| opaque.get(OPAQUE)).and_then(Value::as_array) {
        return blocks.clone();
    }
    let call = |call: &ToolCall| json!({"type": "tool_use", "id": call_id_of(&call.id), "name": call.name, "input": argument_object(&call.arguments)});
    text_block(text).into_iter().chain(calls.iter().map(call)).collect()
}

/// An id in the characters that are taken here; a conversation may have begun with another API.
fn call_id_of(id: &str) -> String {
    id.chars().map(|character| if character.is_ascii_alphanumeric() || "_-".contains(character) { character } else { '_' }).collect()
}

pub(crate) fn reply(body: &Value) -> Result<Reply, ModelError> {
    if !body.get("content").is_some_and(Value::is_array) {
        return Err(ModelError::new(ErrorKind::Malformed, "the model's answer has no `content`"));
    }
    let mut tokens = Tokens::default();
    tokens.read(&body["usage"]);
    Ok(read(list(body, "content"), body, tokens, None))
}

/// Reads blocks that are complete; `ending` has the reason to stop, and `raw` the arguments as they were written.
fn read(blocks: &[Value], ending: &Value, tokens: Tokens, raw: Option<&[Block]>) -> Reply {
    let mut said: String = blocks.iter().filter(|block| text(block, "type") == "text").map(|block| text(block, "text")).collect();
    let mut calls = Vec::new();
    for (index, block) in blocks.iter().enumerate().filter(|(_, block)| text(block, "type") == "tool_use") {
        let arguments = match raw.map(|raw| raw[index].input.as_str()).filter(|input| !input.is_empty()) {
            Some(input) => input.to_owned(),
            None => block.get("input").filter(|input| !input.is_null()).map_or_else(|| "{}".to_owned(), Value::to_string),
        };
        calls.push(ToolCall { id: text(block, "id").to_owned(), name: text(block, "name").to_owned(), arguments });
    }
    let stop = match text(ending, "stop_reason") {
        "end_turn" | "stop_sequence" => Stop::End,
        "tool_use" => Stop::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refusal,
        _ => Stop::Other,
    };
    if said.is_empty() && stop == Stop::Refusal {
        said = text(&ending["stop_details"], "explanation").to_owned();
    }
    let is_plain = blocks.iter().all(|block| matches!(text(block, "type"), "text" | "tool_use"));
    let opaque = (!is_plain).then(|| json!({OPAQUE: blocks}));
    Reply { text: said, calls, stop, usage: tokens.usage(), opaque }
}

/// What a message says about tokens. `input` counts neither what was read from a cache nor what was written to one.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    thinking: u64,
}

impl Tokens {
    /// The counts of a stream are totals, so a later one replaces an earlier one.
    fn read(&mut self, usage: &Value) {
        let fields: [(&mut u64, &[&str]); 5] = [
            (&mut self.input, &["input_tokens"]),
            (&mut self.output, &["output_tokens"]),
            (&mut self.cache_read, &["cache_read_input_tokens"]),
            (&mut self.cache_write, &["cache_creation_input_tokens"]),
            (&mut self.thinking, &["output_tokens_details", "thinking_tokens"]),
        ];
        for (field, path) in fields {
            *field = count(usage, path).unwrap_or(*field);
        }
    }

    fn usage(self) -> Usage {
        Usage {
            input: self.input.saturating_add(self.cache_read).saturating_add(self.cache_write),
            output: self.output,
            cached_input: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self.thinking,
        }
    }
}

/// An answer as its events build it up.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    blocks: Vec<Block>,
    calls: usize,
    tokens: Tokens,
    ending: Option<Value>,
}

#[derive(Debug, Default)]
struct Block {
    number: u64,
    value: Value,
    /// The JSON of a tool's input, as far as it was written.
    input: String,
    /// Which call of the answer it is.
    call: usize,
}

impl Streamed {
    pub(crate) fn event(&mut self, event: &Value, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        match text(event, "type") {
            "message_start" => self.tokens.read(&event["message"]["usage"]),
            "content_block_start" => self.begin(event, deltas)?,
            "content_block_delta" => self.delta(event, deltas),
            "message_delta" => {
                self.tokens.read(&event["usage"]);
                self.ending = Some(event["delta"].clone());
            }
            "error" => return Err(of_envelope(None, &event["error"])),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, event: &Value, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        let (number, value) = (count(event, &["index"]).unwrap_or_default(), event["content_block"].clone());
        if self.calls >= MOST_CALLS || number >= MOST_BLOCKS || self.blocks.len() as u64 >= MOST_BLOCKS {
            return Err(ModelError::too_large());
        }
        let call = self.calls;
        match text(&value, "type") {
            "tool_use" => {
                deltas.push(Delta::CallBegins { index: call, id: text(&value, "id").to_owned(), name: text(&value, "name").to_owned() });
                self.calls += 1;
            }
            "text" if !text(&value, "text").is_empty() => deltas.push(Delta::Text(text(&value, "text").to_owned())),
            _ => {}
        }
        self.blocks.push(Block { number, value, input: String::new(), call });
        Ok(())
    }

    fn delta(&mut self, event: &Value, deltas: &mut Vec<Delta>) {
        let number = count(event, &["index"]).unwrap_or_default();
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.number == number) else { return };
        let delta = &event["delta"];
        match text(delta, "type") {
            "text_delta" => {
                append(&mut block.value, "text", text(delta, "text"));
                deltas.push(Delta::Text(text(delta, "text").to_owned()));
            }
            "thinking_delta" => {
                append(&mut block.value, "thinking", text(delta, "thinking"));
                deltas.push(Delta::Reasoning(text(delta, "thinking").to_owned()));
            }
            "signature_delta" => append(&mut block.value, "signature", text(delta, "signature")),
            "input_json_delta" => {
                let json = text(delta, "partial_json");
                block.input.push_str(json);
                if text(&block.value, "type") == "tool_use" && !json.is_empty() {
                    deltas.push(Delta::CallArguments { index: block.call, text: json.to_owned() });
                }
            }
            "citations_delta" => cite(&mut block.value, &delta["citation"]),
            _ => {}
        }
    }

    pub(crate) fn end(mut self) -> Result<Reply, ModelError> {
        let ending = self.ending.ok_or_else(ModelError::cut_off)?;
        for block in self.blocks.iter_mut().filter(|block| !block.input.is_empty()) {
            if let Some(value) = block.value.as_object_mut() {
                value.insert("input".into(), Value::Object(argument_object(&block.input)));
            }
        }
        let values: Vec<Value> = self.blocks.iter().map(|block| block.value.clone()).collect();
        Ok(read(&values, &ending, self.tokens, Some(&self.blocks)))
    }
}

fn append(block: &mut Value, field: &str, more: &str) {
    let Some(block) = block.as_object_mut() else { return };
    match block.entry(field).or_insert_with(|| "".into()) {
        Value::String(text) => text.push_str(more),
        other => *other = more.into(),
    }
}

fn cite(block: &mut Value, citation: &Value) {
    let Some(block) = block.as_object_mut() else { return };
    match block.entry("citations").or_insert_with(|| json!([])) {
        Value::Array(citations) => citations.push(citation.clone()),
        other => *other = json!([citation]),
    }
}
