//! JSONPath (RFC 9535), without the few forms whose cost explodes.

use serde_json::Value;
use serde_json_path::JsonPath;

const MAX_LENGTH: usize = 512;

/// How often a sign may stand in a path outside quotes, and the reason it is refused. Every one of these multiplies the work: a list of
/// selectors or a `..` with each further one, a `$` inside a filter with each value that is tested.
const LIMITS: &[(&str, usize, &str)] = &[
    ("..", 2, "more than two `..`"),
    (",", 4, "more than four `,`"),
    ("?", 1, "more than one filter"),
    ("(", 4, "more than four `(`"),
    ("$", 1, "`$` inside a filter is not supported"),
];

/// A JSONPath that has been read.
#[derive(Debug)]
pub(super) struct Path {
    query: JsonPath,
    source: String,
}

impl Path {
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        if source.len() > MAX_LENGTH {
            return Err(format!("longer than {MAX_LENGTH} characters"));
        }
        let unquoted = unquoted(source);
        if let Some((_, _, reason)) = LIMITS.iter().find(|(sign, limit, _)| unquoted.matches(sign).count() > *limit) {
            return Err((*reason).to_owned());
        }
        let query = JsonPath::parse(source).map_err(|error| format!("{} at character {}", error.message(), error.position() + 1))?;
        Ok(Self { query, source: source.to_owned() })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn select<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.query.query(value).all()
    }
}

/// The path without its quoted names.
fn unquoted(path: &str) -> String {
    let mut open: Option<char> = None;
    let mut escaped = false;
    path.chars()
        .filter(|&sign| {
            let outside = open.is_none();
            match open {
                Some(_) if escaped => escaped = false,
                Some(_) if sign == '\\' => escaped = true,
                Some(quote) if sign == quote => open = None,
                None if sign == '\'' || sign == '"' => open = Some(sign),
                _ => {}
            }
            outside
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names_do_not_count() {
        assert_eq!(unquoted(r#"$['a..,?$\'('].b["\\"][1]"#), "$['].b[\"][1]");
        assert!(Path::parse("$['..,,,,,???(((((((']['$ref']").is_ok());
    }

    #[test]
    fn costly_paths_are_refused() {
        let long = format!("${}", ".a".repeat(300));
        for (path, reason) in [
            ("$..*..*..*", "more than two `..`"),
            ("$[0,0][0,0][0,0][0,0][0,0]", "more than four `,`"),
            ("$[?@[?@.a]]", "more than one filter"),
            ("$..[?$..a == @]", "`$` inside a filter is not supported"),
            ("$[?((((((@.a))))))]", "more than four `(`"),
            (long.as_str(), "longer than 512 characters"),
        ] {
            assert_eq!(Path::parse(path).unwrap_err(), reason, "{path}");
        }
    }
}
