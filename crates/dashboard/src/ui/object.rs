//! A JSON object that somebody typed.

use serde_json::{Map, Value};

/// Reads arguments from a box. An empty box means none.
pub(crate) fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(if text.trim().is_empty() { "{}" } else { text }) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("The arguments must be a JSON object, such as {\"name\": \"value\"}.".to_owned()),
        Err(error) => Err(format!("The arguments are not JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::json_object;

    #[test]
    fn only_objects_are_read() {
        assert_eq!(json_object(" ").unwrap().len(), 0);
        assert_eq!(json_object("{\"a\": 1}").unwrap()["a"], 1);
        assert!(json_object("[1]").unwrap_err().contains("must be a JSON object"));
        assert!(json_object("{").unwrap_err().contains("not JSON"));
    }
}
