//! The input of a response as chat messages. Functions of values.

use serde_json::{Map, Value, json};

use super::error::ModelApiError;

/// What an input comes to. Items that one answer of the agent had become one message, as the agent said them.
pub(super) fn messages(input: &Value, instructions: Option<&str>) -> Result<Vec<Value>, ModelApiError> {
    let mut messages: Vec<Value> = instructions.into_iter().map(|text| json!({"role": "system", "content": text})).collect();
    match input {
        Value::String(text) => messages.push(json!({"role": "user", "content": text})),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                add(item, &mut messages).map_err(|what| wrong(&format!("`input.{index}`: {what}")))?;
            }
        }
        _ => return Err(wrong("`input` must be text, or a list of items")),
    }
    Ok(messages)
}

fn wrong(message: &str) -> ModelApiError {
    ModelApiError::bad_request("invalid_input", message)
}

fn add(item: &Value, messages: &mut Vec<Value>) -> Result<(), String> {
    let item = item.as_object().ok_or("an item is an object")?;
    let kind = item.get("type").map_or(Ok("message"), |kind| kind.as_str().ok_or("`type` must be text"))?;
    match kind {
        "message" => {
            let role = text(item, "role")?;
            let content = content(item.get("content")).ok_or("`content` must be text, or parts of text")?;
            if role == "assistant" { said(&content, messages) } else { messages.push(json!({"role": role, "content": content})) }
        }
        "function_call" => {
            let (id, name) = (text(item, "call_id")?, text(item, "name")?);
            let arguments = item.get("arguments").and_then(Value::as_str).unwrap_or("{}");
            let call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
            match agents_last(messages).get_mut("tool_calls").and_then(Value::as_array_mut) {
                Some(calls) => calls.push(call),
                None => agents_last(messages)["tool_calls"] = json!([call]),
            }
        }
        "function_call_output" => {
            let id = text(item, "call_id")?;
            let output = content(item.get("output")).ok_or("`output` must be text, or parts of text")?;
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
        }
        // The agent's model gets its reasoning back from the run.
        "reasoning" => {}
        "item_reference" => return Err("items are not kept one by one; send them, or name `previous_response_id`".to_owned()),
        other => return Err(format!("`{other}` is not taken; there are message, function_call, function_call_output and reasoning")),
    }
    Ok(())
}

/// The agent's message that the next item of its answer belongs to.
fn agents_last(messages: &mut Vec<Value>) -> &mut Value {
    if messages.last().is_none_or(|last| last["role"] != "assistant") {
        messages.push(json!({"role": "assistant", "content": ""}));
    }
    let last = messages.len() - 1;
    &mut messages[last]
}

fn said(text: &str, messages: &mut Vec<Value>) {
    let message = agents_last(messages);
    let before = message["content"].as_str().unwrap_or_default();
    let gap = if before.is_empty() || text.starts_with('\n') { "" } else { "\n\n" };
    message["content"] = format!("{before}{gap}{text}").into();
}

fn text<'a>(item: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).ok_or_else(|| format!("`{name}` must be text"))
}

fn content(value: Option<&Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(parts)) => {
            parts.iter().map(|part| part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str)).collect()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_become_messages() {
        assert_eq!(
            messages(&json!("hi"), Some("be brief")).unwrap_or_default(),
            [json!({"role": "system", "content": "be brief"}), json!({"role": "user", "content": "hi"})]
        );
        let answer = |text: &str| json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]});
        let call = |id: &str| json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "weather", "arguments": "{}", "status": "completed"});
        let input = json!([
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            answer("Let me look."),
            answer("\n\nStill looking."),
            call("a"),
            call("b"),
            {"type": "function_call_output", "call_id": "a", "output": "sunny"},
            {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "rain"}]},
            answer("Done."),
        ]);
        let made = messages(&input, None).unwrap_or_default();
        let roles: Vec<&str> = made.iter().filter_map(|message| message["role"].as_str()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant"]);
        assert_eq!(
            (made[1]["content"].as_str(), made[1]["tool_calls"].as_array().map(Vec::len)),
            (Some("Let me look.\n\nStill looking."), Some(2))
        );
        assert_eq!((&made[3]["tool_call_id"], &made[3]["content"]), (&json!("b"), &json!("rain")));
    }

    #[test]
    fn what_is_not_taken_is_refused_by_its_place() {
        for (input, part) in [
            (json!(7), "`input` must be text"),
            (json!([7]), "`input.0`: an item is an object"),
            (json!([{"role": "user", "content": "x"}, {"type": "web_search_call"}]), "`input.1`: `web_search_call` is not taken"),
            (json!([{"type": "item_reference", "id": "msg_1"}]), "previous_response_id"),
            (json!([{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]), "`content` must be text"),
            (json!([{"type": "function_call_output", "output": "x"}]), "`call_id` must be text"),
            (json!([{"content": "x"}]), "`role` must be text"),
        ] {
            let error = format!("{:?}", messages(&input, None).unwrap_err());
            assert!(error.contains(part), "{input}: {error}");
        }
    }
}
