//! Reads a part of a configuration, as large as the reader can use.

use serde::Serialize;
use serde_json::{Map, Value};

use super::parse::check_target;
use super::target::{children, find, is_keyed, short, shown};
use super::{ChangeProblem, Segment};

const ROOTS: [&str; 3] = ["parameters", "uri", "flags"];
const MAX_CHILDREN: usize = 200;

/// A part of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    pub value: Value,
    /// The length of the value as compact JSON.
    pub bytes: usize,
}

/// What a part that is too large holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Child {
    /// A field, the key of an entry, or `#3` for an entry without one.
    pub name: String,
    pub bytes: usize,
}

/// Why a part cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("`{0}` cannot be read. Begin the path with one of: {roots}.", roots = ROOTS.join(", "))]
    Root(String),
    #[error(transparent)]
    Path(#[from] ChangeProblem),
    #[error("{place} has {bytes} bytes, more than the {max_bytes} asked for. {}", advice(children, list.as_deref()))]
    TooLarge {
        place: String,
        bytes: usize,
        max_bytes: usize,
        children: Vec<Child>,
        /// The name of the list, when the part is one whose entries have keys.
        list: Option<String>,
    },
}

impl ReadError {
    /// A name for the failure that stays the same across releases.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Root(_) => "path_not_readable",
            Self::Path(fault) => match fault.code() {
                "invalid_operation" => "invalid_path",
                code => code,
            },
            Self::TooLarge { .. } => "too_large",
        }
    }
}

fn advice(children: &[Child], list: Option<&str>) -> String {
    if children.is_empty() {
        return "Raise `max_bytes`.".to_owned();
    }
    let how = list.map_or_else(
        || "append a field to the path".to_owned(),
        |list| format!("end the path with {{\"list\": \"{list}\", \"key\": ...}} in place of \"{list}\""),
    );
    let named: Vec<String> = children.iter().take(20).map(|child| format!("`{}` ({})", short(&child.name), child.bytes)).collect();
    let more = if children.len() > named.len() { ", ..." } else { "" };
    format!("Read one of its children ({how}) or raise `max_bytes`: {}{more}.", named.join(", "))
}

/// The part that a path names; an empty path names all that can be read.
pub fn read(data: &Value, path: &[Segment], max_bytes: usize) -> Result<Read, ReadError> {
    let value = match path.first() {
        None => readable(data),
        Some(Segment::Field(root)) if ROOTS.contains(&root.as_str()) => {
            check_target(path)?;
            find(data, path)?.clone()
        }
        Some(other) => return Err(ReadError::Root(shown(std::slice::from_ref(other)))),
    };
    let bytes = size(&value);
    if bytes <= max_bytes { Ok(Read { value, bytes }) } else { Err(too_large(&value, path, bytes, max_bytes)) }
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

fn readable(data: &Value) -> Value {
    let fields = ROOTS.into_iter().filter_map(|root| Some((root.to_owned(), data.get(root)?.clone())));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn too_large(value: &Value, path: &[Segment], bytes: usize, max_bytes: usize) -> ReadError {
    let list = match path.last() {
        Some(Segment::Field(name)) if value.is_array() && is_keyed(name) => Some(name.clone()),
        _ => None,
    };
    let children = children(value, list.as_deref()).into_iter().take(MAX_CHILDREN);
    let children = children.map(|(name, child)| Child { name, bytes: size(child) }).collect();
    let place = if path.is_empty() { "The configuration".to_owned() } else { format!("`{}`", shown(path)) };
    ReadError::TooLarge { place, bytes, max_bytes, children, list }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn data() -> Value {
        json!({
            "uri": "agenta:agent:v0", "url": "https://internal", "headers": {"x": "secret"},
            "parameters": {"agent": {
                "text": "t".repeat(100),
                "tools": ["read", {"name": "sum", "script": "s".repeat(50)}, {"@ag.embed": {}}],
                "names": [1_111_111_111, 2_222_222_222_u32],
            }},
        })
    }

    fn path(path: Value) -> Vec<Segment> {
        serde_json::from_value(path).unwrap()
    }

    #[test]
    fn parts_are_read_with_their_size() {
        for (part, expected) in [
            (json!(["uri"]), json!("agenta:agent:v0")),
            (json!(["parameters", "agent", "names"]), json!([1_111_111_111, 2_222_222_222_u32])),
            (json!(["parameters", "agent", {"list": "tools", "key": "read"}]), json!("read")),
            (json!(["parameters", "agent", {"list": "tools", "key": "sum"}, "name"]), json!("sum")),
            (json!([]), json!({"parameters": data()["parameters"], "uri": "agenta:agent:v0"})),
        ] {
            let bytes = expected.to_string().len();
            assert_eq!(read(&data(), &path(part), 1024), Ok(Read { value: expected, bytes }));
        }
    }

    #[test]
    fn the_rest_is_refused() {
        for (part, code) in [
            (json!(["url"]), "path_not_readable"),
            (json!(["headers", "x"]), "path_not_readable"),
            (json!([{"list": "tools", "key": "read"}]), "path_not_readable"),
            (json!(["flags"]), "target_not_found"),
            (json!(["uri", "x"]), "target_not_object"),
            (json!(["parameters", "agent", {"list": "tools", "key": "x"}]), "target_not_found"),
            (json!(["parameters", "agent", {"list": "names", "key": "x"}]), "invalid_path"),
            (json!(["parameters", ""]), "invalid_path"),
            (json!(vec!["parameters"; 13]), "limit_exceeded"),
        ] {
            assert_eq!(read(&data(), &path(part.clone()), 1024).unwrap_err().code(), code, "{part}");
        }
    }

    #[test]
    fn what_is_too_large_names_its_children() {
        let refused = |part: Value| match read(&data(), &path(part), 20).unwrap_err() {
            error @ ReadError::TooLarge { .. } => (error.to_string(), serde_json::to_value(children_of(error)).unwrap()),
            other => panic!("{other}"),
        };
        let children_of_tools = json!([{"name": "read", "bytes": 6}, {"name": "sum", "bytes": 76}, {"name": "#2", "bytes": 16}]);
        let (message, children) = refused(json!(["parameters", "agent", "tools"]));
        assert_eq!(children, children_of_tools);
        assert!(message.contains(r#"end the path with {"list": "tools", "key": ...}"#), "{message}");
        let (message, children) = refused(json!([]));
        assert_eq!(children[0]["name"], "parameters");
        assert!(message.starts_with("The configuration has ") && message.contains("append a field"), "{message}");
        for leaf in ["text", "names"] {
            let (message, children) = refused(json!(["parameters", "agent", leaf]));
            assert_eq!((children, message.ends_with("Raise `max_bytes`.")), (json!([]), true));
        }
    }

    fn children_of(error: ReadError) -> Vec<Child> {
        match error {
            ReadError::TooLarge { children, .. } => children,
            _ => Vec::new(),
        }
    }
}
