//! What the stateless revision repeats of a call in headers. Pure.

use http::{HeaderMap, HeaderName};
use mcp_wire::header::{self, NAME};
use serde_json::{Map, Value};

/// The name of a tool and the arguments that its schema marks.
pub(crate) fn headers(tool: &str, schema: &Value, arguments: &Map<String, Value>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.extend(header::encode(tool).map(|name| (NAME, name)));
    marked(schema, arguments, &mut headers);
    headers
}

fn marked(schema: &Value, arguments: &Map<String, Value>, headers: &mut HeaderMap) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let Some(value) = arguments.get(name) else { continue };
        match (property[header::ARGUMENT_KEYWORD].as_str(), value) {
            (Some(named), value) => {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Bool(_) | Value::Number(_) => value.to_string(),
                    _ => continue,
                };
                if let (Ok(name), Some(text)) =
                    (format!("{}{named}", header::ARGUMENT_PREFIX).to_ascii_lowercase().parse::<HeaderName>(), header::encode(&text))
                {
                    headers.insert(name, text);
                }
            }
            (None, Value::Object(inner)) => marked(property, inner, headers),
            (None, _) => {}
        }
    }
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
