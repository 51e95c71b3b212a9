//! `/agents`: agents, their apps, their tools.

pub mod bodies;
pub mod daily;
pub mod rows;
pub mod tools;
pub mod toolset;

use ::agents::{AgentRef, Precondition};
use http::HeaderMap;
use http::header::IF_MATCH;
use serde_json::json;

use crate::edge::{ApiError, ApiResult};

/// An agent in a path: its number or its UUID.
pub(crate) fn agent_ref(text: &str) -> ApiResult<AgentRef> {
    let wrong = || ApiError::invalid("path_invalid", vec![json!("path"), json!("agent_id")], "An agent's id is a number or a UUID.");
    text.parse().map_err(|()| wrong())
}

/// The versions of `If-Match`. One that is no version of ours fits nothing.
fn precondition(headers: &HeaderMap) -> Precondition {
    let values: Vec<&str> = headers.get_all(IF_MATCH).iter().map(|value| value.to_str().unwrap_or_default()).collect();
    let tags: Vec<&str> = values.iter().flat_map(|value| value.split(',')).map(str::trim).collect();
    if tags.is_empty() || tags.contains(&"*") {
        return Precondition(None);
    }
    let version = |tag: &&str| tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"').parse().ok();
    Precondition(Some(tags.iter().filter_map(version).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_if_match() {
        for (header, versions) in [
            (None, None),
            (Some("*"), None),
            (Some("\"3\""), Some(vec![3])),
            (Some("3, W/\"4\""), Some(vec![3, 4])),
            (Some("\"x\""), Some(vec![])),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(IF_MATCH, header.parse().unwrap());
            }
            assert_eq!(precondition(&headers), Precondition(versions), "{header:?}");
        }
    }
}
