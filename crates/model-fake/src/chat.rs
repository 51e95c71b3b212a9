//! Answers of OpenAI's Chat Completions.

use serde_json::{Value, json};

use crate::script::Ending;
use crate::stream::{Played, pieces};

const CREATED: u64 = 1_767_225_600;

pub(crate) fn whole(played: &Played) -> Value {
    let mut message = json!({"role": "assistant", "content": played.text, "refusal": null});
    if played.ending == Ending::Refusal {
        message["refusal"] = message["content"].take();
    }
    if !played.reasoning.is_empty() {
        message["reasoning_content"] = played.reasoning.as_str().into();
    }
    if !played.calls.is_empty() {
        let call =
            |call: &crate::Call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
        message["tool_calls"] = played.calls.iter().map(call).collect();
        message["content"] = if played.text.is_empty() { Value::Null } else { played.text.as_str().into() };
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish(played)});
    json!({"id": id(played), "object": "chat.completion", "created": CREATED, "model": played.model, "choices": [choice], "usage": usage(played)})
}

pub(crate) fn events(played: &Played) -> Vec<Value> {
    let chunk = |choices: Value, usage: Value| json!({"id": id(played), "object": "chat.completion.chunk", "created": CREATED, "model": played.model, "choices": choices, "usage": usage});
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]), Value::Null);
    let said = if played.ending == Ending::Refusal { "refusal" } else { "content" };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    events.extend(pieces(&played.reasoning).into_iter().map(|text| delta(json!({"reasoning_content": text}))));
    events.extend(pieces(&played.text).into_iter().map(|text| delta(json!({said: text}))));
    for (index, call) in played.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        events.push(delta(json!({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})));
        let piece = |text| delta(json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}));
        events.extend(pieces(&call.arguments).into_iter().map(piece));
    }
    events.push(chunk(json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish(played)}]), Value::Null));
    events.push(chunk(json!([]), usage(played)));
    events
}

fn id(played: &Played) -> String {
    format!("chatcmpl-{}", played.id)
}

fn finish(played: &Played) -> &'static str {
    match played.ending {
        Ending::Length => "length",
        Ending::Natural if !played.calls.is_empty() => "tool_calls",
        Ending::Natural | Ending::Refusal => "stop",
    }
}

fn usage(played: &Played) -> Value {
    json!({
        "prompt_tokens": played.input, "completion_tokens": played.output, "total_tokens": played.input + played.output,
        "prompt_tokens_details": {"cached_tokens": played.cached}, "completion_tokens_details": {"reasoning_tokens": played.reasoning.len() / 4},
    })
}
