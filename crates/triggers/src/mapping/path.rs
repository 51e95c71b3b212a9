//! JSONPath (RFC 9535), without the few forms whose cost explodes. A path is walked here, segment by segment within a budget; the library
//! reads it and tells which children of one value a segment selects.

use kernel::{Budget, Exceeded};
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
    segments: Vec<Segment>,
    source: String,
}

/// One part of a path.
#[derive(Debug)]
struct Segment {
    /// Whether it is applied to everything below, too.
    descends: bool,
    selects: Selects,
}

#[derive(Debug)]
enum Selects {
    Name(String),
    Children,
    /// Indices, slices, several names.
    Some(JsonPath),
    /// Those that pass a test. A test looks at a child so many times, and each `..` in it at everything below for everything below.
    Tested {
        filter: JsonPath,
        looks: u64,
        descents: u32,
    },
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
        read(source)?;
        let mut segments = Vec::new();
        let mut rest = source.trim_start_matches('$').trim_start();
        while !rest.is_empty() {
            let (segment, after) = Segment::split(rest)?;
            segments.push(segment);
            rest = after.trim_start();
        }
        Ok(Self { segments, source: source.to_owned() })
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

    /// About how often it looks at a value.
    pub(crate) fn looks(&self) -> usize {
        10_usize.saturating_pow(u32::try_from(unquoted(&self.source).matches("..").count()).unwrap_or(u32::MAX))
    }

    pub(crate) fn select<'a>(&self, value: &'a Value, budget: &Budget) -> Result<Vec<&'a Value>, Exceeded> {
        let mut nodes = vec![value];
        for segment in &self.segments {
            let mut selected = Vec::new();
            for node in nodes {
                segment.select(node, &mut selected, budget)?;
            }
            nodes = selected;
        }
        Ok(nodes)
    }
}

fn read(source: &str) -> Result<JsonPath, String> {
    JsonPath::parse(source).map_err(|error| format!("{} at character {}", error.message(), error.position() + 1))
}

impl Segment {
    /// The first segment of a rest of a path that was read as a whole.
    fn split(path: &str) -> Result<(Self, &str), String> {
        let descends = path.starts_with("..");
        let path = path.strip_prefix("..").or_else(|| path.strip_prefix('.')).unwrap_or(path);
        let end = if path.starts_with('[') {
            closing(path)
        } else {
            path.find(|sign: char| sign == '.' || sign == '[' || sign.is_ascii_whitespace()).unwrap_or(path.len())
        };
        let (own, after) = path.split_at(end);
        let selects = match own.strip_prefix('[') {
            None if own == "*" => Selects::Children,
            None => Selects::Name(own.to_owned()),
            Some(_) => {
                let (selector, bare) = (read(&format!("${own}"))?, unquoted(own));
                let count = |sign| bare.matches(sign).count();
                if bare.contains('?') {
                    let (looks, descents) = (count("@") as u64, u32::try_from(count("..")).unwrap_or(u32::MAX));
                    Selects::Tested { filter: selector, looks, descents }
                } else {
                    Selects::Some(selector)
                }
            }
        };
        Ok((Self { descends, selects }, after))
    }

    /// What it selects of a value and, where it descends, of everything below; a value comes before what is in it.
    fn select<'a>(&self, value: &'a Value, into: &mut Vec<&'a Value>, budget: &Budget) -> Result<(), Exceeded> {
        self.select_children(value, into, budget)?;
        if self.descends {
            for child in children(value) {
                self.select(child, into, budget)?;
            }
        }
        Ok(())
    }

    fn select_children<'a>(&self, value: &'a Value, into: &mut Vec<&'a Value>, budget: &Budget) -> Result<(), Exceeded> {
        budget.step(1)?;
        match &self.selects {
            Selects::Name(name) => into.extend(value.as_object().and_then(|fields| fields.get(name))),
            Selects::Children => {
                let before = into.len();
                into.extend(children(value));
                budget.step((into.len() - before) as u64)?;
            }
            Selects::Some(selector) => {
                budget.step(children(value).count() as u64)?;
                into.extend(selector.query(value).all());
            }
            Selects::Tested { filter, looks, descents } => {
                for child in children(value) {
                    let size = count(child, budget)?;
                    budget.step(size.saturating_pow(*descents).saturating_mul(*looks))?;
                }
                into.extend(filter.query(value).all());
            }
        }
        Ok(())
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// How many values there are in one, itself included.
fn count(value: &Value, budget: &Budget) -> Result<u64, Exceeded> {
    budget.step(1)?;
    children(value).try_fold(1, |counted, child| Ok(counted + count(child, budget)?))
}

/// The end of the bracket that a path begins with.
fn closing(path: &str) -> usize {
    let mut depth = 0_usize;
    for (at, sign) in bare(path) {
        match sign {
            '[' => depth += 1,
            ']' if depth == 1 => return at + 1,
            ']' => depth -= 1,
            _ => {}
        }
    }
    path.len()
}

/// The path without its quoted names.
fn unquoted(path: &str) -> String {
    bare(path).map(|(_, sign)| sign).collect()
}

/// The signs of a path that stand outside quotes, and where; each quote that opens is among them.
fn bare(path: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut open: Option<char> = None;
    let mut escaped = false;
    path.char_indices().filter(move |&(_, sign)| {
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
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn paths_select_what_the_library_selects() {
        let value = json!({"a": [{"b": 1, "c": [1, 2, {"b": 3}]}, {"b": "x.y"}, [4, 5]], "b": {"a.b": {"]": 2, "b": [0]}}, "d e": null});
        for path in [
            "$",
            "$.a",
            "$..b",
            "$..*",
            "$.*",
            "$.a[*]",
            "$.a[0].b",
            "$.a[-1][0:1]",
            "$..[0]",
            "$..['b','a']",
            "$['b']['a.b'][']']",
            "$..[?@.b]",
            "$.a[?@.b==1].c",
            "$..*..[?@==2]",
            "$ .a [0]..b",
            "$['d e']",
            "$.b[\"a.b\"]..*",
            "$..[?@..b]",
            "$..c[?@ > 1]",
            "$.a[?@['b'] == 'x.y']",
            "$..[?@.b == ']']",
            "$.a[?(@.b == 1 || @[0] == 4)]",
        ] {
            let (own, library) = (Path::parse(path).unwrap(), JsonPath::parse(path).unwrap());
            assert_eq!(own.select(&value, &Budget::default()).unwrap(), library.query(&value).all(), "{path}");
        }
    }

    #[test]
    fn a_walk_ends_with_its_budget() {
        let many = json!({"list": vec![json!({"a": [1, 2]}); 20_000]});
        let budget = Budget::default();
        let selected = |path: &str| Path::parse(path).unwrap().select(&many, &budget).map(|found| found.len());
        assert_eq!(selected("$..a[0]"), Ok(20_000));
        assert!(selected("$..*..[?@.a==1]").is_ok(), "once is not too much");
        let ended = (0..16).find_map(|_| selected("$..*..[?@.a==1]").err());
        assert!(matches!(ended, Some(Exceeded::Steps(_))), "{ended:?}");
        let deep = (0..100).fold(json!(vec![1; 1000]), |inner, _| json!([inner]));
        let squared = Path::parse("$..[?@..* == @..*]").map(|path| path.select(&deep, &Budget::default()).map(|found| found.len()));
        assert!(squared.is_err() || matches!(squared, Ok(Err(Exceeded::Steps(_)))), "{squared:?}");
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
