//! JSON documents whose strings hold `{{ expressions }}`.
//!
//! A string that is one expression becomes that value, with its type. Everything else is filled in as text. What is missing is left
//! out, so that an optional parameter simply does not appear in a body; in a strict engine it is an error, unless the expression says
//! otherwise.

mod bounded;
mod names;
mod source;

use std::fmt::Write as _;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use minijinja::value::{Serde, Value as Jinja, ValueKind};
use minijinja::{Environment, Error as JinjaError, ErrorKind, Expression, UndefinedBehavior, filters};
use serde_json::{Map, Value};

use self::bounded::{Bounded, Known, MAX_OUTPUT, TOO_LARGE};
use self::source::Piece;
use crate::budget::Budget;
use crate::json::size;
use crate::suggest::did_you_mean;

/// Steps an evaluation may take before it is cut off.
const FUEL: u64 = 50_000;
const MAX_DEPTH: usize = 32;

/// Why a template could not be read or filled in.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {message}")]
pub struct TemplateError {
    /// JSON Pointer of the string inside the template.
    pub place: String,
    pub message: String,
}

/// A set of filters and functions that templates may use. The default is for templates that anybody may write.
#[derive(Debug)]
pub struct Engine {
    env: Environment<'static>,
    /// The filters and tests there are, where anybody may write.
    known: Option<Known>,
}

impl Default for Engine {
    fn default() -> Self {
        let mut env = Environment::empty();
        env.set_fuel(Some(FUEL));
        let known = bounded::register(&mut env);
        Self { env, known: Some(known) }
    }
}

impl Engine {
    /// An engine for templates that anybody may write, in which a missing variable is an error. `default(...)` and `is defined` say what
    /// happens without it, and `default(omit)` leaves out what the expression stands for.
    pub fn strict() -> Self {
        let mut engine = Self::default();
        engine.env.set_undefined_behavior(UndefinedBehavior::Strict);
        // What an `if` without `else` comes to is the one missing value that is meant.
        let omit = engine.env.compile_expression("none if false").and_then(|nothing| nothing.eval(())).unwrap_or(Jinja::UNDEFINED);
        engine.env.add_global("omit", omit);
        engine
    }

    /// An engine for templates of our own: with every common filter, those that `register` adds, and no limit to what they make.
    pub fn trusted(register: impl FnOnce(&mut Environment<'static>)) -> Self {
        let mut env = Environment::new();
        env.set_fuel(Some(FUEL));
        env.add_filter("base64", |value: Jinja| base64(&value));
        env.add_filter("base64url", |value: Jinja| base64url(&value));
        register(&mut env);
        Self { env, known: None }
    }

    /// Reads `document` and checks every expression of it.
    pub fn compile(&'static self, document: &Value) -> Result<Template, TemplateError> {
        let root = self.node(document, &mut String::new(), 0)?;
        Ok(Template { expressions: root.expressions(), root, engine: self })
    }

    fn node(&'static self, value: &Value, place: &mut String, depth: usize) -> Result<Node, TemplateError> {
        if depth > MAX_DEPTH {
            return Err(fail(place, "nested too deeply"));
        }
        Ok(match value {
            Value::String(text) if text.contains("{{") || text.contains("{%") => {
                self.text(text).map_err(|message| fail(place, &message))?
            }
            Value::Array(items) => {
                let mut nodes = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    nodes.push(within(place, &index.to_string(), |place| self.node(item, place, depth + 1))?);
                }
                Node::Array(nodes)
            }
            Value::Object(fields) => {
                let mut nodes = Vec::with_capacity(fields.len());
                for (key, field) in fields {
                    nodes.push((key.clone(), within(place, key, |place| self.node(field, place, depth + 1))?));
                }
                Node::Object(nodes)
            }
            literal => Node::Literal(literal.clone()),
        })
    }

    fn text(&'static self, text: &str) -> Result<Node, String> {
        let mut parts = Vec::new();
        for piece in source::pieces(text)? {
            match piece {
                Piece::Literal("") => {}
                Piece::Literal(text) => parts.push(Part::Literal(text.to_owned())),
                Piece::Expression(source) => parts.push(Part::Expression(self.expression(source)?)),
            }
        }
        let is_blank = |part: &Part| matches!(part, Part::Literal(text) if text.trim().is_empty());
        match parts.iter().position(|part| !is_blank(part)) {
            Some(only) if parts.iter().filter(|part| !is_blank(part)).count() == 1 => Ok(match parts.swap_remove(only) {
                Part::Expression(expression) => Node::Expression(expression),
                Part::Literal(text) => Node::Literal(Value::String(text)),
            }),
            _ => Ok(Node::Text(parts)),
        }
    }

