//! A JSON Schema as a table: one line for each parameter, with those inside of objects below it.

use serde_json::Value;

/// Parameters deeper than this are left to the tree.
const DEEPEST: usize = 3;
const MOST_VALUES: usize = 12;

/// One line of the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// With those it is inside of, as in `issue.title`.
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) is_required: bool,
    pub(crate) description: String,
    pub(crate) default: Option<String>,
}

pub(crate) fn parameters(schema: &Value) -> Vec<Parameter> {
    let mut all = Vec::new();
    collect(schema, "", 0, &mut all);
    all
}

fn collect(schema: &Value, before: &str, depth: usize, all: &mut Vec<Parameter>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in properties {
        let full = format!("{before}{name}");
        all.push(Parameter {
            kind: kind(property),
            is_required: required.contains(&name.as_str()),
            description: property["description"].as_str().unwrap_or_default().to_owned(),
            default: property.get("default").filter(|value| !value.is_null()).map(plain),
            name: full.clone(),
        });
        if depth + 1 < DEEPEST {
            collect(property, &format!("{full}."), depth + 1, all);
            collect(&property["items"], &format!("{full}[]."), depth + 1, all);
        }
    }
}

/// What a value must be, in a few words.
fn kind(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        return one_of(values);
    }
    let base = match &property["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    };
    match (base.as_str(), property.get("items")) {
        ("array", Some(items)) => format!("list of {}", kind(items)),
        ("array", None) => "list".to_owned(),
        _ => base,
    }
}

fn one_of(values: &[Value]) -> String {
    let shown: Vec<String> = values.iter().take(MOST_VALUES).map(plain).collect();
    let more = values.len().saturating_sub(MOST_VALUES);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("one of {}{rest}", shown.join(", "))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_becomes_lines() {
        let schema = json!({"required": ["issue"], "properties": {
            "issue": {"type": "object", "properties": {"state": {"enum": ["open", "closed"], "default": "open", "description": "How it stands."}}},
            "labels": {"type": "array", "items": {"type": "string"}}, "limit": {"type": ["integer", "null"], "default": null}}});
        let lines: Vec<(String, String, bool)> =
            parameters(&schema).into_iter().map(|line| (line.name, line.kind, line.is_required)).collect();
        let expected = [
            ("issue", "object", true),
            ("issue.state", "one of open, closed", false),
            ("labels", "list of string", false),
            ("limit", "integer or null", false),
        ];
        assert_eq!(lines, expected.map(|(name, kind, required)| (name.to_owned(), kind.to_owned(), required)));
        assert_eq!(parameters(&schema)[1].default.as_deref(), Some("open"));
        assert_eq!(parameters(&schema)[3].default, None);
    }

    #[test]
    fn long_lists_of_values_say_how_many_there_are() {
        let values: Vec<Value> = (0..15).map(Value::from).collect();
        assert!(one_of(&values).ends_with("11 and 3 more"), "{}", one_of(&values));
    }

    #[test]
    fn odd_schemas_have_no_lines() {
        assert!(parameters(&json!(null)).is_empty() && parameters(&json!({"properties": []})).is_empty());
        let deep = (0..50).fold(json!({"type": "string"}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
        assert_eq!(parameters(&deep).len(), DEEPEST);
    }
}
