//! Mappings, as people type them.

use serde_json::Value;

/// How a text that selects begins.
const SELECTORS: [&str; 3] = ["$", "/", "{{"];

/// The mapping in a box; nothing where the box is empty.
pub(crate) fn mapping_of(text: &str) -> Result<Option<Value>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(text) {
        Ok(Value::Null) => Ok(None),
        Ok(mapping) => Ok(Some(mapping)),
        Err(_) if SELECTORS.iter().any(|start| text.starts_with(start)) => Ok(Some(text.into())),
        Err(error) => Err(format!("The mapping is neither JSON nor a selector: {error}.")),
    }
}

/// A mapping as it stands in the box.
pub(crate) fn mapping_text(mapping: Option<&Value>) -> String {
    match mapping {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) if SELECTORS.iter().any(|start| text.starts_with(start)) => text.clone(),
        Some(other) => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mapping_is_json_or_one_selector() {
        assert_eq!(mapping_of(" "), Ok(None));
        assert_eq!(mapping_of("{\"a\": \"$.event\"}"), Ok(Some(json!({"a": "$.event"}))));
        assert_eq!(mapping_of("$.event.attributes"), Ok(Some(json!("$.event.attributes"))));
        assert_eq!(mapping_of("{{ event }}"), Ok(Some(json!("{{ event }}"))));
        assert!(mapping_of("{a: 1}").is_err());
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for mapping in [json!({"a": ["$.event"]}), json!("/event"), json!("words")] {
            assert_eq!(mapping_of(&mapping_text(Some(&mapping))), Ok(Some(mapping)));
        }
        assert_eq!(mapping_text(None), "");
    }
}
