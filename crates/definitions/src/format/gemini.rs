//! Schemas in Gemini's subset of OpenAPI: one type each, only the keywords of that type, nothing beside `anyOf`.

use serde_json::{Value, json};

use super::inline::{TYPES, implied_type, object, types_of};
use super::schema::{Schema, UNIONS, add_new, flat, list, merge, merged, note, required_of};

/// A schema in Gemini's subset of OpenAPI.
pub(super) fn gemini(schema: &Schema) -> Schema {
    let schema = merged(schema);
    if let Some(union) = UNIONS.into_iter().find(|union| schema.contains_key(*union)) {
        return if schema.contains_key("properties") { gemini(&flat(&schema)) } else { gemini_union(schema, union) };
    }
    let types = gemini_types(&schema);
    let nullable =
        types_of(&schema).iter().any(|name| name == "null") || values_of(&schema).is_some_and(|values| values.contains(&Value::Null));
    match types[..] {
        [] if nullable => alone(vec![object(json!({"type": "string"}))], true, &schema),
        [] => alone(any_value(true), false, &schema),
        [one] => gemini_typed(&schema, one, nullable),
        _ => {
            let base = without_description(&schema);
            alone(types.iter().map(|name| gemini_typed(&base, name, nullable)).collect(), nullable, &schema)
        }
    }
}

fn gemini_union(mut schema: Schema, union: &str) -> Schema {
    let Some(Value::Array(branches)) = schema.shift_remove(union) else { return schema };
    let base = without_description(&schema);
    let is_null = |branch: &&Schema| types_of(branch) == ["null"] || values_of(branch).is_some_and(|values| values == [Value::Null]);
    let (nulls, branches): (Vec<_>, Vec<_>) = branches.iter().filter_map(Value::as_object).partition(is_null);
    alone(branches.into_iter().map(|branch| gemini(&merge(branch.clone(), base.clone()))).collect(), !nulls.is_empty(), &schema)
}

fn without_description(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    schema.retain(|keyword, _| !matches!(keyword.as_str(), "title" | "description" | "default" | "example" | "examples"));
    schema
}

/// A union. Nothing may stand beside Gemini's `anyOf`, so the first alternative carries the description, and each is nullable itself.
fn alone(branches: Vec<Schema>, nullable: bool, described: &Schema) -> Schema {
    let mut alternatives: Vec<Value> = Vec::new();
    for mut branch in branches {
        match branch.shift_remove("anyOf") {
            Some(Value::Array(inner)) => add_new(&mut alternatives, inner),
            _ => add_new(&mut alternatives, vec![Value::Object(branch)]),
        }
    }
    for alternative in alternatives.iter_mut().filter(|_| nullable) {
        alternative["nullable"] = true.into();
    }
    if let (Some(Value::Object(first)), Some(Value::String(text))) = (alternatives.first_mut(), described.get("description")) {
        let own = first.insert("description".to_owned(), text.as_str().into());
        if let Some(own) = own.as_ref().and_then(Value::as_str).filter(|own| own != text) {
            note(first, own);
        }
    }
    match &alternatives[..] {
        [Value::Object(only)] => only.clone(),
        [] => object(json!({"type": "string", "nullable": true})),
        _ => object(json!({"anyOf": alternatives})),
    }
}

/// Gemini has no schema for any value, so its types are spelled out.
fn any_value(lists: bool) -> Vec<Schema> {
    let mut types: Vec<Schema> = ["string", "number", "boolean", "object"].map(|name| object(json!({"type": name}))).into();
    if lists {
        types.push(object(json!({"type": "array", "items": {"anyOf": any_value(false)}})));
    }
    types
}

/// The values that the schema lists.
fn values_of(schema: &Schema) -> Option<Vec<Value>> {
    schema.get("enum").and_then(Value::as_array).cloned().or_else(|| schema.get("const").map(|only| vec![only.clone()]))
}

