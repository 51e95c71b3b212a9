//! OpenAI's Chat Completions, and the many servers that speak it.

use serde_json::{Map, Value, json};

use crate::error::of_envelope;
use crate::fields::{count, json_text, list, text};
use crate::prompt::{Message, Prompt, ToolCall, argument_text, told_schema, with_extras};
use crate::reply::{MOST_CALLS, Reply, Stop, Usage};
use crate::{Delta, ErrorKind, ModelError, schema};

const OPAQUE: &str = "openai_chat";
/// Reasoning that some servers want back together with the calls it led to.
const REASONING: &str = "reasoning_content";
/// What some servers attach to a call and want back with it, such as a signature.
const EXTRA: &str = "extra_content";

pub(crate) fn body(prompt: &Prompt<'_>) -> Map<String, Value> {
    let mut body = with_extras(prompt);
    let mut system = prompt.system.to_owned();
    if let Some(wanted) = prompt.output_schema {
        match schema::openai(wanted) {
            Some(format) if !body.contains_key("response_format") => {
                body.insert("response_format".into(), json!({"type": "json_schema", "json_schema": format}));
            }
            _ => system = told_schema(&system, wanted),
        }
    }
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    messages.extend(prompt.messages.iter().map(message));
    body.insert("model".into(), prompt.model.into());
    body.insert("messages".into(), messages.into());
    if !prompt.tools.is_empty() {
        let function = |tool: &crate::Tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
        let tools = prompt.tools.iter().map(|tool| json!({"type": "function", "function": function(tool)})).collect();
        body.insert("tools".into(), Value::Array(tools));
    }
    if let Some(most) = prompt.max_output_tokens {
        // Older servers know only the older name; whoever names it in the extras says which.
        let name = if body.contains_key("max_tokens") { "max_tokens" } else { "max_completion_tokens" };
        body.insert(name.into(), most.into());
    }
    body.insert("stream".into(), prompt.stream.into());
    if prompt.stream {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    } else {
        body.shift_remove("stream_options");
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({"role": "user", "content": text}),
        Message::Tool { call_id, content, .. } => json!({"role": "tool", "tool_call_id": call_id, "content": content}),
        Message::Assistant { text, calls, opaque } => {
            let kept = opaque.as_ref().and_then(|opaque| opaque.get(OPAQUE));
            let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.as_str().into() };
            let mut written = json!({"role": "assistant", "content": content});
            if let Some(reasoning) = kept.and_then(|kept| kept.get(REASONING)) {
                written[REASONING] = reasoning.clone();
            }
            if !calls.is_empty() {
                written["tool_calls"] = calls.iter().map(|call| written_call(call, kept)).collect();
            }
            written
        }
    }
}

fn written_call(call: &ToolCall, kept: Option<&Value>) -> Value {
    let function = json!({"name": call.name, "arguments": argument_text(&call.arguments)});
    let mut written = json!({"id": call.id, "type": "function", "function": function});
    if let Some(extra) = kept.and_then(|kept| kept.get(EXTRA)).and_then(|extra| extra.get(&call.id)) {
        written[EXTRA] = extra.clone();
    }
    written
}

pub(crate) fn reply(body: &Value) -> Result<Reply, ModelError> {
    let Some(choice) = list(body, "choices").first() else {
        return Err(ModelError::new(ErrorKind::Malformed, "the model's answer has no `choices`"));
    };
    let mut streamed = Streamed { is_done: true, ..Streamed::default() };
    streamed.usage(body);
    // A whole message has the fields of a delta that brings everything at once.
    streamed.delta(&choice["message"], &mut Vec::new())?;
    streamed.finish = choice.get("finish_reason").and_then(Value::as_str).map(str::to_owned);
    streamed.end()
}

/// An answer as its chunks build it up.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    text: String,
    refusal: String,
    reasoning: String,
    calls: Vec<Begun>,
    finish: Option<String>,
    usage: Usage,
    is_done: bool,
}

#[derive(Debug)]
struct Begun {
    /// The number that the server gives the call, which need not be unique.
    number: Option<u64>,
    call: ToolCall,
    extra: Option<Value>,
}

impl Streamed {
    pub(crate) fn done(&mut self) {
        self.is_done = true;
    }

