//! Ways through a configuration: by fields, and by the keys of list entries.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ChangeProblem;
use super::error::Nearby;

/// The lists whose entries have keys.
const KEYED: [&str; 4] = ["tools", "mcps", "skills", "files"];

/// No name is repeated at more length than this in a message.
const SHORT: usize = 80;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "each segment must be a field name or {\"list\": \"...\", \"key\": \"...\"}")]
pub enum Segment {
    Field(String),
    Entry(Entry),
}

/// An entry of the list that the current object holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub list: String,
    pub key: String,
}

impl Segment {
    pub(super) fn is_blank(&self) -> bool {
        match self {
            Self::Field(name) => name.is_empty(),
            Self::Entry(entry) => entry.list.is_empty() || entry.key.is_empty(),
        }
    }
}

pub(super) fn is_keyed(list: &str) -> bool {
    KEYED.contains(&list)
}

pub(super) fn keyed_lists() -> String {
    KEYED.join(", ")
}

/// The path as messages show it: `parameters.agent.tools[search].name`.
pub(super) fn shown(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        let dot = if text.is_empty() { "" } else { "." };
        let _ = match segment {
            Segment::Field(name) => write!(text, "{dot}{}", short(name)),
            Segment::Entry(Entry { list, key }) => write!(text, "{dot}{}[{}]", short(list), short(key)),
        };
    }
    text
}

pub(super) fn short(name: &str) -> String {
    match name.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// What a value is, to a reader.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The key of an entry, if the list has keys and the entry has one.
pub fn key_of(list: &str, item: &Value) -> Option<String> {
    match list {
        "tools" => tool_name(item),
        "mcps" | "skills" => text(item, "name").map(str::to_owned),
        "files" => text(item, "path").map(str::to_owned),
        _ => None,
    }
}

/// The name under which a tool is known: its own, or what its kind falls back on.
fn tool_name(tool: &Value) -> Option<String> {
    if let Value::String(name) = tool {
        return Some(name.clone()).filter(|name| !name.is_empty());
    }
    let own = text(tool, "name").map(str::to_owned);
    own.or_else(|| match text(tool, "type") {
        Some("reference") => text(tool, "slug").map(str::to_owned),
        Some("platform") => text(tool, "op").map(str::to_owned),
        // It has no name: there is one for each integration.
        Some("gateway_connection") => {
            let connection = tool.get("connection")?;
            Some(format!("gateway_connection:{}:{}", text(connection, "provider").unwrap_or("composio"), text(connection, "integration")?))
        }
        Some("gateway" | "composio") => Some(format!("{}__{}", text(tool, "integration")?, text(tool, "action")?)),
        _ => text(tool.get("function")?, "name").map(str::to_owned),
    })
}

/// A field that holds a text which is not empty.
pub fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str().filter(|text| !text.is_empty())
}

/// What a value holds by name; the entries of a list have names only when they have keys.
pub(super) fn children<'a>(value: &'a Value, list: Option<&str>) -> Vec<(String, &'a Value)> {
    match (value, list) {
        (Value::Object(fields), _) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        (Value::Array(items), Some(list)) => {
            let name = |index, item| key_of(list, item).unwrap_or_else(|| format!("#{index}"));
            items.iter().enumerate().map(|(index, item)| (name(index, item), item)).collect()
        }
        _ => Vec::new(),
    }
}

/// Follows a path that must be there.
pub(super) fn find<'a>(data: &'a Value, path: &[Segment]) -> Result<&'a Value, ChangeProblem> {
    let mut at = data;
    for (depth, segment) in path.iter().enumerate() {
        let fields = at.as_object().ok_or_else(|| not_object(&path[..depth], at))?;
        at = match segment {
            Segment::Field(name) => fields.get(name).ok_or_else(|| missing(&path[..=depth], fields))?,
            Segment::Entry(Entry { list, key }) => {
                let items = items(fields, list, &path[..=depth])?;
                &items[position(items, list, key, &path[..=depth])?]
            }
        };
    }
    Ok(at)
}

/// Follows a path that must be there, to change what it leads to.
pub(super) fn find_mut<'a>(data: &'a mut Value, path: &[Segment]) -> Result<&'a mut Value, ChangeProblem> {
    walk(data, path, false)
}

/// Follows a path and makes the objects that are missing on the way.
pub(super) fn make<'a>(data: &'a mut Value, path: &[Segment]) -> Result<&'a mut Value, ChangeProblem> {
    walk(data, path, true)
}

fn walk<'a>(data: &'a mut Value, path: &[Segment], create: bool) -> Result<&'a mut Value, ChangeProblem> {
    let mut at = data;
    for (depth, segment) in path.iter().enumerate() {
        let fields = fields_mut(at, &path[..depth], create)?;
        at = match segment {
            Segment::Field(name) if create => fields.entry(name).or_insert(Value::Null),
            Segment::Field(name) if fields.contains_key(name) => &mut fields[name],
            Segment::Field(_) => return Err(missing(&path[..=depth], fields)),
            Segment::Entry(Entry { list, key }) => {
                let at = position(items(fields, list, &path[..=depth])?, list, key, &path[..=depth])?;
                &mut fields[list][at]
            }
        };
    }
    Ok(at)
}

