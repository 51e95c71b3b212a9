//! Takes the part that a path names out of fetched data.

use serde_json::Value;

const NOTHING: &str = "nothing is there";

/// Follows a path in dot notation, JSONPath (`$`) or JSON Pointer (`/`); the error says why it leads nowhere.
pub(super) fn select(data: &Value, path: &str) -> Result<Value, String> {
    match path.as_bytes().first() {
        Some(b'$') => json_path(data, path),
        Some(b'/') => data.pointer(path).cloned().ok_or_else(|| NOTHING.to_owned()),
        _ => dotted(data, path).cloned().ok_or_else(|| NOTHING.to_owned()),
    }
}

/// Prefers the longest key at each step, because a key may hold dots itself.
fn dotted<'a>(data: &'a Value, path: &str) -> Option<&'a Value> {
    member(data, path).or_else(|| {
        path.rmatch_indices('.').find_map(|(dot, _)| {
            let (head, rest) = (&path[..dot], &path[dot + 1..]);
            dotted(member(data, head)?, rest)
        })
    })
}

fn member<'a>(data: &'a Value, name: &str) -> Option<&'a Value> {
    match data {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(index(name)?),
        _ => None,
    }
}

fn index(name: &str) -> Option<usize> {
    name.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.parse().ok())?
}

#[derive(Debug, PartialEq, Eq)]
enum PathStep<'a> {
    Name(&'a str),
    Index(usize),
    All,
}

impl PathStep<'_> {
    fn take<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Self::Name(name), Value::Object(map)) => map.get(*name).into_iter().collect(),
            (Self::Index(at), Value::Array(items)) => items.get(*at).into_iter().collect(),
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(map)) => map.values().collect(),
            _ => Vec::new(),
        }
    }
}

/// A path with `[*]` gives the list of all matches, any other its one match.
fn json_path(data: &Value, path: &str) -> Result<Value, String> {
    let steps = steps(path)?;
    let matches = steps.iter().fold(vec![data], |found, step| found.into_iter().flat_map(|value| step.take(value)).collect());
    match matches.as_slice() {
        [] => Err(NOTHING.to_owned()),
        [one] if !steps.contains(&PathStep::All) => Ok((*one).clone()),
        many => Ok(many.iter().copied().cloned().collect()),
    }
}

fn steps(path: &str) -> Result<Vec<PathStep<'_>>, String> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = step(rest).ok_or_else(|| format!("`{rest}` is not supported; use `.name`, `['name']`, `[0]` and `[*]`"))?;
        steps.push(step);
        rest = after;
    }
    Ok(steps)
}

fn step(rest: &str) -> Option<(PathStep<'_>, &str)> {
    if let Some(rest) = rest.strip_prefix('.') {
        let (name, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
        let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        return plain.then_some((PathStep::Name(name), after));
    }
    if let Some(rest) = rest.strip_prefix("['") {
        return rest.split_once("']").map(|(name, after)| (PathStep::Name(name), after));
    }
    match rest.strip_prefix('[')?.split_once(']')? {
        ("*", after) => Some((PathStep::All, after)),
        (number, after) => Some((PathStep::Index(index(number)?), after)),
    }
}
