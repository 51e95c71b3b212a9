//! Answers of Anthropic's Messages.

use serde_json::{Value, json};

use crate::script::Ending;
use crate::stream::{Played, pieces};

pub(crate) fn whole(played: &Played) -> Value {
    let mut message = message(played);
    message["content"] = blocks(played).into();
    message["stop_reason"] = stop(played).into();
    message["usage"]["output_tokens"] = played.output.into();
    message
}

fn message(played: &Played) -> Value {
    let usage = json!({
        "input_tokens": played.input - played.cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": played.cached,
        "output_tokens": 1,
    });
    json!({
        "id": format!("msg_{}", played.id), "type": "message", "role": "assistant", "model": played.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    })
}

fn blocks(played: &Played) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !played.reasoning.is_empty() {
        blocks.push(json!({"type": "thinking", "thinking": played.reasoning, "signature": format!("signed-{}", played.id)}));
    }
    if !played.text.is_empty() {
        blocks.push(json!({"type": "text", "text": played.text}));
    }
    for call in &played.calls {
        // In one piece an input is always a value; only a stream can bring text that is no JSON.
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        blocks.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}));
    }
    blocks
}

pub(crate) fn events(played: &Played) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": message(played)}), json!({"type": "ping"})];
    let mut calls = played.calls.iter();
    for (index, mut block) in blocks(played).into_iter().enumerate() {
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        let mut deltas: Vec<Value> = Vec::new();
        match kind.as_str() {
            "thinking" => {
                deltas.extend(pieces(&played.reasoning).into_iter().map(|text| json!({"type": "thinking_delta", "thinking": text})));
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
                block = json!({"type": "thinking", "thinking": "", "signature": ""});
            }
            "text" => {
                deltas.extend(pieces(&played.text).into_iter().map(|text| json!({"type": "text_delta", "text": text})));
                block["text"] = "".into();
            }
            _ => {
                let arguments = calls.next().map(|call| pieces(&call.arguments)).unwrap_or_default();
                deltas.extend(arguments.into_iter().map(|text| json!({"type": "input_json_delta", "partial_json": text})));
                block["input"] = json!({});
            }
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.extend(deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop(played), "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": played.output}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn stop(played: &Played) -> &'static str {
    match played.ending {
        Ending::Length => "max_tokens",
        Ending::Refusal => "refusal",
        Ending::Natural if !played.calls.is_empty() => "tool_use",
        Ending::Natural => "end_turn",
    }
}
