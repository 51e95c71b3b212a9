//! Small readings of JSON values.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A JSON document kept as text: much smaller than the value, which is made when somebody looks at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Document(Box<str>);

impl Document {
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }

    /// What `T` names of the document, without a value of the rest; nothing where it has another shape.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(&self.0).ok()
    }
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into_boxed_str())
    }
}

/// How deep a document may be nested; what is stored must be readable again, and parsers stop soon after this.
pub const MAX_DEPTH: usize = 100;

/// Whether lists and objects are nested more than `limit` deep.
pub fn depth_exceeds(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| depth_exceeds(item, limit - 1)),
        Value::Object(fields) => limit == 0 || fields.values().any(|field| depth_exceeds(field, limit - 1)),
        _ => false,
    }
}

/// The same value with the keys of its objects in order, at every depth: how a caller orders them means nothing.
#[must_use]
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> = fields.iter().map(|(name, field)| (name, sorted(field))).collect();
            Value::Object(fields.into_iter().map(|(name, field)| (name.clone(), field)).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A string or a number as plain text; nothing else has one.
pub fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn depth_counts_lists_and_objects() {
        for (value, depth) in [(json!(1), 0), (json!([]), 1), (json!({"a": 1}), 1), (json!([1, {"a": [2]}]), 3)] {
            assert!(!depth_exceeds(&value, depth), "{value}");
            assert!(depth == 0 || depth_exceeds(&value, depth - 1), "{value}");
        }
    }

    #[test]
    fn keys_are_sorted_at_every_depth_and_lists_stay() {
        let value = json!({"b": [{"d": 1, "c": 2}, 0], "a": {"f": null, "e": "x"}});
        assert_eq!(sorted(&value).to_string(), r#"{"a":{"e":"x","f":null},"b":[{"c":2,"d":1},0]}"#);
    }
}
