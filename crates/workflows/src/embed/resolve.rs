//! Puts embedded values in place of their embeds.
//!
//! The work is split in two: a [`Pass`] is a pure walk over the value with what has been fetched so far, and notes
//! what it misses; the loop around it fetches that and walks again, at most once per level of nesting.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Map, Value};

use super::parse::{self, Embed, MARKER, MarkerProblem};
use super::select::select;
use super::{EmbedError, EmbedLimits, EmbedRef, ErrorPolicy, Fetch, Resolved};

const FETCHES_AT_ONCE: usize = 8;

/// How far down an embed may lie, levels of data and of embeds together: the walk recurses, and callers choose the limits.
const MAX_NESTING: usize = 256;

/// The most bytes that are embedded in one value: an embed in an embed repeats what it holds.
const MAX_BYTES: usize = 4 << 20;

type Fetched = BTreeMap<EmbedRef, Result<Option<Value>, String>>;

/// Replaces every embed in the value, and every embed in what is embedded.
#[kernel::boxed]
pub async fn resolve(value: Value, fetcher: &dyn Fetch, limits: EmbedLimits, policy: ErrorPolicy) -> Result<Resolved, EmbedError> {
    refuse_root(&value)?;
    let mut fetched = Fetched::new();
    loop {
        let mut pass = Pass::new(&fetched, limits, policy);
        let mut resolved = value.clone();
        pass.walk(&mut resolved, Spot { place: EmbedSite::Root, nesting: 0, chain: None })?;
        if pass.missing.is_empty() {
            let Pass { references, errors, depth, .. } = pass;
            return Ok(Resolved { value: resolved, count: references.len(), depth, references, errors });
        }
        let missing = pass.missing;
        fetched.extend(fetch_all(fetcher, missing).await);
    }
}

fn refuse_root(value: &Value) -> Result<(), EmbedError> {
    let is_embed = match value {
        Value::Object(map) => parse::object_embed(map).is_some(),
        Value::String(text) => !parse::tokens(text).is_empty(),
        _ => false,
    };
    if is_embed { Err(EmbedError::Root) } else { Ok(()) }
}

async fn fetch_all(fetcher: &dyn Fetch, missing: BTreeSet<EmbedRef>) -> Fetched {
    let fetches = missing.into_iter().map(|embed| async move {
        let data = fetcher.fetch(&embed).await;
        (embed, data)
    });
    stream::iter(fetches).buffer_unordered(FETCHES_AT_ONCE).collect().await
}

/// A position in the resolved value; written as a JSON Pointer.
#[derive(Clone, Copy)]
enum EmbedSite<'a> {
    Root,
    Key(&'a EmbedSite<'a>, &'a str),
    Index(&'a EmbedSite<'a>, usize),
}

impl fmt::Display for EmbedSite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(parent, key) => write!(f, "{parent}/{}", key.replace('~', "~0").replace('/', "~1")),
            Self::Index(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

/// The embeds being expanded, innermost first.
struct Chain<'a> {
    embed: &'a Embed,
    depth: usize,
    outer: Option<&'a Chain<'a>>,
}

/// Where the walk is, and through which embeds it came there.
#[derive(Clone, Copy)]
struct Spot<'a> {
    place: EmbedSite<'a>,
    nesting: usize,
    chain: Option<&'a Chain<'a>>,
}

impl<'a> Spot<'a> {
    fn at(self, place: EmbedSite<'a>) -> Self {
        Self { place, nesting: self.nesting + 1, ..self }
    }

    fn inside(self, chain: &'a Chain<'a>) -> Self {
        Self { nesting: self.nesting + 1, chain: Some(chain), ..self }
    }

    fn depth(self) -> usize {
        self.chain.map_or(0, |chain| chain.depth)
    }

    fn is_inside(self, embed: &Embed) -> bool {
        std::iter::successors(self.chain, |chain| chain.outer).any(|chain| chain.embed == embed)
    }

    fn fault(self, fault: MarkerProblem) -> EmbedError {
        let place = self.place.to_string();
        match fault {
            MarkerProblem::Malformed(reason) => EmbedError::Malformed { place, reason },
            MarkerProblem::Mixed => EmbedError::Mixed { place },
        }
    }
}

