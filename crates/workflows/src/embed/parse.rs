//! Reads the three ways of writing an embed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;

use serde_json::{Map, Value};

use super::{EmbedRef, Key, Level, Reference};
use crate::Family;

/// The member that makes an object an embed.
pub(super) const MARKER: &str = "@ag.embed";
const REFERENCES: &str = "@ag.references";
const SELECTOR: &str = "@ag.selector";
const TOKEN_OPEN: &str = "@ag.embed[";
const SNIPPET_OPEN: &str = "@{{";
const SNIPPET_CLOSE: &str = "}}";
const SNIPPET_PATH: &str = "prompt.messages.0.content";

/// Whether anything in the value is written as an embed, well formed or not.
pub fn contains_embed(value: &Value) -> bool {
    match value {
        Value::String(text) => !tokens(text).is_empty(),
        Value::Array(items) => items.iter().any(contains_embed),
        Value::Object(map) => object_embed(map).is_some() || map.values().any(contains_embed),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// One embed: whose data, and which part of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Embed {
    pub(super) source: EmbedRef,
    pub(super) path: Option<String>,
}

impl fmt::Display for Embed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        self.path.as_ref().map_or(Ok(()), |path| write!(f, ", path={path}"))
    }
}

/// Why an embed cannot be read; the reader does not know its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MarkerProblem {
    Malformed(String),
    Mixed,
}

/// An embed written inside a string, and the bytes it takes up.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) range: Range<usize>,
    pub(super) embed: Result<Embed, MarkerProblem>,
}

/// The embed's description, when the object is an embed: an empty or other value under the marker is plain data.
pub(super) fn object_embed(map: &Map<String, Value>) -> Option<&Map<String, Value>> {
    map.get(MARKER)?.as_object().filter(|description| !description.is_empty())
}

/// Reads the description of an object embed.
pub(super) fn parse_object(description: &Map<String, Value>) -> Result<Embed, MarkerProblem> {
    let mut draft = Draft::default();
    for (part, value) in description {
        match part.as_str() {
            REFERENCES => {
                for (entity, fields) in members(REFERENCES, value)? {
                    for (field, value) in members(entity, fields)? {
                        draft.refer(entity, field, &scalar(field, value)?)?;
                    }
                }
            }
            SELECTOR => {
                for (field, value) in members(SELECTOR, value)? {
                    draft.select(field, &scalar(field, value)?)?;
                }
            }
            other => return Err(unknown(other)),
        }
    }
    draft.finish()
}

fn members<'a>(name: &str, value: &'a Value) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, MarkerProblem> {
    match value {
        Value::Object(map) => Ok(Some(map).into_iter().flatten()),
        Value::Null => Ok(None.into_iter().flatten()),
        _ => Err(MarkerProblem::Malformed(format!("`{name}` must be an object"))),
    }
}

fn scalar(name: &str, value: &Value) -> Result<String, MarkerProblem> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Ok(String::new()),
        _ => Err(MarkerProblem::Malformed(format!("`{name}` must be a string"))),
    }
}

/// Finds the embeds in a string, first to last; an opening without its close is plain text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    if !text.contains(TOKEN_OPEN) && !text.contains(SNIPPET_OPEN) {
        return found;
    }
    let closing = closing_brackets(text);
    let mut from = 0;
    while let Some(start) = text[from..].find('@').map(|at| from + at) {
        let token = bracket_token(text, start, &closing).or_else(|| snippet(text, start));
        from = token.as_ref().map_or(start + 1, |token| token.range.end);
        found.extend(token);
    }
    found
}

/// Pairs every bracket in one go, so that a text full of unclosed openings costs no more than any other.
fn closing_brackets(text: &str) -> HashMap<usize, usize> {
    let mut open = Vec::new();
    let mut pairs = HashMap::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => open.push(at),
            b']' => pairs.extend(open.pop().map(|start| (start, at))),
            _ => {}
        }
    }
    pairs
}

fn bracket_token(text: &str, start: usize, closing: &HashMap<usize, usize>) -> Option<Token> {
    if !text[start..].starts_with(TOKEN_OPEN) {
        return None;
    }
    let inside = start + TOKEN_OPEN.len();
    let close = *closing.get(&(inside - 1))?;
    let body = &text[inside..close];
    (!body.trim().is_empty()).then(|| Token { range: start..close + 1, embed: parse_token(body) })
}

fn parse_token(body: &str) -> Result<Embed, MarkerProblem> {
    let mut draft = Draft::default();
    for part in split(body, &[',']) {
        if let Some(items) = bracketed(part, REFERENCES) {
            for item in split(items, &[',']) {
                let (name, value) = pair(item, &['='])?;
                draft.refer_dotted(name, value)?;
            }
        } else if let Some(items) = bracketed(part, SELECTOR) {
            for item in split(items, &[',']) {
                let (name, value) = pair(item, &['='])?;
                draft.select(name, value)?;
            }
        } else {
            return Err(unknown(part));
        }
    }
    draft.finish()
}

fn bracketed<'a>(part: &'a str, name: &str) -> Option<&'a str> {
    part.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')
}

