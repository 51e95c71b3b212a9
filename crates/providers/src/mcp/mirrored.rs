//! What the stateless revision repeats of a call in headers. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The name of a tool and the arguments that its schema marks.
pub(super) fn headers(tool: &str, schema: &Value, arguments: &Map<String, Value>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.extend(written(tool).map(|name| (NAME, name)));
    marked(schema, arguments, &mut headers);
    headers
}

fn marked(schema: &Value, arguments: &Map<String, Value>, headers: &mut HeaderMap) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let Some(value) = arguments.get(name) else { continue };
        match (property["x-mcp-header"].as_str(), value) {
            (Some(header), value) => {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Bool(_) | Value::Number(_) => value.to_string(),
                    _ => continue,
                };
                if let (Ok(header), Some(text)) = (format!("mcp-param-{header}").to_ascii_lowercase().parse::<HeaderName>(), written(&text))
                {
                    headers.insert(header, text);
                }
            }
            (None, Value::Object(inner)) => marked(property, inner, headers),
            (None, _) => {}
        }
    }
}

/// As it is, where a header can hold that; else in base64.
fn written(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text && !text.starts_with("=?base64?");
    let text = if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) };
    HeaderValue::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_arguments_become_headers() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"count": {"x-mcp-header": "Count"}}},
            "free": {}, "list": {"x-mcp-header": "List"},
        }});
        let arguments = json!({"region": "zürich", "deep": {"count": 3}, "free": "x", "list": [1]});
        let headers = headers("echo", &schema, arguments.as_object().unwrap());
        let mut found: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        found.sort();
        assert_eq!(found, ["mcp-name: echo", "mcp-param-count: 3", "mcp-param-region: =?base64?esO8cmljaA==?="]);
    }
}
