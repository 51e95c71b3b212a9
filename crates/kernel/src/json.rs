//! Small readings of JSON values.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::budget::{Budget, Exceeded};

/// A JSON document kept as text: much smaller than the value, which is made when somebody looks at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Document(Box<str>);

impl Document {
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }

    /// The document as it is kept.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What `T` names of the document, without a value of the rest; nothing where it has another shape.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(&self.0).ok()
    }
}

/// A value as text, in half of the time that `to_string` takes: that writes piece by piece through a formatter.
pub fn text(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        Self(text(value).into_boxed_str())
    }
}

/// About what a member of an object takes besides its value: its name and its places in the table.
const MEMBER: usize = 56;

/// Why a text did not become a value.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The value of a JSON text that the budget has room for. A short text can hold a value a hundred times its size.
pub fn parse(text: &[u8], budget: &Budget) -> Result<Value, Unread> {
    budget.hold(weigh(text))?;
    budget.look()?;
    Ok(serde_json::from_slice(text)?)
}

/// About how many bytes the value of a JSON text takes in memory, counted by its punctuation.
pub fn weigh(text: &[u8]) -> usize {
    let (mut values, mut members) = (1, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b',' | b'[' | b'{' => values += 1,
            b':' => members += 1,
            _ => {}
        }
    }
    text.len() + values * size_of::<Value>() + members * MEMBER
}

/// About how many bytes a value takes as text; what is more than `most` is not counted to its end.
pub fn size(value: &Value, most: usize) -> usize {
    let mut left = most;
    if charge(&mut left, value) { most - left } else { most }
}

/// The same for the members of an object.
pub fn size_of_members(members: &serde_json::Map<String, Value>, most: usize) -> usize {
    let mut left = most;
    if charge_members(&mut left, members) { most - left } else { most }
}

/// Takes about the size of `value` as text off `left`; false, without looking further, once that is used up.
pub fn charge(left: &mut usize, value: &Value) -> bool {
    const PUNCTUATION: usize = 8;
    let own = if let Value::String(text) = value { text.len() } else { 0 };
    let Some(rest) = left.checked_sub(own + PUNCTUATION) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| charge(left, item)),
        Value::Object(members) => charge_members(left, members),
        _ => true,
    }
}

fn charge_members(left: &mut usize, members: &serde_json::Map<String, Value>) -> bool {
    members.iter().all(|(name, value)| match left.checked_sub(name.len()) {
        Some(rest) => {
            *left = rest;
            charge(left, value)
        }
        None => false,
    })
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
    fn a_text_is_weighed_before_it_is_read() {
        let numbers = format!("[{}0]", "0,".repeat(2_000_000));
        assert!(weigh(numbers.as_bytes()) > 20 * numbers.len(), "a number takes as much as any value");
        let error = parse(numbers.as_bytes(), &Budget::default()).unwrap_err();
        assert!(matches!(error, Unread::Exceeded(Exceeded::Bytes(_))), "{error}");
        let text = format!(r#"{{"a": "{}\\",  "b": ","}}"#, r#"[\",{:"#.repeat(100_000));
        assert!(weigh(text.as_bytes()) < text.len() + 1000, "what stands in texts does not count");
        assert_eq!(parse(text.as_bytes(), &Budget::default()).unwrap()["b"], ",");
        assert!(matches!(parse(b"[1", &Budget::default()), Err(Unread::Json(_))));
    }

    #[test]
    fn a_size_is_counted_no_further_than_it_matters() {
        let value = json!({"name": ["text", 1, null]});
        assert_eq!((size(&value, 1000), size(&value, 20)), (48, 20));
        assert_eq!(size_of_members(value.as_object().unwrap(), 1000), 40);
    }

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