/// What an embed came to; `None` until its data is fetched.
type Expansion = Result<Option<Value>, EmbedError>;

struct Pass<'f> {
    fetched: &'f Fetched,
    limits: EmbedLimits,
    policy: ErrorPolicy,
    missing: BTreeSet<EmbedRef>,
    /// How often something was missing.
    misses: usize,
    started: usize,
    bytes: usize,
    depth: usize,
    references: Vec<EmbedRef>,
    errors: Vec<EmbedError>,
}

impl<'f> Pass<'f> {
    fn new(fetched: &'f Fetched, limits: EmbedLimits, policy: ErrorPolicy) -> Self {
        let (references, errors) = (Vec::new(), Vec::new());
        Self { fetched, limits, policy, missing: BTreeSet::new(), misses: 0, started: 0, bytes: 0, depth: 0, references, errors }
    }

    fn walk(&mut self, value: &mut Value, spot: Spot<'_>) -> Result<(), EmbedError> {
        match value {
            Value::String(text) => self.walk_text(text, spot),
            Value::Array(items) => {
                items.iter_mut().enumerate().try_for_each(|(index, item)| self.walk(item, spot.at(EmbedSite::Index(&spot.place, index))))
            }
            Value::Object(map) => {
                if let Some(replacement) = self.walk_object(map, spot)? {
                    *value = replacement;
                }
                Ok(())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn walk_text(&mut self, text: &mut String, spot: Spot<'_>) -> Result<(), EmbedError> {
        let tokens = parse::tokens(text);
        if tokens.is_empty() {
            return Ok(());
        }
        let mut written = String::new();
        let mut end = 0;
        for token in tokens {
            written.push_str(&text[end..token.range.start]);
            end = token.range.end;
            match self.expand(token.embed, spot).or_else(|error| self.stand_in(error))? {
                Some(Value::String(embedded)) => written.push_str(&embedded),
                Some(embedded) => written.push_str(&embedded.to_string()),
                None => written.push_str(&text[token.range]),
            }
        }
        written.push_str(&text[end..]);
        *text = written;
        Ok(())
    }

    /// Returns what takes the object's place, when it is an embed.
    fn walk_object(&mut self, map: &mut Map<String, Value>, spot: Spot<'_>) -> Expansion {
        let embed = parse::object_embed(map).map(parse::parse_object);
        for (key, child) in map.iter_mut().filter(|(key, _)| embed.is_none() || *key != MARKER) {
            self.walk(child, spot.at(EmbedSite::Key(&spot.place, key)))?;
        }
        let Some(embed) = embed else { return Ok(None) };
        let merged = self.expand(embed, spot).and_then(|embedded| match embedded {
            Some(embedded) => merge(embedded, map).map_err(|fault| spot.fault(fault)).map(Some),
            None => Ok(None),
        });
        merged.or_else(|error| Ok(self.stand_in(error)?.map(|placeholder| place_marker(placeholder, map))))
    }

    fn expand(&mut self, embed: Result<Embed, MarkerProblem>, spot: Spot<'_>) -> Expansion {
        let embed = embed.map_err(|fault| spot.fault(fault))?;
        self.start(&embed, spot)?;
        let fetched = self.fetched;
        let Some(fetched) = fetched.get(&embed.source) else {
            self.missing.insert(embed.source);
            self.misses += 1;
            return Ok(None);
        };
        let depth = spot.depth() + 1;
        let inside = Chain { embed: &embed, depth, outer: spot.chain };
        let data = fetched_data(fetched, &embed, spot)?;
        let Some(mut value) = self.select(data, &embed, spot, &inside)? else { return Ok(None) };
        self.bytes += size(&value);
        if self.bytes > MAX_BYTES {
            return Err(EmbedError::TooLarge { place: spot.place.to_string(), limit: MAX_BYTES });
        }
        self.walk(&mut value, spot.inside(&inside))?;
        self.depth = self.depth.max(depth);
        self.references.push(embed.source);
        Ok(Some(value))
    }

    /// The part of the data that the embed's path names. A path may lead through an embed in the data, which is put in place first;
    /// nothing until that is fetched.
    fn select(&mut self, data: &Value, embed: &Embed, spot: Spot<'_>, inside: &Chain<'_>) -> Expansion {
        let Some(path) = &embed.path else { return Ok(Some(data.clone())) };
        let nowhere = |reason| EmbedError::Path { place: spot.place.to_string(), path: path.clone(), reason };
        let reason = match select(data, path) {
            Ok(value) => return Ok(Some(value)),
            Err(reason) => reason,
        };
        for (head, rest) in splits(path) {
            let Ok(mut value) = select(data, head) else { continue };
            if value.as_object().is_none_or(|map| parse::object_embed(map).is_none()) {
                continue;
            }
            let misses = self.misses;
            self.walk(&mut value, spot.inside(inside))?;
            if self.misses > misses {
                return Ok(None);
            }
            return select(&value, &rest).map(Some).map_err(nowhere);
        }
        Err(nowhere(reason))
    }

    fn start(&mut self, embed: &Embed, spot: Spot<'_>) -> Result<(), EmbedError> {
        let place = || spot.place.to_string();
        if spot.is_inside(embed) {
            return Err(EmbedError::Circular { place: place(), reference: embed.to_string() });
        }
        if spot.depth() >= self.limits.max_depth {
            return Err(EmbedError::TooDeep { place: place(), limit: self.limits.max_depth });
        }
        if spot.nesting >= MAX_NESTING {
            return Err(EmbedError::TooDeep { place: place(), limit: MAX_NESTING });
        }
        if self.started >= self.limits.max_embeds {
            return Err(EmbedError::TooMany { place: place(), limit: self.limits.max_embeds });
        }
        self.started += 1;
        Ok(())
    }

    /// Answers a failure as the policy says; `None` leaves the embed as it was written.
    fn stand_in(&mut self, error: EmbedError) -> Expansion {
        let shown = match self.policy {
            ErrorPolicy::Exception => return Err(error),
            ErrorPolicy::Placeholder => Some(Value::String(format!("<error:{}>", error.code()))),
            ErrorPolicy::Keep => None,
        };
        self.errors.push(error);
        Ok(shown)
    }
}

fn fetched_data<'d>(fetched: &'d Result<Option<Value>, String>, embed: &Embed, spot: Spot<'_>) -> Result<&'d Value, EmbedError> {
    let place = || spot.place.to_string();
    match fetched {
        Ok(None | Some(Value::Null)) => Err(EmbedError::NotFound { place: place(), reference: embed.source.to_string() }),
        Ok(Some(data)) => Ok(data),
        Err(message) => Err(EmbedError::Fetch { place: place(), message: message.clone() }),
    }
}

/// A path in two, at each of its steps.
fn splits(path: &str) -> Vec<(&str, String)> {
    let first = path.chars().next();
    let ends = |c: char| match first {
        Some('$') => c == '.' || c == '[',
        Some('/') => c == '/',
        _ => c == '.',
    };
    let places = path.char_indices().skip(1).filter(|(_, c)| ends(*c)).map(|(at, _)| at);
    let rest = |at: usize| match first {
        Some('$') => format!("${}", &path[at..]),
        Some('/') => path[at..].to_owned(),
        _ => path[at + 1..].to_owned(),
    };
    places.map(|at| (&path[..at], rest(at))).collect()
}

/// About how many bytes a value takes on the wire.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + size(field) + 4).sum::<usize>() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
    }
}

/// Lays the members beside the marker over the embedded object.
fn merge(embedded: Value, map: &mut Map<String, Value>) -> Result<Value, MarkerProblem> {
    match embedded {
        embedded if map.len() == 1 => Ok(embedded),
        Value::Object(mut under) => {
            under.extend(std::mem::take(map).into_iter().filter(|(key, _)| key != MARKER));
            Ok(Value::Object(under))
        }
        _ => Err(MarkerProblem::Malformed(format!("the embedded value is not an object, so nothing may stand beside `{MARKER}`"))),
    }
}

/// Keeps the members beside the marker when there are any.
fn place_marker(placeholder: Value, map: &mut Map<String, Value>) -> Value {
    if map.len() == 1 {
        return placeholder;
    }
    map.insert(MARKER.to_owned(), placeholder);
    Value::Object(std::mem::take(map))
}
