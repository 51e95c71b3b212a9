//! Small readings of JSON values.

use serde_json::Value;

/// A JSON document kept as text: much smaller than the value, which is made when somebody looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document(Box<str>);

impl Document {
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into_boxed_str())
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