    pub(crate) fn event(&mut self, chunk: &Value, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(of_envelope(None, error));
        }
        self.usage(chunk);
        let Some(choice) = list(chunk, "choices").first() else { return Ok(()) };
        self.delta(&choice["delta"], deltas)?;
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn usage(&mut self, body: &Value) {
        let Some(usage) = body.get("usage").filter(|usage| usage.is_object()) else { return };
        let read = |path: &[&str]| count(usage, path).unwrap_or_default();
        self.usage = Usage {
            input: read(&["prompt_tokens"]),
            output: read(&["completion_tokens"]),
            cached_input: count(usage, &["prompt_tokens_details", "cached_tokens"])
                .or_else(|| count(usage, &["prompt_cache_hit_tokens"]))
                .unwrap_or_default(),
            cache_write: read(&["prompt_tokens_details", "cache_write_tokens"]),
            reasoning: read(&["completion_tokens_details", "reasoning_tokens"]),
        };
    }

    fn delta(&mut self, delta: &Value, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        let reasoning = [REASONING, "reasoning"].into_iter().map(|name| text(delta, name)).find(|text| !text.is_empty());
        if let Some(reasoning) = reasoning {
            self.reasoning.push_str(reasoning);
            deltas.push(Delta::Reasoning(reasoning.to_owned()));
        }
        for (kept, piece) in [(&mut self.text, content(&delta["content"])), (&mut self.refusal, text(delta, "refusal").to_owned())] {
            if !piece.is_empty() {
                kept.push_str(&piece);
                deltas.push(Delta::Text(piece));
            }
        }
        list(delta, "tool_calls").iter().try_for_each(|piece| self.call(piece, deltas))
    }

    fn call(&mut self, piece: &Value, deltas: &mut Vec<Delta>) -> Result<(), ModelError> {
        let (number, id, function) = (count(piece, &["index"]), text(piece, "id"), &piece["function"]);
        let known = self.calls.iter().rposition(|begun| begun.number == number).filter(|at| {
            // Some servers give every call the same number, or none; then a new id says that another call begins.
            let begun = &self.calls[*at].call;
            id.is_empty() || begun.id.is_empty() || begun.id == id
        });
        // Without numbers and ids, each piece with a name is a call of its own.
        let known = known.filter(|_| number.is_some() || !id.is_empty() || text(function, "name").is_empty());
        let index = match known {
            Some(index) => index,
            None if self.calls.len() >= MOST_CALLS => return Err(ModelError::too_large()),
            None => {
                let call = ToolCall { id: id.to_owned(), name: text(function, "name").to_owned(), arguments: String::new() };
                deltas.push(Delta::CallBegins { index: self.calls.len(), id: call.id.clone(), name: call.name.clone() });
                self.calls.push(Begun { number, call, extra: None });
                self.calls.len() - 1
            }
        };
        let begun = &mut self.calls[index];
        for (kept, late) in [(&mut begun.call.id, id), (&mut begun.call.name, text(function, "name"))] {
            if kept.is_empty() {
                *kept = late.to_owned();
            }
        }
        if let Some(extra) = piece.get(EXTRA).filter(|extra| !extra.is_null()) {
            begun.extra = Some(extra.clone());
        }
        let arguments = json_text(function.get("arguments"));
        if !arguments.is_empty() {
            begun.call.arguments.push_str(&arguments);
            deltas.push(Delta::CallArguments { index, text: arguments });
        }
        Ok(())
    }

    pub(crate) fn end(self) -> Result<Reply, ModelError> {
        if self.finish.is_none() && !self.is_done {
            return Err(ModelError::cut_off());
        }
        let stop = match self.finish.as_deref() {
            _ if !self.refusal.is_empty() => Stop::Refusal,
            Some("stop") | None => Stop::End,
            Some("tool_calls" | "function_call") => Stop::ToolCalls,
            Some("length") => Stop::Length,
            Some("content_filter") => Stop::Refusal,
            Some(_) => Stop::Other,
        };
        let mut kept = Map::new();
        if !self.calls.is_empty() && !self.reasoning.is_empty() {
            kept.insert(REASONING.into(), self.reasoning.into());
        }
        let extras = self.calls.iter().filter_map(|begun| Some((begun.call.id.clone(), begun.extra.clone()?)));
        let extras: Map<String, Value> = extras.collect();
        if !extras.is_empty() {
            kept.insert(EXTRA.into(), extras.into());
        }
        let opaque = (!kept.is_empty()).then(|| json!({OPAQUE: kept}));
        let text = if self.text.is_empty() { self.refusal } else { self.text };
        Ok(Reply { text, calls: self.calls.into_iter().map(|begun| begun.call).collect(), stop, usage: self.usage, opaque })
    }
}

/// Content is text, or a list of parts of which some are text.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text(part, "text")).collect(),
        _ => String::new(),
    }
}
