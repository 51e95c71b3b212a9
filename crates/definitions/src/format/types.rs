//! `x-ag-type-ref`: a schema that names a type of the platform in place of writing it out. Models know no such names.

use serde_json::{Map, Value, json};

const TYPE_REF: &str = "x-ag-type-ref";
/// What the author says about a value stays the author's; what a value must be is the type's.
const ANNOTATIONS: [&str; 5] = ["title", "description", "default", "examples", "deprecated"];
/// Keywords that hold values and not schemas.
const VALUES: [&str; 4] = ["default", "const", "enum", "examples"];

/// The schema with every type written out that is known here; other names stay.
pub fn expand_types(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => expand_fields(fields),
        Value::Array(items) => items.iter().map(expand_types).collect(),
        other => other.clone(),
    }
}

fn expand_fields(fields: &Map<String, Value>) -> Value {
    let within = |(key, value): (&String, &Value)| {
        let value = if VALUES.contains(&key.as_str()) { value.clone() } else { expand_types(value) };
        (key.clone(), value)
    };
    let mut expanded: Map<String, Value> = fields.iter().map(within).collect();
    if let Some(Value::Object(known)) = fields.get(TYPE_REF).and_then(Value::as_str).and_then(known) {
        expanded.shift_remove(TYPE_REF);
        for (key, value) in known {
            if !(ANNOTATIONS.contains(&key.as_str()) && expanded.contains_key(&key)) {
                expanded.insert(key, value);
            }
        }
    }
    Value::Object(expanded)
}

fn known(name: &str) -> Option<Value> {
    match name {
        "message" => Some(message()),
        "messages" => Some(json!({"type": "array", "description": "Chat messages, the oldest first.", "items": message()})),
        _ => None,
    }
}

/// A chat message, as model APIs write it.
fn message() -> Value {
    let part = json!({"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]});
    json!({
        "type": "object",
        "description": "A chat message.",
        "properties": {
            "role": {"type": "string", "enum": ["system", "developer", "user", "assistant", "tool"]},
            "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": part}, {"type": "null"}]},
            "name": {"type": "string"},
            "tool_calls": {"type": "array", "items": {"type": "object"}, "description": "The calls that the assistant makes."},
            "tool_call_id": {"type": "string", "description": "The call that a tool answers."},
        },
        "required": ["role"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_out_and_words_stay_the_authors() {
        let schema = json!({"type": "object", "properties": {
            "history": {"x-ag-type-ref": "messages", "type": "string", "description": "So far."},
            "last": {"anyOf": [{"x-ag-type-ref": "message"}, {"type": "null"}]},
            "model": {"x-ag-type-ref": "grouped-model", "type": "string"},
            "plain": {"type": "object", "default": {"x-ag-type-ref": "message"}},
        }});
        let expanded = expand_types(&schema);
        let of = |name: &str| &expanded["properties"][name];
        assert_eq!((&of("history")["type"], &of("history")["description"]), (&json!("array"), &json!("So far.")));
        assert_eq!(of("history")["items"]["required"], json!(["role"]));
        assert!(of("history").get("x-ag-type-ref").is_none());
        assert_eq!(of("last")["anyOf"][0]["properties"]["role"]["type"], "string");
        assert_eq!(of("model"), &schema["properties"]["model"], "what is not known stays");
        assert_eq!(of("plain"), &schema["properties"]["plain"], "a value is no schema");
    }
}