    fn expression(&'static self, source: &str) -> Result<Checked, String> {
        if let Some(known) = &self.known {
            bounded::check(source)?;
            compile(&self.env, source)?;
            known.check(&names::read(source))?;
        } else {
            compile(&self.env, source)?;
        }
        Ok(Checked { env: &self.env, source: source.into(), compiled: OnceLock::new() })
    }
}

fn compile(env: &'static Environment<'static>, source: &str) -> Result<Expression<'static, 'static>, String> {
    env.compile_expression_owned(source.to_owned()).map_err(|error| error.to_string())
}

/// An expression that can be compiled, and is when it is first used: compiled it takes kilobytes, and most are never used.
#[derive(Debug)]
struct Checked {
    env: &'static Environment<'static>,
    source: Box<str>,
    compiled: OnceLock<Box<Expression<'static, 'static>>>,
}

impl Checked {
    fn eval(&self, context: Jinja) -> Result<Jinja, String> {
        let compiled = if let Some(compiled) = self.compiled.get() {
            compiled
        } else {
            let compiled = Box::new(compile(self.env, &self.source)?);
            self.compiled.get_or_init(|| compiled)
        };
        let is_strict = self.env.undefined_behavior() == UndefinedBehavior::Strict;
        match compiled.eval(context.clone()) {
            Ok(value) if is_strict && self.holds_missing(&value) => Err(self.missing(&context)),
            Ok(value) => Ok(value),
            Err(error) if is_strict && error.kind() == ErrorKind::UndefinedError => Err(self.missing(&context)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether a missing value is meant: only those that are not count as false without an error.
    fn is_omitted(&self, value: &Jinja) -> bool {
        filters::bool(&self.env.empty_state(), value).is_ok()
    }

    /// Whether something is missing that is not meant to be: the value itself, or an item of a list or object that is written out here.
    fn holds_missing(&self, value: &Jinja) -> bool {
        match value.kind() {
            ValueKind::Undefined => !self.is_omitted(value),
            ValueKind::Seq | ValueKind::Map if self.source.contains(['[', '{']) => {
                let items = value.try_iter().into_iter().flatten();
                let is_map = value.kind() == ValueKind::Map;
                items
                    .map(|item| if is_map { value.get_item(&item).unwrap_or_default() } else { item })
                    .any(|item| self.holds_missing(&item))
            }
            _ => false,
        }
    }

    /// Says which variable is missing.
    fn missing(&self, context: &Jinja) -> String {
        let hint = "write `| default(...)` or `is defined` where it may be missing";
        for path in names::read(&self.source).paths {
            let mut parent = context.clone();
            for (index, part) in path.parts.iter().enumerate() {
                let value = parent.get_attr(part).unwrap_or(Jinja::UNDEFINED);
                if !value.is_undefined() {
                    parent = value;
                    continue;
                }
                let is_last = index + 1 == path.parts.len();
                let is_global = index == 0 && self.env.globals().any(|(name, _)| name == part);
                if (is_last && path.may_be_missing) || is_global {
                    break;
                }
                let others: Vec<String> = parent.try_iter().into_iter().flatten().map(|key| key.to_string()).collect();
                let near = did_you_mean(part, others.iter().map(String::as_str));
                return format!("`{}` is missing; {hint}.{near}", path.parts[..=index].join("."));
            }
        }
        format!("`{}` comes to nothing; {hint}.", self.source)
    }
}

fn base64(value: &Jinja) -> Result<Jinja, JinjaError> {
    text_filter(value, |text| STANDARD.encode(text))
}

fn base64url(value: &Jinja) -> Result<Jinja, JinjaError> {
    text_filter(value, |text| URL_SAFE_NO_PAD.encode(text))
}

/// Filters over text leave a missing value missing.
pub fn text_filter(value: &Jinja, apply: impl FnOnce(&str) -> String) -> Result<Jinja, JinjaError> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Jinja::UNDEFINED),
        ValueKind::String => Ok(Jinja::from(apply(value.as_str().unwrap_or_default()))),
        other => Err(JinjaError::new(ErrorKind::InvalidOperation, format!("expected text, found {other}"))),
    }
}

/// A checked document, ready to be filled in many times.
#[derive(Debug)]
pub struct Template {
    root: Node,
    expressions: usize,
    engine: &'static Engine,
}

