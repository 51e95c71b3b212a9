//! The headers of a message over HTTP: since 2026-07-28 they repeat what the message says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The headers of a message that says its revision itself; none of an older one.
pub(super) fn mirrored(message: &Value) -> HeaderMap {
    let params = &message["params"];
    let mut headers = HeaderMap::new();
    let Some(version) = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str() else { return headers };
    let named = match message["method"].as_str() {
        Some("tools/call" | "prompts/get") => params["name"].as_str(),
        Some("resources/read") => params["uri"].as_str(),
        _ => None,
    };
    for (name, value) in [(VERSION, Some(version)), (METHOD, message["method"].as_str()), (NAME, named)] {
        headers.extend(value.and_then(written).map(|value| (name, value)));
    }
    headers
}

/// A value as a header takes it: as it is, or in base64.
fn written(value: &str) -> Option<HeaderValue> {
    let is_plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim() == value && !value.starts_with("=?base64?");
    let text = if is_plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) };
    HeaderValue::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_of_the_newest_revision_is_repeated() {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let call = |name: &str| mirrored(&json!({"method": "tools/call", "params": {"name": name, "_meta": meta}}));
        assert_eq!(
            (&call("echo")[METHOD], &call("echo")[NAME], &call("echo")[VERSION]),
            (&HeaderValue::from_static("tools/call"), &HeaderValue::from_static("echo"), &HeaderValue::from_static("2026-07-28"))
        );
        assert_eq!(call("ä")[NAME], "=?base64?w6Q=?=");
        assert!(mirrored(&json!({"method": "tools/call", "params": {"name": "echo"}})).is_empty());
    }
}
