//! Reading values that others wrote, where anything may be missing or of another type.

use serde_json::Value;

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A count at a path of names; some servers write a whole number as `12.0`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count that is no whole number is rounded down")]
pub(crate) fn count(value: &Value, path: &[&str]) -> Option<u64> {
    let found = path.iter().try_fold(value, |value, name| value.get(name))?;
    found.as_u64().or_else(|| found.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}

/// Text that is either given as such or as an object.
pub(crate) fn json_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
