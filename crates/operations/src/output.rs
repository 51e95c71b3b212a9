//! The short form of output and payload schemas.

use serde_json::{Map, Value, json};

/// Expands `{number: integer, html_url: string}` to a JSON Schema; `{items: {...}}` stands for a list of such objects.
pub fn output_schema(short: &Map<String, Value>) -> Value {
    if let (1, Some(Value::Object(item))) = (short.len(), short.get("items"))
        && !item.contains_key("type")
    {
        return json!({"type": "array", "items": output_schema(item)});
    }
    let properties: Map<String, Value> = short
        .iter()
        .map(|(name, value)| {
            let schema = match value {
                Value::String(kind) => json!({"type": kind}),
                Value::Object(nested) if nested.get("type").is_none_or(Value::is_object) && !is_schema(nested) => output_schema(nested),
                other => other.clone(),
            };
            (name.clone(), schema)
        })
        .collect();
    json!({"type": "object", "properties": properties})
}

fn is_schema(value: &Map<String, Value>) -> bool {
    ["type", "anyOf", "oneOf", "enum", "const", "properties"]
        .iter()
        .any(|key| value.get(*key).is_some_and(|found| !matches!(found, Value::Object(_)) || *key == "properties"))
}
