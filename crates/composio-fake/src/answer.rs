//! What a tool gives back: the fields of its output schema, filled from the arguments where the names are the same.

use serde_json::{Map, Value, json};

use crate::world::{World, iso};

pub(crate) fn make(world: &mut World, output: &Map<String, Value>, arguments: &Map<String, Value>) -> Value {
    Value::Object(fields(world, output, arguments))
}

fn fields(world: &mut World, properties: &Map<String, Value>, arguments: &Map<String, Value>) -> Map<String, Value> {
    let mut fill = |(name, schema): (&String, &Value)| {
        let given = arguments.get(name).filter(|value| fits(schema, value)).cloned();
        let value = given.unwrap_or_else(|| invent(world, name, schema, arguments));
        (name.clone(), value)
    };
    properties.iter().map(&mut fill).collect()
}

fn fits(schema: &Value, value: &Value) -> bool {
    match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        _ => value.is_object(),
    }
}

fn invent(world: &mut World, name: &str, schema: &Value, arguments: &Map<String, Value>) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(world.next()),
        Some("boolean") => json!(true),
        Some("array") => (0..2).map(|_| invent(world, name, &schema["items"], arguments)).collect(),
        Some("string") if schema["format"] == "uri" => json!(format!("https://things.example/{}", world.next())),
        Some("string") if schema["format"] == "date-time" => json!(iso(world.now())),
        Some("string") => json!(format!("{name}-{}", world.next())),
        _ => {
            let nothing = Map::new();
            Value::Object(fields(world, schema["properties"].as_object().unwrap_or(&nothing), arguments))
        }
    }
}