/// A snippet has a pair in it: `@{{name}}` is somebody's template variable after an at sign.
fn snippet(text: &str, start: usize) -> Option<Token> {
    let rest = text[start..].strip_prefix(SNIPPET_OPEN)?;
    let body = &rest[..rest.find(['{', '}'])?];
    if !rest[body.len()..].starts_with(SNIPPET_CLOSE) || !body.contains(['=', ':']) {
        return None;
    }
    let end = start + SNIPPET_OPEN.len() + body.len() + SNIPPET_CLOSE.len();
    Some(Token { range: start..end, embed: parse_snippet(body) })
}

fn parse_snippet(body: &str) -> Result<Embed, MarkerProblem> {
    let mut draft = Draft::default();
    for item in split(body, &[',', '&']) {
        match pair(item, &['=', ':'])? {
            (name @ ("key" | "path"), value) => draft.select(name, value)?,
            (name, value) => draft.refer_dotted(name, value)?,
        }
    }
    let mut embed = draft.finish()?;
    embed.path = Some(below_parameters(embed.path.as_deref().unwrap_or(SNIPPET_PATH)));
    if embed.source.family == Family::Environment && embed.source.key == Key::Own {
        embed.source.key = Key::Only;
    }
    Ok(embed)
}

fn below_parameters(path: &str) -> String {
    match path.strip_prefix('$') {
        Some(rest) => format!("$.parameters{rest}"),
        None if path.starts_with('/') => format!("/parameters{path}"),
        None => format!("parameters.{path}"),
    }
}

/// Splits at separators that stand outside brackets, so that a JSONPath may hold them; empty parts are dropped.
fn split<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let mut depth = 0_usize;
    text.split(|c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && separators.contains(&c)
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

fn pair<'a>(item: &'a str, signs: &[char]) -> Result<(&'a str, &'a str), MarkerProblem> {
    let (name, value) = item.split_once(signs).ok_or_else(|| MarkerProblem::Malformed(format!("`{item}` is not a name with a value")))?;
    Ok((name.trim(), value.trim()))
}

fn unknown(name: &str) -> MarkerProblem {
    MarkerProblem::Malformed(format!("`{name}` is not part of an embed"))
}

fn entity(name: &str) -> Option<(Family, Level)> {
    let (family, level) = Family::ALL.into_iter().find_map(|family| Some((family, name.strip_prefix(family.name())?)))?;
    let level = match level {
        "" | "_artifact" => Level::Artifact,
        "_variant" => Level::Variant,
        "_revision" => Level::Revision,
        _ => return None,
    };
    Some((family, level))
}

/// An embed while it is being read.
#[derive(Default)]
struct Draft {
    family: Option<Family>,
    refs: BTreeMap<Level, Reference>,
    key: Option<String>,
    path: Option<String>,
}

impl Draft {
    fn refer_dotted(&mut self, name: &str, value: &str) -> Result<(), MarkerProblem> {
        let (entity, field) = name.split_once('.').ok_or_else(|| unknown(name))?;
        self.refer(entity, field, value)
    }

    fn refer(&mut self, name: &str, field: &str, value: &str) -> Result<(), MarkerProblem> {
        let (family, level) = entity(name).ok_or_else(|| MarkerProblem::Malformed(format!("`{name}` is not an entity")))?;
        if *self.family.get_or_insert(family) != family {
            return Err(MarkerProblem::Mixed);
        }
        let mut reference = self.refs.remove(&level).unwrap_or_default();
        let slot = match field {
            "id" => &mut reference.id,
            "slug" => &mut reference.slug,
            "version" => &mut reference.version,
            other => return Err(MarkerProblem::Malformed(format!("`{name}` has no field `{other}`; use `id`, `slug` or `version`"))),
        };
        set_once(slot, field, value)?;
        if reference != Reference::default() {
            self.refs.insert(level, reference);
        }
        Ok(())
    }

    fn select(&mut self, field: &str, value: &str) -> Result<(), MarkerProblem> {
        match field {
            "key" => set_once(&mut self.key, field, value),
            "path" => set_once(&mut self.path, field, value),
            other => Err(MarkerProblem::Malformed(format!("a selector has no field `{other}`; use `key` or `path`"))),
        }
    }

    fn finish(self) -> Result<Embed, MarkerProblem> {
        let nothing = || MarkerProblem::Malformed(format!("`{REFERENCES}` names nothing"));
        let family = self.family.ok_or_else(nothing)?;
        let level = *self.refs.last_key_value().ok_or_else(nothing)?.0;
        let key = self.key.map_or(Key::Own, Key::Named);
        Ok(Embed { source: EmbedRef { family, level, refs: self.refs, key }, path: self.path })
    }
}

/// An empty value counts as not given.
fn set_once(slot: &mut Option<String>, name: &str, value: &str) -> Result<(), MarkerProblem> {
    match slot {
        _ if value.is_empty() => Ok(()),
        Some(other) if other != value => Err(MarkerProblem::Malformed(format!("`{name}` is given twice"))),
        _ => {
            *slot = Some(value.to_owned());
            Ok(())
        }
    }
}