/// The fields of an object. Null counts as nothing, so an object may take its place.
pub(super) fn fields_mut<'a>(value: &'a mut Value, path: &[Segment], create: bool) -> Result<&'a mut Map<String, Value>, ChangeProblem> {
    if create && value.is_null() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(not_object(path, other)),
    }
}

/// The entries of a list that must be there; `path` ends with the entry.
pub(super) fn items<'a>(fields: &'a Map<String, Value>, list: &str, path: &[Segment]) -> Result<&'a [Value], ChangeProblem> {
    match fields.get(list) {
        None | Some(Value::Null) => Err(ChangeProblem::NotFound { place: shown(path), nearby: Nearby::new([]) }),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(not_list(&list_path(path, list), other)),
    }
}

/// The only entry with the key.
pub(super) fn position(items: &[Value], list: &str, key: &str, path: &[Segment]) -> Result<usize, ChangeProblem> {
    let fits: Vec<usize> = (0..items.len()).filter(|&index| key_of(list, &items[index]).as_deref() == Some(key)).collect();
    match fits[..] {
        [only] => Ok(only),
        [] => {
            let names = items.iter().filter_map(|item| key_of(list, item));
            Err(ChangeProblem::NotFound { place: shown(path), nearby: Nearby::new(names) })
        }
        _ => Err(ChangeProblem::Ambiguous { place: shown(path), count: fits.len() }),
    }
}

fn list_path(path: &[Segment], list: &str) -> Vec<Segment> {
    let parent = path.split_last().map_or(path, |(_, parent)| parent);
    [parent, &[Segment::Field(list.to_owned())]].concat()
}

pub(super) fn missing(path: &[Segment], fields: &Map<String, Value>) -> ChangeProblem {
    ChangeProblem::NotFound { place: shown(path), nearby: Nearby::new(fields.keys().cloned()) }
}

pub(super) fn not_list(path: &[Segment], found: &Value) -> ChangeProblem {
    ChangeProblem::NotList { place: shown(path), found: kind(found) }
}

fn not_object(path: &[Segment], found: &Value) -> ChangeProblem {
    let place = if path.is_empty() { "the configuration".to_owned() } else { shown(path) };
    ChangeProblem::NotObject { place, found: kind(found) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_entry_has_its_key() {
        for (list, item, key) in [
            ("tools", json!("read"), Some("read")),
            ("tools", json!({"type": "builtin", "name": "read"}), Some("read")),
            ("tools", json!({"type": "code", "name": "sum", "script": "1"}), Some("sum")),
            ("tools", json!({"type": "client", "name": "pick"}), Some("pick")),
            ("tools", json!({"type": "reference", "slug": "triage"}), Some("triage")),
            ("tools", json!({"type": "reference", "slug": "triage", "name": "sort"}), Some("sort")),
            ("tools", json!({"type": "platform", "op": "read_config"}), Some("read_config")),
            ("tools", json!({"type": "gateway", "integration": "github", "action": "GET", "connection": "c"}), Some("github__GET")),
            ("tools", json!({"type": "composio", "integration": "github", "action": "GET", "name": null}), Some("github__GET")),
            ("tools", json!({"type": "gateway", "integration": "github", "action": "GET", "name": "get"}), Some("get")),
            ("tools", json!({"type": "function", "function": {"name": "f"}}), Some("f")),
            ("tools", json!({"name": "legacy"}), Some("legacy")),
            ("tools", json!({"@ag.embed": {}}), None),
            ("tools", json!(""), None),
            ("tools", json!(null), None),
            ("mcps", json!({"name": "linear"}), Some("linear")),
            ("skills", json!({"name": "write"}), Some("write")),
            ("skills", json!("write"), None),
            ("files", json!({"path": "a/b.md", "name": "b"}), Some("a/b.md")),
            ("names", json!({"name": "x"}), None),
        ] {
            assert_eq!(key_of(list, &item).as_deref(), key, "{list} {item}");
        }
    }

    #[test]
    fn segments_read_back() {
        let written = json!(["parameters", {"list": "tools", "key": "a.b"}, "x"]);
        let path: Vec<Segment> = serde_json::from_value(written.clone()).unwrap();
        assert_eq!((shown(&path).as_str(), serde_json::to_value(&path).unwrap()), ("parameters.tools[a.b].x", written));
        for bad in [json!(1), json!({"list": "tools"}), json!({"list": "tools", "key": "a", "more": 1}), json!(null)] {
            assert!(serde_json::from_value::<Segment>(bad).unwrap_err().to_string().contains("field name"));
        }
    }
}
