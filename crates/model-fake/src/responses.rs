//! Answers of OpenAI's Responses.

use serde_json::{Value, json};

use crate::script::Ending;
use crate::stream::{Played, pieces};

pub(crate) fn whole(played: &Played) -> Value {
    let (status, details) = match played.ending {
        Ending::Length => ("incomplete", json!({"reason": "max_output_tokens"})),
        _ => ("completed", Value::Null),
    };
    let usage = json!({
        "input_tokens": played.input, "output_tokens": played.output, "total_tokens": played.input + played.output,
        "input_tokens_details": {"cached_tokens": played.cached}, "output_tokens_details": {"reasoning_tokens": played.reasoning.len() / 4},
    });
    json!({
        "id": format!("resp_{}", played.id), "object": "response", "created_at": 1_767_225_600, "model": played.model, "status": status,
        "error": null, "incomplete_details": details, "output": items(played), "usage": usage,
    })
}

fn items(played: &Played) -> Vec<Value> {
    let id = played.id;
    let mut items = Vec::new();
    if !played.reasoning.is_empty() {
        let summary = json!([{"type": "summary_text", "text": played.reasoning}]);
        items.push(json!({"id": format!("rs_{id}"), "type": "reasoning", "summary": summary, "encrypted_content": format!("sealed-{id}")}));
    }
    if !played.text.is_empty() || played.calls.is_empty() {
        let part = match played.ending {
            Ending::Refusal => json!({"type": "refusal", "refusal": played.text}),
            _ => json!({"type": "output_text", "text": played.text, "annotations": []}),
        };
        let message = json!({"id": format!("msg_{id}"), "type": "message", "role": "assistant", "status": "completed", "content": [part]});
        items.push(message);
    }
    for call in &played.calls {
        items.push(json!({
            "id": format!("fc_{}", call.id), "type": "function_call", "status": "completed", "call_id": call.id, "name": call.name,
            "arguments": call.arguments,
        }));
    }
    items
}

pub(crate) fn events(played: &Played) -> Vec<Value> {
    let response = whole(played);
    let mut begun = response.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    for (index, item) in items(played).into_iter().enumerate() {
        let place = json!({"output_index": index, "item_id": item["id"]});
        let (kind, text) = match item["type"].as_str() {
            Some("reasoning") => ("response.reasoning_summary_text.delta", played.reasoning.as_str()),
            Some("function_call") => ("response.function_call_arguments.delta", item["arguments"].as_str().unwrap_or_default()),
            _ if played.ending == Ending::Refusal => ("response.refusal.delta", played.text.as_str()),
            _ => ("response.output_text.delta", played.text.as_str()),
        };
        let mut added = item.clone();
        added["status"] = "in_progress".into();
        if added["type"] == "function_call" {
            added["arguments"] = "".into();
        }
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": added}));
        for piece in pieces(text) {
            let mut event = json!({"type": kind, "delta": piece});
            for (name, value) in place.as_object().into_iter().flatten() {
                event[name] = value.clone();
            }
            events.push(event);
        }
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let end = if played.ending == Ending::Length { "response.incomplete" } else { "response.completed" };
    events.push(json!({"type": end, "response": response}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}