#[derive(Debug)]
enum Node {
    Literal(Value),
    Expression(Checked),
    Text(Vec<Part>),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// A piece of a text.
#[derive(Debug)]
enum Part {
    Literal(String),
    Expression(Checked),
}

impl Template {
    /// About how many bytes are looked at to fill it in, since any expression may look at all of `context`; what is more than `most` is not
    /// counted to its end.
    pub fn weigh(&self, context: &Value, most: usize) -> usize {
        size(context, most).saturating_mul(1 + self.expressions).min(most)
    }

    /// Fills in the document. `None` means that nothing of it was left.
    pub fn render(&self, context: &Value, budget: &Budget) -> Result<Option<Value>, TemplateError> {
        let left = self.engine.known.as_ref().map(|_| MAX_OUTPUT);
        let mut filling = Filling { context: Jinja::from(Serde(context)), left, place: String::new(), budget };
        filling.node(&self.root).map_err(|message| fail(&filling.place, &message))
    }

    /// The variables that the document names, with the parts that it names of them, and where.
    pub fn references(&self) -> Vec<Reference> {
        let mut references = Vec::new();
        self.root.references(&mut String::new(), &mut references);
        references.retain(|reference| !self.engine.env.globals().any(|(global, _)| global == reference.path[0]));
        references
    }

    /// The names that the document reads from its context.
    pub fn variables(&self) -> Vec<String> {
        let mut names: Vec<String> = self.references().into_iter().filter_map(|reference| reference.path.into_iter().next()).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// A variable that a document names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// JSON Pointer of the string inside the template.
    pub place: String,
    /// The variable and the parts of it that are named; never empty.
    pub path: Vec<String>,
}

/// A document being filled in. After a failure `place` is where it was.
struct Filling<'a> {
    context: Jinja,
    /// How many bytes expressions may still make.
    left: Option<usize>,
    place: String,
    budget: &'a Budget,
}

impl Filling<'_> {
    fn node(&mut self, node: &Node) -> Result<Option<Value>, String> {
        self.budget.step(1).map_err(|why| why.to_string())?;
        match node {
            Node::Literal(value) => Ok(Some(value.clone())),
            Node::Expression(expression) => self.value(expression),
            Node::Text(parts) => self.text(parts).map(|text| Some(Value::String(text))),
            Node::Array(nodes) => {
                let mut items = Vec::with_capacity(nodes.len());
                for (index, node) in nodes.iter().enumerate() {
                    items.extend(self.within(&index.to_string(), node)?);
                }
                Ok((nodes.is_empty() || !items.is_empty()).then_some(Value::Array(items)))
            }
            Node::Object(nodes) => {
                let mut fields = Map::with_capacity(nodes.len());
                for (key, node) in nodes {
                    if let Some(value) = self.within(key, node)? {
                        fields.insert(key.clone(), value);
                    }
                }
                Ok((nodes.is_empty() || !fields.is_empty()).then_some(Value::Object(fields)))
            }
        }
    }

    fn within(&mut self, segment: &str, node: &Node) -> Result<Option<Value>, String> {
        let length = self.place.len();
        self.place.push('/');
        self.place.push_str(segment);
        let value = self.node(node)?;
        self.place.truncate(length);
        Ok(value)
    }

    /// An expression has steps and copies of its own; between two of them the budget is asked.
    fn eval(&self, expression: &Checked) -> Result<Jinja, String> {
        self.budget.look().map_err(|why| why.to_string())?;
        expression.eval(self.context.clone())
    }

    fn value(&mut self, expression: &Checked) -> Result<Option<Value>, String> {
        let value = self.eval(expression)?;
        if value.is_undefined() {
            return Ok(None);
        }
        // A list may hold one large value many times, so its size is known only once it is written.
        if let Some(left) = self.left {
            let mut out = Bounded::new(left);
            serde_json::to_writer(&mut out, &value).map_err(|_| TOO_LARGE)?;
            self.left = Some(out.left());
        }
        serde_json::to_value(&value).map(Some).map_err(|error| error.to_string())
    }

    fn text(&mut self, parts: &[Part]) -> Result<String, String> {
        let mut out = Bounded::new(self.left.unwrap_or(usize::MAX));
        for part in parts {
            let written = match part {
                Part::Literal(text) => out.write_str(text),
                Part::Expression(expression) => write!(out, "{}", self.eval(expression)?),
            };
            written.map_err(|_| TOO_LARGE)?;
        }
        self.left = self.left.map(|_| out.left());
        Ok(out.into_text())
    }
}