fn gemini_types(schema: &Schema) -> Vec<&'static str> {
    let values = values_of(schema);
    let named = types_of(schema);
    let fits = |name: &str| values.as_ref().is_none_or(|values| values.iter().any(|value| is_of(name, value)));
    let listed = TYPES.into_iter().filter(|name| *name != "null" && named.iter().any(|named| named == name));
    let fitting: Vec<&str> = listed.clone().filter(|name| fits(name)).collect();
    match (fitting.is_empty(), implied_type(schema)) {
        (false, _) => fitting,
        (true, Some(implied)) => vec![implied],
        (true, None) if values.is_some() => {
            ["string", "number", "boolean", "object", "array"].into_iter().filter(|name| fits(name)).collect()
        }
        (true, None) => listed.collect(),
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => value.is_null(),
    }
}

fn gemini_typed(schema: &Schema, name: &'static str, nullable: bool) -> Schema {
    let mut typed = object(json!({"type": name}));
    let described = ["title", "description", "default", "example"];
    let bounds: &[&str] = match name {
        "string" => &["minLength", "maxLength", "pattern"],
        "integer" | "number" => &["minimum", "maximum"],
        "array" => &["minItems", "maxItems"],
        "object" => &["minProperties", "maxProperties"],
        _ => &[],
    };
    for keyword in described.iter().chain(bounds) {
        if let Some(value) = schema.get(*keyword).filter(|value| !value.is_null()) {
            typed.insert((*keyword).to_owned(), value.clone());
        }
    }
    if nullable {
        typed.insert("nullable".to_owned(), true.into());
    }
    if let Some(format) = schema.get("format").filter(|format| gemini_format(name, format)) {
        typed.insert("format".to_owned(), format.clone());
    }
    gemini_values(&mut typed, schema, name);
    match name {
        "integer" | "number" => gemini_exclusive(&mut typed, schema, name),
        "array" => gemini_items(&mut typed, schema),
        "object" => gemini_properties(&mut typed, schema),
        _ => {}
    }
    typed
}

fn gemini_format(name: &str, format: &Value) -> bool {
    let accepted: &[&str] = match name {
        "string" => &["date-time", "enum"],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    accepted.iter().any(|accepted| format == accepted)
}

/// Only strings may be listed in Gemini; other values keep their type, so that the arguments stay valid, and are described.
fn gemini_values(typed: &mut Schema, schema: &Schema, name: &str) {
    let Some(mut values) = values_of(schema) else { return };
    values.retain(|value| is_of(name, value) && value != "");
    if values.is_empty() {
        return;
    }
    if name == "string" {
        typed.insert("enum".to_owned(), Value::Array(values));
    } else {
        note(typed, &format!("One of: {}.", list(values.iter())));
    }
}

fn gemini_exclusive(typed: &mut Schema, schema: &Schema, name: &str) {
    for (exclusive, bound, step) in [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)] {
        if let Some(limit) = schema.get(exclusive).filter(|limit| limit.is_number()) {
            let whole = limit.as_i64().filter(|_| name == "integer").and_then(|limit| limit.checked_add(step));
            typed.insert(bound.to_owned(), whole.map_or_else(|| limit.clone(), Value::from));
        }
    }
}

fn gemini_items(typed: &mut Schema, schema: &Schema) {
    let items = match (schema.get("items").and_then(Value::as_object), schema.get("prefixItems").and_then(Value::as_array)) {
        (Some(items), _) if !items.is_empty() => gemini(items),
        (_, Some(tuple)) => alone(tuple.iter().filter_map(Value::as_object).map(gemini).collect(), false, &Schema::new()),
        _ => object(json!({"anyOf": any_value(false)})),
    };
    typed.insert("items".to_owned(), Value::Object(items));
}

/// A free-form object has no `properties`: an empty map is refused, and a string in its place would break the arguments.
fn gemini_properties(typed: &mut Schema, schema: &Schema) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty()) else {
        return;
    };
    let lowered: Schema = properties.iter().map(|(name, schema)| (name.clone(), gemini_value(schema))).collect();
    let required: Vec<Value> =
        required_of(schema).into_iter().filter(|name| name.as_str().is_some_and(|name| lowered.contains_key(name))).collect();
    typed.insert("properties".to_owned(), Value::Object(lowered));
    if !required.is_empty() {
        typed.insert("required".to_owned(), Value::Array(required));
    }
}

fn gemini_value(schema: &Value) -> Value {
    Value::Object(schema.as_object().map_or_else(Schema::new, gemini))
}
