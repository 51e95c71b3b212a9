//! What a run begins with, from its inputs, and what its outputs are, from what was said. Functions of values.

use kernel::RunId;
use kernel::schema::{Schema, Violation};
use models::{Message, Stop, ToolCall};
use serde_json::{Map, Value, json};

use crate::conversation::{Answer, is_handed_over_by};

/// How much of a result is repeated in the outputs.
const SHOWN: usize = 2 << 10;

/// What the inputs come to: messages, and what they add to the instructions.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Opening {
    pub(crate) system: Vec<String>,
    pub(crate) messages: Vec<Message>,
}

/// `messages` as chat clients write them, else `message`, else the inputs as they are. Calls that the run made which goes on may be answered.
pub(crate) fn opening(inputs: &Value, continues: Option<RunId>) -> Result<Opening, String> {
    if let Some(Value::Array(messages)) = inputs.get("messages") {
        return chat(messages, continues);
    }
    let text = match inputs.get("message") {
        Some(Value::String(text)) => text.clone(),
        _ if inputs.as_object().is_none_or(Map::is_empty) => "Begin.".to_owned(),
        _ => inputs.to_string(),
    };
    Ok(Opening { system: Vec::new(), messages: vec![Message::User { text }] })
}

fn chat(messages: &[Value], continues: Option<RunId>) -> Result<Opening, String> {
    let mut opening = Opening::default();
    for (index, message) in messages.iter().enumerate() {
        let wrong = |what: &str| format!("`inputs.messages.{index}`: {what}");
        let role = message.get("role").and_then(Value::as_str).ok_or_else(|| wrong("`role` is missing"))?;
        let text = content(message.get("content")).ok_or_else(|| wrong("`content` must be text, or parts of type text"))?;
        match role {
            "system" | "developer" => opening.system.push(text),
            "user" => opening.messages.push(Message::User { text }),
            "assistant" => opening.messages.push(Message::Assistant { text, calls: calls(message), opaque: None }),
            "tool" => {
                let id = message.get("tool_call_id").and_then(Value::as_str).ok_or_else(|| wrong("`tool_call_id` is missing"))?;
                let called = opening.messages.iter().rev().find_map(|before| match before {
                    Message::Assistant { calls, .. } => calls.iter().find(|call| call.id == id).map(|call| call.name.clone()),
                    _ => None,
                });
                // The tool of a call that an earlier run made is known from its journal.
                let called = called.or_else(|| continues.filter(|run| is_handed_over_by(id, *run)).map(|_| String::new()));
                let name = called.ok_or_else(|| wrong("no message before it makes this call"))?;
                opening.messages.push(Message::Tool { call_id: id.to_owned(), name, content: text, is_error: false });
            }
            other => return Err(wrong(&format!("`{other}` is no role; there are system, user, assistant and tool"))),
        }
    }
    if opening.messages.is_empty() {
        return Err("`inputs.messages` holds nothing that was said to the agent".to_owned());
    }
    Ok(opening)
}

fn content(content: Option<&Value>) -> Option<String> {
    match content {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(parts)) => parts.iter().map(|part| part.get("text").and_then(Value::as_str).map(str::to_owned)).collect(),
        Some(_) => None,
    }
}

fn calls(message: &Value) -> Vec<ToolCall> {
    let made = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let read = |call: &Value| {
        let (id, function) = (call.get("id")?.as_str()?, call.get("function")?);
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => "{}".to_owned(),
        };
        Some(ToolCall { id: id.to_owned(), name: function.get("name")?.as_str()?.to_owned(), arguments })
    };
    made.filter_map(read).collect()
}

/// The outputs of a run whose author asks for no shape: the last words, and what was said and called on the way.
pub(crate) fn outputs(answer: &Answer, messages: &[Message], stop_reason: &str) -> Value {
    json!({"text": answer.text, "messages": messages.iter().map(shown).collect::<Vec<_>>(), "stop_reason": stop_reason})
}

/// Why the model stopped, as outputs say it.
pub(crate) fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Length => "length",
        Stop::Refusal => "refusal",
        Stop::End | Stop::ToolCalls | Stop::Other => "end",
    }
}

/// A message as chat clients write it.
fn shown(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({"role": "user", "content": text}),
        Message::Assistant { text, calls, .. } => {
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                message["tool_calls"] = calls.iter().map(shown_call).collect();
            }
            message
        }
        Message::Tool { call_id, name, content, is_error } => {
            let end = content.floor_char_boundary(SHOWN.min(content.len()));
            json!({"role": "tool", "tool_call_id": call_id, "name": name, "content": content[..end], "is_error": is_error})
        }
    }
}

/// A call as chat clients write it.
pub(crate) fn shown_call(call: &ToolCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

/// The object that an answer holds, if it fits the schema; else why not.
pub(crate) fn structured(text: &str, schema: &Schema) -> Result<Value, String> {
    let text = unfenced(text);
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
    schema.check(&value).map_err(|violations| Violation::join(&violations))?;
    Ok(value)
}

/// Models put JSON between fences though they are asked not to.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")) else { return text };
    inside.strip_prefix("json").unwrap_or(inside).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::handed_over_id;

    #[test]
    fn inputs_become_messages() {
        let user = |text: &str| Message::User { text: text.to_owned() };
        for (inputs, messages) in [
            (json!({}), vec![user("Begin.")]),
            (Value::Null, vec![user("Begin.")]),
            (json!({"title": "t"}), vec![user("{\"title\":\"t\"}")]),
            (json!({"message": "hello", "title": "t"}), vec![user("hello")]),
            (json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}), vec![user("hi")]),
        ] {
            assert_eq!(opening(&inputs, None).unwrap().messages, messages, "{inputs}");
        }
        let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let whole = json!({"messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ]});
        let whole = opening(&whole, None).unwrap();
        assert_eq!((whole.system, whole.messages.len()), (vec!["be brief".to_owned()], 3));
        assert!(matches!(&whole.messages[2], Message::Tool { name, .. } if name == "f"));
        for (messages, part) in [
            (json!([]), "holds nothing"),
            (json!([{"content": "x"}]), "`role` is missing"),
            (json!([{"role": "king", "content": "x"}]), "`king` is no role"),
            (json!([{"role": "user", "content": 7}]), "`content`"),
            (json!([{"role": "tool", "content": "x", "tool_call_id": "c9"}]), "no message before"),
        ] {
            let error = opening(&json!({"messages": messages.clone()}), None).unwrap_err();
            assert!(error.contains(part), "{messages}: {error}");
        }
        let run = RunId::new();
        let answered = json!({"messages": [{"role": "tool", "content": "x", "tool_call_id": handed_over_id(run, 0)}]});
        assert_eq!(opening(&answered, Some(run)).unwrap().messages.len(), 1);
        assert!(opening(&answered, Some(RunId::new())).is_err());
    }

    #[test]
    fn an_answer_is_read_by_its_schema() {
        let schema = Schema::compile(&json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})).unwrap();
        assert_eq!(structured("```json\n{\"n\": 1}\n```", &schema).unwrap(), json!({"n": 1}));
        assert!(structured("I think 1", &schema).unwrap_err().contains("not JSON"));
        assert!(structured("{\"n\": \"1\"}", &schema).unwrap_err().contains("/n"));
    }
}
