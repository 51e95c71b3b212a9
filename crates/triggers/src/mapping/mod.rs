//! `inputs_fields`: what a run is given, picked out of its event.
//!
//! Strings select: `$.a.b` is a JSONPath, `/a/b` a JSON Pointer, and text with `{{ a.b }}` a template. `$$` and `//` stand for a text that
//! begins with `$` or `/`. Everything else means itself.

mod path;

use std::sync::LazyLock;

use kernel::json::{charge, size};
use kernel::template::{Engine, Template};
use kernel::{Budget, Exceeded, suggest};
use serde_json::{Map, Value, json};

pub(crate) use self::path::Path;

/// What the whole context has.
const CONTEXT: [&str; 3] = ["event", "subscription", "scope"];
const MAX_DEPTH: usize = 10;
const MAX_SELECTORS: usize = 256;
/// About how many bytes of JSON a mapping may make; a few selectors can repeat one large event many times.
const MAX_OUTPUT: usize = 4 << 20;

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);

/// A mapping that has been read and can be applied many times; by default it passes the whole context on.
#[derive(Debug)]
pub struct Mapping {
    root: Node,
    expressions: Expressions,
    /// How often it looks at the context.
    looks: usize,
}

/// What a mapping made of one context.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// Always an object.
    pub inputs: Value,
    /// The selectors that found nothing and gave `null`.
    pub missed: Vec<Miss>,
}

/// A selector that found nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// JSON Pointer of the selector inside the mapping.
    pub place: String,
    pub selector: String,
}

/// Why a mapping could not be read or applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    #[error("inputs_fields: must be an object or a string")]
    Kind,
    #[error("inputs_fields{place}: nested deeper than {MAX_DEPTH} levels")]
    Depth { place: String },
    #[error("inputs_fields{place}: more than {MAX_SELECTORS} selectors")]
    Selectors { place: String },
    #[error("inputs_fields{place}: `{selector}` is not a JSONPath: {reason}; hint: write `$$` for a text that begins with `$`")]
    Path { place: String, selector: String, reason: String },
    #[error(
        "inputs_fields{place}: `{selector}` is not a JSON Pointer: `~` must be `~0` or `~1`; hint: write `//` for a text that begins with `/`"
    )]
    Pointer { place: String, selector: String },
    #[error("inputs_fields{place}: {reason}")]
    Expression { place: String, reason: String },
    #[error("inputs_fields{place}: the inputs become too large")]
    Output { place: String },
    #[error("inputs_fields{place}: {why}")]
    Costly { place: String, why: Exceeded },
    #[error("inputs_fields{place}: `{selector}` selects nothing: there is no `{name}`, there are {}.{hint}", .known.join(", "))]
    Unknown { place: String, selector: String, name: String, known: Vec<String>, hint: String },
}

