//! Schemas as model APIs accept them: the root a plain object without alternatives, every key one that the API takes.
//!
//! What an API cannot express is said in a description; arguments are still checked against the tool's own schema.

use serde_json::{Map, Value, json};

use super::Format;
use super::gemini::gemini;
use super::inline::{each_nested, implied_type, inline, object};

/// The keywords of one schema.
pub(super) type Schema = Map<String, Value>;

pub(super) const UNIONS: [&str; 2] = ["anyOf", "oneOf"];

/// The input schema for an API that takes JSON Schema.
pub(super) fn input(format: Format, schema: &Value) -> Value {
    let mut root = root_object(&inline(schema));
    leave_out_keys(format, &mut root);
    let mut root = Value::Object(root);
    if format == Format::Mcp {
        // A client would repeat such an argument in a header, which is between it and another server.
        leave_out(&mut root, "x-mcp-header");
    }
    root
}

fn leave_out(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove(name);
            fields.values_mut().for_each(|field| leave_out(field, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| leave_out(item, name)),
        _ => {}
    }
}

/// The input schema for Gemini; without `properties` when there is nothing to give.
pub(super) fn gemini_input(schema: &Value) -> Schema {
    let mut root = root_object(&inline(schema));
    leave_out_keys(Format::Gemini, &mut root);
    gemini(&root)
}

/// The output schema for MCP, where the kind of output is known. Structured results are objects there: what is none, such as a list, stands
/// in `result`. Clients refuse a result that does not fit, and services leave out fields, add some and send nulls; so it says what to look for
/// and demands nothing.
pub(super) fn output(schema: &Value) -> Option<Value> {
    let root = inline(schema);
    let is_object = implied_type(&root)? == "object";
    let mut root = Value::Object(root);
    expect_nothing(&mut root);
    if is_object {
        root["type"] = "object".into();
        return Some(root);
    }
    Some(json!({"type": "object", "properties": {"result": root}}))
}

fn expect_nothing(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    schema.retain(|keyword, _| {
        ["type", "title", "description", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs"].contains(&keyword.as_str())
    });
    if let Some(one_of) = schema.shift_remove("oneOf") {
        // A null fits several of them.
        schema.insert("anyOf".to_owned(), one_of);
    }
    match schema.get_mut("type") {
        Some(Value::Array(types)) => add_new(types, vec!["null".into()]),
        Some(name) if name != "null" => *name = json!([name, "null"]),
        _ => {}
    }
    for (keyword, nested) in schema.iter_mut() {
        match (keyword.as_str(), nested) {
            ("properties" | "$defs", Value::Object(nested)) => nested.values_mut().for_each(expect_nothing),
            ("anyOf" | "allOf", Value::Array(nested)) => nested.iter_mut().for_each(expect_nothing),
            ("items", nested) => expect_nothing(nested),
            _ => {}
        }
    }
}

/// The root as every API wants it: an object with `properties` and nothing that combines schemas.
fn root_object(schema: &Schema) -> Schema {
    let mut root = flat(&merged(schema));
    root.retain(|keyword, _| !matches!(keyword.as_str(), "type" | "not" | "enum" | "const" | "allOf" | "default"));
    let mut object = object(json!({"type": "object"}));
    object.append(&mut root);
    object.entry("properties").or_insert_with(|| json!({}));
    object
}

/// The schema with its `allOf` folded in.
pub(super) fn merged(schema: &Schema) -> Schema {
    let mut base = schema.clone();
    let Some(Value::Array(parts)) = base.shift_remove("allOf") else {
        return base;
    };
    parts.iter().filter_map(Value::as_object).fold(base, |base, part| merge(base, merged(part)))
}

/// The schema that asks for both; what only describes is taken from the first.
pub(super) fn merge(mut first: Schema, second: Schema) -> Schema {
    // A closed part would refuse the properties of the other part, which nobody means.
    let opened = [&first, &second].iter().all(|part| part.contains_key("properties"))
        && first.get("additionalProperties") != second.get("additionalProperties");
    for (keyword, theirs) in second {
        let Some(ours) = first.get_mut(&keyword) else {
            first.insert(keyword, theirs);
            continue;
        };
        match (keyword.as_str(), ours, theirs) {
            ("properties" | "patternProperties", Value::Object(ours), Value::Object(theirs)) => merge_properties(ours, theirs),
            ("required" | "allOf", Value::Array(ours), Value::Array(theirs)) => add_new(ours, theirs),
            ("enum", Value::Array(ours), Value::Array(theirs)) => retain_common(ours, &theirs),
            ("type", ours, theirs) => *ours = common_types(ours, &theirs),
            ("anyOf" | "oneOf", ours, theirs) if *ours != theirs => {
                if let Value::Array(all) = first.entry("allOf").or_insert_with(|| json!([])) {
                    all.push(json!({keyword: theirs}));
                }
            }
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", ours, theirs)
                if ours.as_f64() < theirs.as_f64() =>
            {
                *ours = theirs;
            }
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", ours, theirs)
                if ours.as_f64() > theirs.as_f64() =>
            {
                *ours = theirs;
            }
            _ => {}
        }
    }
    if opened {
        first.shift_remove("additionalProperties");
    }
    first
}

fn merge_properties(ours: &mut Schema, theirs: Schema) {
    for (name, theirs) in theirs {
        match (ours.get_mut(&name), theirs) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => *ours = merge(std::mem::take(ours), theirs),
            (Some(_), _) => {}
            (None, theirs) => {
                ours.insert(name, theirs);
            }
        }
    }
}

