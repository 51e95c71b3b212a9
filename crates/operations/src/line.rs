//! The first line of a request: a method and where it goes.

use http::Method;

/// A method and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLine {
    pub method: Method,
    pub target: String,
}

impl RequestLine {
    /// Reads `GET /path` or `GET https://host/path`.
    pub fn parse(text: &str) -> Option<Self> {
        let (method, target) = text.split_once(' ')?;
        let method: Method = method.parse().ok()?;
        let known = matches!(method.as_str(), "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE");
        let placed = target.starts_with('/') || target.starts_with("https://");
        (known && placed && !target.contains(char::is_whitespace)).then(|| Self { method, target: target.to_owned() })
    }

    /// Whether the parameters go into the query string by default.
    pub fn is_bodiless(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "DELETE")
    }
}

/// The names in `{braces}` of a text.
pub fn placeholders(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        rest = &rest[start + 1..];
        let Some(end) = rest.find('}') else { break };
        names.push(&rest[..end]);
        rest = &rest[end + 1..];
    }
    names
}
