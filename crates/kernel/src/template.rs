//! JSON documents whose strings hold `{{ expressions }}`.
//!
//! A string that is one expression becomes that value, with its type. Everything else is filled in as text. What is missing is left
//! out, so that an optional parameter simply does not appear in a body.

mod bounded;
mod source;

use std::fmt::Write as _;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use minijinja::value::{Serde, Value as Jinja, ValueKind};
use minijinja::{Environment, Error as JinjaError, ErrorKind, Expression};
use serde_json::{Map, Value};

use self::bounded::{Bounded, MAX_OUTPUT, TOO_LARGE};
use self::source::Piece;

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
    is_trusted: bool,
}

impl Default for Engine {
    fn default() -> Self {
        let mut env = Environment::empty();
        env.set_fuel(Some(FUEL));
        bounded::register(&mut env);
        Self { env, is_trusted: false }
    }
}

impl Engine {
    /// An engine for templates of our own: with every common filter, those that `register` adds, and no limit to what they make.
    pub fn trusted(register: impl FnOnce(&mut Environment<'static>)) -> Self {
        let mut env = Environment::new();
        env.set_fuel(Some(FUEL));
        env.add_filter("base64", |value: Jinja| base64(&value));
        env.add_filter("base64url", |value: Jinja| base64url(&value));
        register(&mut env);
        Self { env, is_trusted: true }
    }

    /// Reads `document` and checks every expression of it.
    pub fn compile(&'static self, document: &Value) -> Result<Template, TemplateError> {
        Ok(Template { root: self.node(document, &mut String::new(), 0)?, engine: self })
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
        if !self.is_trusted {
            bounded::check(source)?;
        }
        compile(&self.env, source)?;
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
        compiled.eval(context).map_err(|error| error.to_string())
    }

    fn variables(&self) -> impl Iterator<Item = String> {
        compile(self.env, &self.source).into_iter().flat_map(|compiled| compiled.undeclared_variables(false))
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
    /// Fills in the document. `None` means that nothing of it was left.
    pub fn render(&self, context: &Value) -> Result<Option<Value>, TemplateError> {
        let left = (!self.engine.is_trusted).then_some(MAX_OUTPUT);
        let mut filling = Filling { context: Jinja::from(Serde(context)), left, place: String::new() };
        filling.node(&self.root).map_err(|message| fail(&filling.place, &message))
    }

    /// The names that the document reads from its context.
    pub fn variables(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.root.variables(&mut names);
        names.sort();
        names.dedup();
        names.retain(|name| !self.engine.env.globals().any(|(global, _)| global == name));
        names
    }
}

/// A document being filled in. After a failure `place` is where it was.
struct Filling {
    context: Jinja,
    /// How many bytes expressions may still make.
    left: Option<usize>,
    place: String,
}

impl Filling {
    fn node(&mut self, node: &Node) -> Result<Option<Value>, String> {
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

    fn value(&mut self, expression: &Checked) -> Result<Option<Value>, String> {
        let value = expression.eval(self.context.clone())?;
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
                Part::Expression(expression) => write!(out, "{}", expression.eval(self.context.clone())?),
            };
            written.map_err(|_| TOO_LARGE)?;
        }
        self.left = self.left.map(|_| out.left());
        Ok(out.into_text())
    }
}

impl Node {
    fn variables(&self, names: &mut Vec<String>) {
        match self {
            Self::Literal(_) => {}
            Self::Expression(expression) => names.extend(expression.variables()),
            Self::Text(parts) => {
                for part in parts {
                    if let Part::Expression(expression) = part {
                        names.extend(expression.variables());
                    }
                }
            }
            Self::Array(nodes) => nodes.iter().for_each(|node| node.variables(names)),
            Self::Object(nodes) => nodes.iter().for_each(|(_, node)| node.variables(names)),
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
        ENGINE.compile(template).unwrap().render(context).unwrap()
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
    fn errors_name_the_place() {
        let error = ENGINE.compile(&json!({"a": [1, "{{ x +"]})).map(|_| ()).unwrap_err();
        assert_eq!(error.place, "/a/1");
        let error = ENGINE.compile(&json!({"a": [1, "{{ 'x' | base64 | int }}"]})).unwrap().render(&json!({})).unwrap_err();
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
            let rendered = ENGINE.compile(&json!([text])).and_then(|template| template.render(&large));
            assert!(rendered.is_err(), "{text}");
        }
        let many = json!(vec!["{{ x }}"; 100]);
        assert!(ENGINE.compile(&many).unwrap().render(&large).is_err());
        let fine =
            json!(["{{ n + 1 }}", "{{ 'a * b' }}", "{{ [n, 'b'] | join('-') }}", "{{ 'aXa' | replace('X', '+') }}", "{{ n is defined }}"]);
        assert_eq!(render(&fine, &large), Some(json!([4, "a * b", "3-b", "a+a", true])));
    }

    #[test]
    fn variables_are_known_before_rendering() {
        let template = ENGINE.compile(&json!({"a": "{{ x.y }}", "b": ["{{ z | base64 }} and {{ x }}"]})).unwrap();
        assert_eq!(template.variables(), ["x", "z"]);
    }
}