#[derive(Debug)]
enum Node {
    Literal(Value),
    Path(Path),
    Pointer(String),
    Expression { index: usize, source: String },
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Mapping {
    /// Reads a mapping; what is wrong with it is said here, not when it runs.
    pub fn compile(fields: &Value) -> Result<Self, MappingError> {
        if !matches!(fields, Value::String(_) | Value::Object(_)) {
            return Err(MappingError::Kind);
        }
        let mut reader = Reader::default();
        let root = reader.node(fields, "", 0)?;
        Ok(Self { root, expressions: Expressions::compile(reader.expressions)?, looks: 1 + reader.looks })
    }

    /// Sees that selectors lead somewhere in every context. `known` has the fields of all of them; what is `null` there may hold anything.
    pub fn check(&self, known: &Value) -> Result<(), MappingError> {
        check(&self.root, "", known)?;
        self.expressions.check(known)
    }

    /// The names of the inputs that it gives; none where that depends on the event.
    pub fn names(&self) -> Option<Vec<&str>> {
        match &self.root {
            Node::Object(fields) => Some(fields.iter().map(|(name, _)| name.as_str()).collect()),
            Node::Pointer(whole) if whole.is_empty() => Some(CONTEXT.to_vec()),
            Node::Path(path) if path.source() == "$" => Some(CONTEXT.to_vec()),
            Node::Literal(_) => Some(vec!["value"]),
            _ => None,
        }
    }

    /// About how many bytes it looks at to be filled in from `context`.
    pub fn weigh(&self, context: &Value) -> usize {
        size(context, MAX_OUTPUT).saturating_mul(self.looks)
    }

    /// Fills the mapping in from `context`.
    pub fn apply(&self, context: &Value, budget: &Budget) -> Result<Mapped, MappingError> {
        let expressions = self.expressions.render(context, budget)?;
        let mut writer = Writer { context, expressions, missed: Vec::new(), left: MAX_OUTPUT, budget };
        let inputs = match writer.fill(&self.root, "")? {
            Value::Object(fields) => Value::Object(fields),
            other => json!({ "value": other }),
        };
        Ok(Mapped { inputs, missed: writer.missed })
    }
}

impl Default for Mapping {
    fn default() -> Self {
        Self { root: Node::Pointer(String::new()), expressions: Expressions::default(), looks: 1 }
    }
}

#[derive(Default)]
struct Reader {
    selectors: usize,
    looks: usize,
    expressions: Vec<(String, String)>,
}

impl Reader {
    fn node(&mut self, value: &Value, place: &str, depth: usize) -> Result<Node, MappingError> {
        if depth > MAX_DEPTH {
            return Err(MappingError::Depth { place: place.to_owned() });
        }
        match value {
            Value::String(text) => self.text(text, place),
            Value::Array(items) => {
                let nodes = items.iter().enumerate().map(|(index, item)| self.node(item, &inside(place, &index.to_string()), depth + 1));
                nodes.collect::<Result<_, _>>().map(Node::Array)
            }
            Value::Object(fields) => {
                let nodes = fields.iter().map(|(key, field)| Ok((key.clone(), self.node(field, &inside(place, key), depth + 1)?)));
                nodes.collect::<Result<_, _>>().map(Node::Object)
            }
            literal => Ok(Node::Literal(literal.clone())),
        }
    }

    fn text(&mut self, text: &str, place: &str) -> Result<Node, MappingError> {
        let node = if text.contains("{{") {
            self.expressions.push((place.to_owned(), text.to_owned()));
            Node::Expression { index: self.expressions.len() - 1, source: text.to_owned() }
        } else if text.starts_with("$$") || text.starts_with("//") {
            return Ok(Node::Literal(json!(text[1..])));
        } else if text.starts_with('$') {
            Node::Path(Path::parse(text).map_err(|reason| MappingError::Path {
                place: place.to_owned(),
                selector: text.to_owned(),
                reason,
            })?)
        } else if text.starts_with('/') {
            pointer(text, place)?
        } else {
            return Ok(Node::Literal(json!(text)));
        };
        self.selectors += 1;
        self.looks += if let Node::Path(path) = &node { path.looks() } else { 1 };
        if self.selectors > MAX_SELECTORS { Err(MappingError::Selectors { place: place.to_owned() }) } else { Ok(node) }
    }
}

fn pointer(text: &str, place: &str) -> Result<Node, MappingError> {
    if text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1'])) {
        Ok(Node::Pointer(text.to_owned()))
    } else {
        Err(MappingError::Pointer { place: place.to_owned(), selector: text.to_owned() })
    }
}

fn check(node: &Node, place: &str, known: &Value) -> Result<(), MappingError> {
    match node {
        // Templates are checked all together.
        Node::Literal(_) | Node::Expression { .. } => Ok(()),
        Node::Path(path) => along(&path.names(), known, place, path.source()),
        Node::Pointer(pointer) => {
            let names: Vec<String> = pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
            along(&names, known, place, pointer)
        }
        Node::Array(nodes) => nodes.iter().enumerate().try_for_each(|(index, node)| check(node, &inside(place, &index.to_string()), known)),
        Node::Object(nodes) => nodes.iter().try_for_each(|(key, node)| check(node, &inside(place, key), known)),
    }
}

/// Follows names as far as it is known what there is.
fn along(names: &[String], known: &Value, place: &str, selector: &str) -> Result<(), MappingError> {
    match missing(names, known) {
        None => Ok(()),
        Some((name, there)) => Err(MappingError::Unknown {
            place: place.to_owned(),
            selector: selector.to_owned(),
            name: name.to_owned(),
            known: there.keys().map(|name| format!("`{name}`")).collect(),
            hint: suggest::did_you_mean(name, there.keys().map(String::as_str)),
        }),
    }
}

