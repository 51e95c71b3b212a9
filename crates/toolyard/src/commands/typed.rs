//! `--arg NAME=VALUE` and `--set NAME=VALUE`: the value in the type that a schema names.

use anyhow::bail;
use serde_json::{Map, Value};

/// How many references in a schema are followed.
const DEPTH: usize = 8;

/// The values by name. Without a schema, a value is JSON where it is JSON, else text.
pub(super) fn fields(flag: &str, pairs: Vec<(String, String)>, schema: Option<&Value>) -> anyhow::Result<Map<String, Value>> {
    if schema.is_none()
        && let Some((name, value)) = pairs.iter().find(|(_, value)| !plain(value).is_string())
    {
        eprintln!("note: there is no schema to say what `{name}` is; `{value}` is read as JSON");
    }
    let mut fields = Map::new();
    for (name, value) in pairs {
        let read = read(schema, &name, &value);
        match read {
            Ok(read) => fields.insert(name, read),
            Err(wanted) => bail!("{flag} {name}={value}: `{name}` must be {wanted}"),
        };
    }
    Ok(fields)
}

fn plain(value: &str) -> Value {
    serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()))
}

/// The value, or in words what it must be.
fn read(schema: Option<&Value>, name: &str, value: &str) -> Result<Value, String> {
    let Some((root, property)) = schema.and_then(|root| Some((root, root.get("properties")?.get(name)?))) else { return Ok(plain(value)) };
    let types = types(root, property, DEPTH);
    let parsed = plain(value);
    if types.is_empty() || types.iter().any(|wanted| is(&parsed, wanted)) {
        return Ok(parsed);
    }
    if types.contains(&"string") {
        return Ok(Value::String(value.to_owned()));
    }
    Err(types.iter().map(|wanted| in_words(wanted)).collect::<Vec<_>>().join(" or "))
}

fn is(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn in_words(wanted: &str) -> String {
    match wanted {
        "integer" => "a whole number".to_owned(),
        "number" => "a number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => "a JSON list, such as [\"a\",\"b\"]".to_owned(),
        "object" => "a JSON object, such as {\"a\":1}".to_owned(),
        other => other.to_owned(),
    }
}

/// The types that a property may have; none where the schema does not say, or says it in a way that is not read here.
fn types<'a>(root: &'a Value, schema: &'a Value, depth: usize) -> Vec<&'a str> {
    if let Some(name) = schema["type"].as_str() {
        return vec![name];
    }
    if let Some(names) = schema["type"].as_array() {
        return names.iter().filter_map(Value::as_str).collect();
    }
    if depth == 0 {
        return Vec::new();
    }
    if let Some(pointer) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        return root.pointer(pointer).map(|target| types(root, target, depth - 1)).unwrap_or_default();
    }
    let mut found = Vec::new();
    for choice in ["anyOf", "oneOf"].iter().filter_map(|word| schema[*word].as_array()).flatten() {
        let of_one = types(root, choice, depth - 1);
        if of_one.is_empty() {
            return of_one;
        }
        found.extend(of_one);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_type_that_the_schema_names() {
        let schema = json!({"properties": {
            "id": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"}, "open": {"type": "boolean"},
            "labels": {"type": "array"}, "when": {"type": ["string", "null"]}, "any": {}, "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "kept": {"$ref": "#/$defs/text"}}, "$defs": {"text": {"type": "string"}}});
        let read = |name: &str, value: &str| read(Some(&schema), name, value);
        for (name, value, expected) in [
            ("id", "1", json!("1")),
            ("id", "true", json!("true")),
            ("id", "{\"a\":1}", json!("{\"a\":1}")),
            ("id", "plain", json!("plain")),
            ("kept", "12", json!("12")),
            ("count", "1", json!(1)),
            ("ratio", "1", json!(1)),
            ("open", "false", json!(false)),
            ("labels", "[\"a\"]", json!(["a"])),
            ("when", "null", json!(null)),
            ("when", "5", json!("5")),
            ("either", "5", json!(5)),
            ("either", "five", json!("five")),
            ("any", "5", json!(5)),
            ("unknown", "5", json!(5)),
        ] {
            assert_eq!(read(name, value), Ok(expected), "{name}={value}");
        }
        assert_eq!(read("count", "one"), Err("a whole number".to_owned()));
        assert_eq!(read("open", "yes"), Err("true or false".to_owned()));
        let error = fields("--arg", vec![("labels".to_owned(), "a,b".to_owned())], Some(&schema)).unwrap_err().to_string();
        assert_eq!(error, "--arg labels=a,b: `labels` must be a JSON list, such as [\"a\",\"b\"]");
    }
}
