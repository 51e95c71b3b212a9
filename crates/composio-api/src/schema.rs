//! JSON Schemas and results as Composio's SDKs can read them. The TypeScript SDK reads every listed tool with a closed idea of JSON Schema
//! and gives up on the whole list where one does not fit.

use serde_json::{Map, Value, json};

/// Where what is no object stands within one.
const RESULT: &str = "result";
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
/// Members that hold one schema each.
const ONE: [&str; 9] = ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties"];
/// Members that hold several by name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Members that hold several in a list.
const LISTED: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// The schema of arguments: an object in any case.
pub fn of_input(schema: Value) -> Map<String, Value> {
    let Value::Object(mut members) = plain(schema) else { return empty_object() };
    let is_object = members.get("type").is_none_or(|kind| kind == "object");
    if !is_object {
        return empty_object();
    }
    members.insert("type".to_owned(), json!("object"));
    members.entry("properties").or_insert_with(|| json!({}));
    members
}

/// The schema of a result: an object, or one in which the result stands, or nothing where nothing is known.
pub fn of_output(schema: Option<Value>) -> Map<String, Value> {
    let Some(Value::Object(mut members)) = schema.map(plain) else { return Map::new() };
    let is_object = match members.get("type") {
        Some(Value::Array(several)) => several.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
        // It says nothing that an SDK could go by.
        None if !members.contains_key("properties") => return Map::new(),
        None => true,
    };
    if is_object {
        members.insert("type".to_owned(), json!("object"));
        return members;
    }
    // References lead from the root, so what they lead to moves there.
    let shared: Vec<(String, Value)> =
        ["$defs", "definitions"].into_iter().filter_map(|name| members.remove(name).map(|value| (name.to_owned(), value))).collect();
    let mut root = Map::new();
    root.insert("type".to_owned(), json!("object"));
    root.insert("properties".to_owned(), json!({RESULT: members}));
    root.extend(shared);
    root
}

/// The data of a result: an object, as the schema says.
pub fn of_data(data: Value) -> Map<String, Value> {
    match data {
        Value::Object(members) => members,
        other => Map::from_iter([(RESULT.to_owned(), other)]),
    }
}

fn empty_object() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), json!({}))])
}

/// A schema in the words that the SDKs know, meaning the same.
fn plain(schema: Value) -> Value {
    match schema {
        Value::Bool(true) => json!({}),
        Value::Bool(false) => json!({"not": {}}),
        Value::Object(members) => Value::Object(plain_members(members)),
        other => other,
    }
}

fn plain_members(mut members: Map<String, Value>) -> Map<String, Value> {
    for name in ONE {
        let Some(value) = members.get_mut(name) else { continue };
        // Whether more members may be there is said with true and false, which every reader knows.
        if !(value.is_boolean() && matches!(name, "additionalProperties" | "unevaluatedProperties")) {
            *value = match value.take() {
                Value::Array(several) => Value::Array(several.into_iter().map(plain).collect()),
                one => plain(one),
            };
        }
    }
    for name in NAMED {
        if let Some(Value::Object(named)) = members.get_mut(name) {
            for value in named.values_mut() {
                *value = plain(value.take());
            }
        }
    }
    for name in LISTED {
        if let Some(Value::Array(several)) = members.get_mut(name) {
            for value in several {
                *value = plain(value.take());
            }
        }
    }
    plain_bounds(&mut members);
    for name in ["examples", "enum"] {
        if let Some(value) = members.get_mut(name).filter(|value| !value.is_array()) {
            *value = json!([value.take()]);
        }
    }
    members.retain(|name, value| match name.as_str() {
        "description" | "title" | "$ref" | "format" | "pattern" => value.is_string(),
        "required" => value.is_array(),
        "properties" => value.is_object(),
        "type" => is_type(value),
        _ => true,
    });
    members
}

fn is_type(value: &Value) -> bool {
    let known = |value: &Value| value.as_str().is_some_and(|word| TYPES.contains(&word));
    match value {
        Value::Array(several) => !several.is_empty() && several.iter().all(known),
        one => known(one),
    }
}

/// Older schemas say with true that a bound itself does not belong to it.
fn plain_bounds(members: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match members.get(exclusive).and_then(Value::as_bool) {
            Some(true) => {
                members.remove(exclusive);
                if let Some(value) = members.remove(bound) {
                    members.insert(exclusive.to_owned(), value);
                }
            }
            Some(false) => {
                members.remove(exclusive);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sdks_cannot_read_is_said_otherwise() {
        let schema = json!({
            "description": null,
            "properties": {
                "any": true,
                "never": false,
                "n": {"type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": false},
                "old": {"type": "file", "required": true, "examples": "x", "enum": "x"},
                "list": {"type": ["array", "null"], "items": true},
                "more": {"type": "object", "additionalProperties": false}
            },
            "required": ["n"]
        });
        let expected = json!({
            "properties": {
                "any": {},
                "never": {"not": {}},
                "n": {"type": "integer", "exclusiveMinimum": 1, "maximum": 5},
                "old": {"examples": ["x"], "enum": ["x"]},
                "list": {"type": ["array", "null"], "items": {}},
                "more": {"type": "object", "additionalProperties": false}
            },
            "required": ["n"],
            "type": "object"
        });
        assert_eq!(Value::Object(of_input(schema)), expected);
        for odd in [json!(true), json!({"type": "array"}), json!("x")] {
            assert_eq!(Value::Object(of_input(odd)), json!({"type": "object", "properties": {}}));
        }
    }

    #[test]
    fn a_result_is_an_object_and_so_is_its_schema() {
        assert!(of_output(None).is_empty());
        let object = json!({"type": "object", "properties": {"a": {}}});
        assert_eq!(Value::Object(of_output(Some(object.clone()))), object);
        let nullable = json!({"type": ["object", "null"], "properties": {"a": {}}});
        assert_eq!(Value::Object(of_output(Some(nullable))), object);
        assert!(of_output(Some(json!({"anyOf": [{"type": "object"}]}))).is_empty());
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "string"}}});
        let wrapped = json!({
            "type": "object",
            "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
            "$defs": {"x": {"type": "string"}}
        });
        assert_eq!(Value::Object(of_output(Some(list))), wrapped);
        assert_eq!(Value::Object(of_data(json!([1]))), json!({"result": [1]}));
        assert_eq!(Value::Object(of_data(Value::Null)), json!({"result": null}));
        assert_eq!(Value::Object(of_data(json!({"a": 1}))), json!({"a": 1}));
    }
}