/// The first of the names that is not there, with those that are.
fn missing<'a>(names: &'a [String], known: &'a Value) -> Option<(&'a str, &'a Map<String, Value>)> {
    let mut at = known;
    for name in names {
        let there = at.as_object()?;
        match there.get(name) {
            Some(next) => at = next,
            None => return Some((name, there)),
        }
    }
    None
}

/// All templates of a mapping as one document, so that the context is handed to the engine only once.
#[derive(Debug, Default)]
struct Expressions {
    template: Option<Template>,
    places: Vec<String>,
}

impl Expressions {
    fn compile(expressions: Vec<(String, String)>) -> Result<Self, MappingError> {
        if expressions.is_empty() {
            return Ok(Self::default());
        }
        let (places, sources): (Vec<String>, Vec<String>) = expressions.into_iter().unzip();
        let document = sources.into_iter().enumerate().map(|(index, source)| (index.to_string(), Value::String(source))).collect();
        let template = ENGINE.compile(&Value::Object(document)).map_err(|error| fault(&places, &error.place, error.message))?;
        Ok(Self { template: Some(template), places })
    }

    fn check(&self, known: &Value) -> Result<(), MappingError> {
        for reference in self.template.iter().flat_map(Template::references) {
            along(&reference.path, known, &written_at(&self.places, &reference.place), &format!("{{{{ {} }}}}", reference.path.join(".")))?;
        }
        Ok(())
    }

    /// The values of those templates that gave one, by their index.
    fn render(&self, context: &Value, budget: &Budget) -> Result<Map<String, Value>, MappingError> {
        let Some(template) = &self.template else { return Ok(Map::new()) };
        match template.render(context, budget).map_err(|error| fault(&self.places, &error.place, error.message))? {
            Some(Value::Object(values)) => Ok(values),
            _ => Ok(Map::new()),
        }
    }
}

fn fault(places: &[String], place: &str, reason: String) -> MappingError {
    MappingError::Expression { place: written_at(places, place), reason }
}

/// Where a template stands in the mapping, by its place among the templates.
fn written_at(places: &[String], place: &str) -> String {
    let index = place.trim_start_matches('/').parse::<usize>().ok();
    index.and_then(|index| places.get(index)).cloned().unwrap_or_default()
}

struct Writer<'a> {
    context: &'a Value,
    expressions: Map<String, Value>,
    missed: Vec<Miss>,
    left: usize,
    budget: &'a Budget,
}

impl Writer<'_> {
    fn fill(&mut self, node: &Node, place: &str) -> Result<Value, MappingError> {
        let costly = |why| MappingError::Costly { place: place.to_owned(), why };
        self.budget.step(1).map_err(costly)?;
        match node {
            Node::Literal(value) => self.copy(&[value], "", place),
            Node::Path(path) => {
                let found = path.select(self.context, self.budget).map_err(costly)?;
                self.copy(&found, path.source(), place)
            }
            Node::Pointer(pointer) => self.copy(self.context.pointer(pointer).as_slice(), pointer, place),
            Node::Expression { index, source } => {
                let value = self.expressions.remove(&index.to_string());
                self.copy(value.as_ref().as_slice(), source, place)
            }
            Node::Array(nodes) => {
                let items = nodes.iter().enumerate().map(|(index, node)| self.fill(node, &inside(place, &index.to_string())));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            Node::Object(nodes) => {
                let fields = nodes.iter().map(|(key, node)| Ok((key.clone(), self.fill(node, &inside(place, key))?)));
                fields.collect::<Result<_, _>>().map(Value::Object)
            }
        }
    }

    /// Nothing is `null` and a miss, one value is itself, several are a list.
    fn copy(&mut self, found: &[&Value], selector: &str, place: &str) -> Result<Value, MappingError> {
        if !found.iter().all(|value| charge(&mut self.left, value)) {
            return Err(MappingError::Output { place: place.to_owned() });
        }
        Ok(match found {
            [] => {
                self.missed.push(Miss { place: place.to_owned(), selector: selector.to_owned() });
                Value::Null
            }
            [value] => (*value).clone(),
            values => values.iter().map(|value| (*value).clone()).collect(),
        })
    }
}

fn inside(place: &str, key: &str) -> String {
    format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests;
