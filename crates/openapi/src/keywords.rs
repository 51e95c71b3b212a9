//! Keywords of one schema: small pure functions that read, clean and combine them.

use serde_json::{Map, Number, Value, json};

pub(crate) type Keywords = Map<String, Value>;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

pub(crate) fn put_types(keywords: &Keywords, made: &mut Keywords) {
    let kinds = types(keywords);
    match kinds[..] {
        [] if keywords.contains_key("properties") => made.insert("type".to_owned(), "object".into()),
        [] => None,
        [one] => made.insert("type".to_owned(), one.into()),
        _ => made.insert("type".to_owned(), json!(kinds)),
    };
    if kinds.contains(&"array") && !keywords.contains_key("items") {
        made.insert("items".to_owned(), json!({}));
    }
}

/// The types that JSON Schema knows.
pub(crate) fn types(keywords: &Keywords) -> Vec<&'static str> {
    let named: Vec<&str> = match keywords.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    TYPES.into_iter().filter(|known| named.contains(known)).collect()
}

/// Exclusive bounds: OpenAPI 3.0 says with a boolean what JSON Schema says with a number.
pub(crate) fn put_bounds(keywords: &Keywords, made: &mut Keywords) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match keywords.get(exclusive) {
            Some(Value::Bool(true)) => {
                if let Some(limit) = made.shift_remove(bound) {
                    made.insert(exclusive.to_owned(), limit);
                }
            }
            Some(limit @ Value::Number(_)) => {
                made.insert(exclusive.to_owned(), limit.clone());
            }
            _ => {}
        }
    }
}

/// The schema that also takes null.
pub(crate) fn nullable(mut schema: Keywords) -> Keywords {
    let kinds = types(&schema);
    if kinds.contains(&"null") {
        return schema;
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if !kinds.is_empty() && !schema.contains_key("anyOf") && !schema.contains_key("allOf") && !schema.contains_key("const") {
        schema.insert("type".to_owned(), kinds.into_iter().chain(["null"]).collect::<Vec<_>>().into());
        return schema;
    }
    if kinds.is_empty() && !["anyOf", "allOf", "const", "enum"].iter().any(|keyword| schema.contains_key(*keyword)) {
        return schema;
    }
    let description = schema.shift_remove("description");
    let mut either = object(json!({"anyOf": [schema, {"type": "null"}]}));
    either.extend(description.map(|text| ("description".to_owned(), text)));
    either
}

/// The schema that asks for both; what only describes is the first's.
pub(crate) fn both(mut first: Keywords, second: Keywords) -> Keywords {
    let closed = |part: &Keywords| part.get("additionalProperties") == Some(&Value::Bool(false));
    // A closed part would refuse the properties of the other, which nobody means.
    if first.contains_key("properties") && second.contains_key("properties") && (closed(&first) || closed(&second)) {
        first.shift_remove("additionalProperties");
    }
    let opened = !first.contains_key("additionalProperties") && first.contains_key("properties");
    let mut apart = Keywords::new();
    for (keyword, theirs) in second {
        let Some(ours) = first.get_mut(&keyword) else {
            if !(keyword == "additionalProperties" && opened && theirs == Value::Bool(false)) {
                first.insert(keyword, theirs);
            }
            continue;
        };
        match (keyword.as_str(), ours, theirs) {
            ("description" | "default" | "examples" | "format", _, _) => {}
            ("properties", Value::Object(ours), Value::Object(theirs)) => merge_properties(ours, theirs),
            ("required", Value::Array(ours), Value::Array(theirs)) => {
                for name in theirs {
                    if !ours.contains(&name) {
                        ours.push(name);
                    }
                }
            }
            ("allOf", Value::Array(ours), Value::Array(theirs)) => ours.extend(theirs),
            (_, ours, theirs) if *ours == theirs => {}
            (_, _, theirs) => {
                apart.insert(keyword, theirs);
            }
        }
    }
    if !apart.is_empty()
        && let Value::Array(parts) = first.entry("allOf").or_insert_with(|| json!([]))
    {
        parts.push(apart.into());
    }
    first
}

fn merge_properties(ours: &mut Keywords, theirs: Keywords) {
    for (name, theirs) in theirs {
        match (ours.get_mut(&name), theirs) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => *ours = both(std::mem::take(ours), theirs),
            (Some(_), _) => {}
            (None, theirs) => {
                ours.insert(name, theirs);
            }
        }
    }
}

pub(crate) fn closed(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

pub(crate) fn distinct(values: &[Value]) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(values.len());
    for value in values {
        if !kept.contains(value) {
            kept.push(value.clone());
        }
    }
    kept
}

/// A count as JSON Schema has it; `1.0` is one too.
pub(crate) fn count(value: &Value) -> Option<Number> {
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then(|| format!("{number:.0}").parse().ok());
    value.as_u64().map(Number::from).or_else(|| value.as_f64().and_then(whole).flatten())
}

/// About how many bytes a value takes.
pub(crate) fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| length(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => fields.iter().map(|(name, field)| name.len() + length(field) + 4).sum::<usize>() + 2,
        _ => 6,
    }
}

pub(crate) fn object(value: Value) -> Keywords {
    match value {
        Value::Object(keywords) => keywords,
        _ => Keywords::new(),
    }
}
