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
pub(crate) struct Path {
    query: JsonPath,
    source: String,
}

impl Path {
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
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

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// The names that it begins with, as far as it goes by names alone.
    pub(crate) fn names(&self) -> Vec<String> {
        let (mut names, mut rest) = (Vec::new(), self.source.trim_start_matches('$').trim_start());
        loop {
            let (name, after) = if let Some(quoted) = rest.strip_prefix("['").or_else(|| rest.strip_prefix("[\"")) {
                let Some(end) = quoted.find(['\'', '"', '\\']) else { return names };
                let Some(after) = quoted[end + 1..].strip_prefix(']') else { return names };
                (&quoted[..end], after)
            } else if let Some(name) = rest.strip_prefix('.') {
                name.split_at(name.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(name.len()))
            } else {
                return names;
            };
            if name.is_empty() {
                return names;
            }
            names.push(name.to_owned());
            rest = after;
        }
    }

    pub(crate) fn select<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
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
    fn a_path_begins_with_names() {
        for (path, names) in [
            ("$", &[][..]),
            ("$.event.attributes", &["event", "attributes"]),
            ("$['event'][\"a b\"].c", &["event", "a b", "c"]),
            ("$.event..x", &["event"]),
            ("$.event[0].x", &["event"]),
            ("$.event[?@.a].b", &["event"]),
            ("$.event['a','b']", &["event"]),
            ("$.*", &[]),
        ] {
            assert_eq!(Path::parse(path).unwrap().names(), names, "{path}");
        }
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