impl Node {
    fn expressions(&self) -> usize {
        match self {
            Self::Literal(_) => 0,
            Self::Expression(_) => 1,
            Self::Text(parts) => parts.iter().filter(|part| matches!(part, Part::Expression(_))).count(),
            Self::Array(nodes) => nodes.iter().map(Self::expressions).sum(),
            Self::Object(nodes) => nodes.iter().map(|(_, node)| node.expressions()).sum(),
        }
    }

    fn references(&self, place: &mut String, found: &mut Vec<Reference>) {
        let mut add = |place: &str, expression: &Checked| {
            let paths = names::read(&expression.source).paths;
            found.extend(paths.into_iter().map(|path| Reference { place: place.to_owned(), path: path.parts }));
        };
        match self {
            Self::Literal(_) => {}
            Self::Expression(expression) => add(place, expression),
            Self::Text(parts) => {
                for part in parts {
                    if let Part::Expression(expression) = part {
                        add(place, expression);
                    }
                }
            }
            Self::Array(nodes) => {
                for (index, node) in nodes.iter().enumerate() {
                    within(place, &index.to_string(), |place| node.references(place, found));
                }
            }
            Self::Object(nodes) => {
                for (key, node) in nodes {
                    within(place, key, |place| node.references(place, found));
                }
            }
        }
    }
}

fn within<T>(place: &mut String, segment: &str, inner: impl FnOnce(&mut String) -> T) -> T {
    let length = place.len();
    place.push('/');
    place.push_str(segment);
    let result = inner(place);
    place.truncate(length);
    result
}

