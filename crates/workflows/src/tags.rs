//! Tags as both databases can search them: a digest of each value with its path, in order, so that one pattern finds rows that hold them all.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kernel::hex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::WorkflowError;

const MAX_VALUES: usize = 128;
/// Bytes of a digest that are kept.
const KEPT: usize = 8;

/// The digests of a row's tags, each between `<` and `>`.
pub(crate) fn digests(tags: &Value) -> String {
    let mut found = BTreeSet::new();
    collect(tags, &mut String::new(), true, &mut found);
    found.into_iter().fold(String::new(), |mut text, digest| {
        let _ = write!(text, "<{digest}>");
        text
    })
}

/// The same for tags that somebody gives to a row.
pub(crate) fn checked(tags: Option<&Value>) -> Result<Option<String>, WorkflowError> {
    let Some(tags) = tags else { return Ok(None) };
    let digests = digests(tags);
    if digests.len() > MAX_VALUES * (2 * KEPT + 2) {
        return Err(WorkflowError::Invalid(format!("`tags` hold more than {MAX_VALUES} values")));
    }
    Ok(Some(digests))
}

/// A pattern for `like` that fits the digests of every row whose tags contain these.
pub(crate) fn pattern(tags: Option<&Value>) -> Result<Option<String>, WorkflowError> {
    let Some(tags) = tags.filter(|tags| !is_empty(tags)) else { return Ok(None) };
    if in_lists(tags, false) {
        return Err(WorkflowError::Invalid("a filter by `tags` may hold lists of texts and numbers, not of objects".to_owned()));
    }
    let mut wanted = BTreeSet::new();
    collect(tags, &mut String::new(), false, &mut wanted);
    if wanted.len() > MAX_VALUES {
        return Err(WorkflowError::Invalid(format!("`tags` hold more than {MAX_VALUES} values")));
    }
    let pattern = wanted.into_iter().fold("%".to_owned(), |mut pattern, digest| {
        let _ = write!(pattern, "<{digest}>%");
        pattern
    });
    Ok(Some(pattern))
}

fn is_empty(tags: &Value) -> bool {
    match tags {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Whether members of one object in a list would be looked for in several.
fn in_lists(tags: &Value, is_inside: bool) -> bool {
    match tags {
        Value::Object(members) => is_inside || members.values().any(|member| in_lists(member, false)),
        Value::Array(items) => items.iter().any(|item| in_lists(item, true)),
        _ => false,
    }
}

/// A row is found by every value in it and by every object and list; a filter looks for the innermost.
fn collect(value: &Value, path: &mut String, is_row: bool, found: &mut BTreeSet<String>) {
    let here = path.len();
    match value {
        Value::Object(members) => {
            if is_row || members.is_empty() {
                found.insert(digest(path, "{}"));
            }
            for (name, member) in members {
                let _ = write!(path, "/{}", Value::from(name.as_str()));
                collect(member, path, is_row, found);
                path.truncate(here);
            }
        }
        Value::Array(items) => {
            if is_row || items.is_empty() {
                found.insert(digest(path, "[]"));
            }
            for item in items {
                path.push_str("/-");
                collect(item, path, is_row, found);
                path.truncate(here);
            }
        }
        scalar => {
            found.insert(digest(path, &scalar.to_string()));
        }
    }
}

fn digest(path: &str, value: &str) -> String {
    hex::encode(&Sha256::new().chain_update(path).chain_update("=").chain_update(value).finalize()[..KEPT])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As `like` fits, with nothing but `%`.
    fn fits(pattern: &str, mut text: &str) -> bool {
        pattern.split('%').filter(|part| !part.is_empty()).all(|part| match text.find(part) {
            Some(at) => {
                text = &text[at + part.len()..];
                true
            }
            None => false,
        })
    }

    #[test]
    fn tags_are_found_by_what_they_contain() {
        let row = digests(&json!({"tag1": "a", "n": 1, "deep": {"x": [1, 2], "y": {}}, "list": ["p", "q"]}));
        for (asked, expected) in [
            (json!({"tag1": "a"}), true),
            (json!({"tag1": "a", "n": 1, "deep": {"x": [2]}}), true),
            (json!({"list": ["q", "p"]}), true),
            (json!({"deep": {"y": {}}}), true),
            (json!({"deep": {}}), true),
            (json!({"list": []}), true),
            (json!({"tag1": "b"}), false),
            (json!({"tag1": "A"}), false),
            (json!({"n": "1"}), false),
            (json!({"x": [1]}), false),
            (json!({"list": ["p", "r"]}), false),
            (json!({"tag1": {}}), false),
        ] {
            assert_eq!(fits(&pattern(Some(&asked)).unwrap().unwrap(), &row), expected, "{asked}");
        }
        assert_eq!(pattern(Some(&json!({}))).unwrap(), None);
        assert!(pattern(Some(&json!({"a": [{"b": 1}]}))).is_err());
        let many: Vec<usize> = (0..200).collect();
        assert!(checked(Some(&json!(many))).is_err() && pattern(Some(&json!(many))).is_err());
    }
}