pub(super) fn add_new(ours: &mut Vec<Value>, theirs: Vec<Value>) {
    for value in theirs {
        if !ours.contains(&value) {
            ours.push(value);
        }
    }
}

/// Both lists, unless they contradict each other.
fn retain_common(ours: &mut Vec<Value>, theirs: &[Value]) {
    if ours.iter().any(|value| theirs.contains(value)) {
        ours.retain(|value| theirs.contains(value));
    }
}

fn common_types(ours: &Value, theirs: &Value) -> Value {
    let list = |types: &Value| types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]);
    let mut common = list(ours);
    retain_common(&mut common, &list(theirs));
    if let [one] = &common[..] { one.clone() } else { Value::Array(common) }
}

/// An object schema whose alternatives are folded into it: it takes the properties of all and needs what all of them need.
pub(super) fn flat(schema: &Schema) -> Schema {
    let mut base = schema.clone();
    for union in UNIONS {
        let Some(Value::Array(branches)) = base.shift_remove(union) else { continue };
        let branches = branches.iter().filter_map(Value::as_object).map(|branch| flat(&merged(branch)));
        let objects: Vec<Schema> = branches.filter(|branch| implied_type(branch).is_none_or(|name| name == "object")).collect();
        take_properties(&mut base, &objects);
        take_required(&mut base, &objects);
    }
    base
}

fn take_properties(base: &mut Schema, branches: &[Schema]) {
    let mut offered: Map<String, Value> = Map::new();
    let properties = branches.iter().filter_map(|branch| branch.get("properties")?.as_object()).flatten();
    for (name, schema) in properties {
        if let Value::Array(schemas) = offered.entry(name).or_insert_with(|| json!([])) {
            add_new(schemas, vec![schema.clone()]);
        }
    }
    if offered.is_empty() {
        return;
    }
    if let Value::Object(properties) = base.entry("properties").or_insert_with(|| json!({})) {
        for (name, schemas) in offered {
            let only = schemas.as_array().filter(|schemas| schemas.len() == 1).map(|schemas| schemas[0].clone());
            properties.entry(name).or_insert_with(|| only.unwrap_or_else(|| json!({"anyOf": schemas})));
        }
    }
}

fn take_required(base: &mut Schema, branches: &[Schema]) {
    let required: Vec<Vec<Value>> = branches.iter().map(required_of).collect();
    let Some((first, others)) = required.split_first() else { return };
    let common: Vec<Value> = first.iter().filter(|name| others.iter().all(|other| other.contains(name))).cloned().collect();
    let mut all = required_of(base);
    add_new(&mut all, common);
    let needs = required.iter().map(|names| list(names.iter().filter(|name| !all.contains(name))));
    let mut alternatives: Vec<String> = needs.collect();
    if alternatives.iter().all(|names| !names.is_empty()) {
        alternatives.dedup();
        note(base, &format!("Also needs {}.", alternatives.join(" or ")));
    }
    if !all.is_empty() {
        base.insert("required".to_owned(), Value::Array(all));
    }
}

pub(super) fn required_of(schema: &Schema) -> Vec<Value> {
    schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Values as a description lists them.
pub(super) fn list<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    let shown = values.map(|value| value.as_str().map_or_else(|| format!("`{value}`"), |text| format!("`{text}`")));
    shown.collect::<Vec<_>>().join(", ")
}

/// Adds a sentence to a description.
pub(super) fn note(schema: &mut Schema, sentence: &str) {
    let described = schema.get("description").and_then(Value::as_str).map(str::trim_end).filter(|text| !text.is_empty());
    let text = match described {
        Some(text) if text.ends_with(['.', '!', '?', ':']) => format!("{text} {sentence}"),
        Some(text) => format!("{text}. {sentence}"),
        None => sentence.to_owned(),
    };
    schema.insert("description".to_owned(), text.into());
}

/// Leaves out properties whose names the API refuses. They cannot be renamed, since the arguments come back under these names; the
/// description still offers them.
fn leave_out_keys(format: Format, schema: &mut Schema) {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let refused: Vec<Value> = properties.filter(|(name, _)| !format.accepts_key(name)).map(|(name, _)| name.as_str().into()).collect();
    if !refused.is_empty() {
        let refuses = |name: &str| refused.iter().any(|refused| refused == name);
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.retain(|name, _| !refuses(name));
        }
        let (needed, mut required) = required_of(schema).into_iter().partition::<Vec<_>, _>(|name| refused.contains(name));
        required.retain(|name| !needed.contains(name));
        schema.insert("required".to_owned(), Value::Array(required));
        schema.shift_remove("additionalProperties");
        note(schema, &format!("Also takes {}.", list(refused.iter())));
        if !needed.is_empty() {
            note(schema, &format!("Needs {}.", list(needed.iter())));
        }
    }
    each_nested(schema, &mut |nested| {
        if let Value::Object(nested) = nested {
            leave_out_keys(format, nested);
        }
    });
}
