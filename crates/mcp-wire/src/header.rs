//! The headers of Streamable HTTP, and how a value is written in one that repeats a part of the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};

pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// What the name of a header begins with that repeats an argument.
pub const ARGUMENT_PREFIX: &str = "mcp-param-";
/// The keyword of a schema that names the header of an argument.
pub const ARGUMENT_KEYWORD: &str = "x-mcp-header";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// A text as a header holds it: as it is where that is possible, else in base64.
pub fn encode(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text && !text.starts_with(OPEN);
    let text = if is_plain { text.to_owned() } else { format!("{OPEN}{}{CLOSE}", STANDARD.encode(text)) };
    HeaderValue::from_str(&text).ok()
}

/// The text that a header holds; nothing if it cannot be read.
pub fn decode(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?.trim();
    let Some(inner) = text.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) else { return Some(text.to_owned()) };
    String::from_utf8(STANDARD.decode(inner).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["echo", "", "zürich", " padded ", "two\nlines", "=?base64?eA==?="] {
            assert_eq!(decode(&encode(text).unwrap()).as_deref(), Some(text));
        }
        assert_eq!(encode("zürich").unwrap(), "=?base64?esO8cmljaA==?=");
        assert_eq!(decode(&HeaderValue::from_static("=?base64?%?=")), None);
    }
}