fn fail(place: &str, message: &str) -> TemplateError {
    TemplateError { place: if place.is_empty() { "/".to_owned() } else { place.to_owned() }, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::*;

    static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);

    fn render(template: &Value, context: &Value) -> Option<Value> {
        ENGINE.compile(template).unwrap().render(context, &Budget::default()).unwrap()
    }

    #[test]
    fn one_expression_keeps_its_type() {
        let template = json!({"a": "{{ n }}", "b": "n is {{ n }}", "c": "{{ list }}", "d": 1});
        let filled = render(&template, &json!({"n": 3, "list": ["x", null]}));
        assert_eq!(filled, Some(json!({"a": 3, "b": "n is 3", "c": ["x", null], "d": 1})));
    }

    #[test]
    fn what_is_missing_is_left_out() {
        let template = json!({"a": {"b": "{{ gone }}"}, "c": ["{{ gone }}"], "d": {}, "e": "{{ gone | base64 }}", "f": "{{ there }}"});
        assert_eq!(render(&template, &json!({"there": null})), Some(json!({"d": {}, "f": null})));
        assert_eq!(render(&json!("{{ gone }}"), &json!({})), None);
    }

    #[test]
    fn a_strict_engine_leaves_out_only_what_is_meant() {
        static STRICT: LazyLock<Engine> = LazyLock::new(Engine::strict);
        let context = json!({"inputs": {"customer": "c", "none": null, "inner": {}}});
        let strict = |text: &str| STRICT.compile(&json!({"x": text, "y": 1})).unwrap().render(&context, &Budget::default());
        for (text, expected) in [
            ("{{ inputs.customer }}", json!({"x": "c", "y": 1})),
            ("{{ inputs.none }}", json!({"x": null, "y": 1})),
            ("{{ inputs.gone | default('d') }}", json!({"x": "d", "y": 1})),
            ("{{ inputs.gone | lower | default(7) }}", json!({"x": 7, "y": 1})),
            ("{{ inputs.gone | default(omit) }}", json!({"y": 1})),
            ("{{ inputs.gone if inputs.gone is defined }}", json!({"y": 1})),
            ("{{ inputs.gone is defined and inputs.gone.deep }}", json!({"x": false, "y": 1})),
            ("for {{ inputs.gone | default(omit) }}!", json!({"x": "for !", "y": 1})),
        ] {
            assert_eq!(strict(text).unwrap(), Some(expected), "{text}");
        }
        for (text, words) in [
            (
                "{{ inputs.custmer }}",
                "`inputs.custmer` is missing; write `| default(...)` or `is defined` where it may be missing. Did you mean `customer`?",
            ),
            ("for {{ inputs.gone }}", "`inputs.gone` is missing"),
            ("{{ gone.deeper.deepest | default('x') }}", "`gone` is missing"),
            ("{{ inputs.gone.deep | default('x') }}", "`inputs.gone` is missing"),
            ("{{ inputs.inner.a | default(1) ~ inputs.inner.b }}", "`inputs.inner.b` is missing"),
            ("{{ inputs.gone > 3 }}", "`inputs.gone` is missing"),
            ("{{ not inputs.gone }}", "`inputs.gone` is missing"),
            ("{{ inputs.gone and inputs.customer }}", "`inputs.gone` is missing"),
            ("{{ inputs.gone | string }}", "`inputs.gone` is missing"),
            ("{{ inputs.gone | tojson }}", "`inputs.gone` is missing"),
            ("{{ inputs.gone | join(',') }}", "`inputs.gone` is missing"),
            ("{{ [inputs.customer, inputs.gone] }}", "`inputs.gone` is missing"),
            ("{{ {'a': {'b': inputs.gone}} }}", "`inputs.gone` is missing"),
            ("{{ [] | first }}", "`[] | first` comes to nothing"),
        ] {
            let error = strict(text).unwrap_err();
            assert!(error.place == "/x" && error.message.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn filters_and_tests_that_do_not_exist_are_refused() {
        for (text, words) in [
            ("{{ a | loower }}", "there is no filter `loower`; there are: base64, base64url, lower"),
            ("{{ a | loower }}", "Did you mean `lower`?"),
            ("{{ 'x' ~ (a | indent(3)) }}", "there is no filter `indent`"),
            ("{{ a is defned }}", "there is no test `defned`"),
        ] {
            let error = ENGINE.compile(&json!([text])).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with("/0: ") && error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn errors_name_the_place() {
        let error = ENGINE.compile(&json!({"a": [1, "{{ x +"]})).map(|_| ()).unwrap_err();
        assert_eq!(error.place, "/a/1");
        let error =
            ENGINE.compile(&json!({"a": [1, "{{ 'x' | base64 | int }}"]})).unwrap().render(&json!({}), &Budget::default()).unwrap_err();
        assert_eq!(error.place, "/a/1");
    }

    #[test]
    fn little_cannot_become_much() {
        let large = json!({"x": "\"".repeat(1 << 20), "n": 3});
        for text in [
            "{{ 'x' | indent(1000000000000000) }}".to_owned(),
            "{{ 'x' * 100000000 }}".to_owned(),
            "{{ range(100000) }}".to_owned(),
            "{{ '%1000000000d' | format(1) }}".to_owned(),
            "{% for i in [1] %}{% endfor %}".to_owned(),
            format!("{{{{ x{} }}}}", " ~ x".repeat(40)),
            format!("{{{{ x{} }}}}", " + x".repeat(10)),
            format!("{{{{ x{} }}}}", " | tojson".repeat(20)),
            format!("{{{{ x{} }}}}", " | base64".repeat(20)),
            format!("{{{{ [{}x] }}}}", "x, ".repeat(100)),
            format!("{{{{ [{}x] | join(x) }}}}", "x, ".repeat(100)),
            "{{ x | replace('\"', x) }}".to_owned(),
            "{{ x }}".repeat(100),
        ] {
            let rendered = ENGINE.compile(&json!([text])).and_then(|template| template.render(&large, &Budget::default()));
            assert!(rendered.is_err(), "{text}");
        }
        let many = json!(vec!["{{ x }}"; 100]);
        assert!(ENGINE.compile(&many).unwrap().render(&large, &Budget::default()).is_err());
        let fine =
            json!(["{{ n + 1 }}", "{{ 'a * b' }}", "{{ [n, 'b'] | join('-') }}", "{{ 'aXa' | replace('X', '+') }}", "{{ n is defined }}"]);
        assert_eq!(render(&fine, &large), Some(json!([4, "a * b", "3-b", "a+a", true])));
    }

    #[test]
    fn variables_are_known_before_rendering() {
        let template = ENGINE.compile(&json!({"a": "{{ x.y }}", "b": ["{{ z | base64 }} and {{ x }}"]})).unwrap();
        assert_eq!(template.variables(), ["x", "z"]);
        let found: Vec<(String, String)> = template.references().into_iter().map(|found| (found.place, found.path.join("."))).collect();
        let expected = [("/a", "x.y"), ("/b/0", "z"), ("/b/0", "x")].map(|(place, path)| (place.to_owned(), path.to_owned()));
        assert_eq!(found, expected);
    }
}
