//! JSON documents whose strings hold `{{ expressions }}`.
//!
//! A string that is one expression becomes that value, with its type. Everything else is filled in as text. What is missing is left
//! out, so that an optional parameter simply does not appear in a body.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use minijinja::value::{Serde, Value as Jinja, ValueKind};
use minijinja::{Environment, Error as JinjaError, ErrorKind, Expression};
use serde_json::{Map, Value};

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

/// A set of filters and functions that templates may use.
#[derive(Debug)]
pub struct Engine(Environment<'static>);

impl Default for Engine {
    fn default() -> Self {
        Self::with(|_| {})
    }
}

impl Engine {
    /// An engine with the common filters and those that `register` adds.
    pub fn with(register: impl FnOnce(&mut Environment<'static>)) -> Self {
        let mut env = Environment::new();
        env.set_fuel(Some(FUEL));
        env.add_filter("base64", |value: Jinja| text_filter(&value, |text| STANDARD.encode(text)));
        env.add_filter("base64url", |value: Jinja| text_filter(&value, |text| URL_SAFE_NO_PAD.encode(text)));
        register(&mut env);
        Self(env)
    }

    /// Compiles every expression of `document`.
    pub fn compile(&'static self, document: &Value) -> Result<Template, TemplateError> {
        Ok(Template { root: self.node(document, &mut String::new(), 0)?, engine: &self.0 })
    }

    fn node(&'static self, value: &Value, place: &mut String, depth: usize) -> Result<Node, TemplateError> {
        if depth > MAX_DEPTH {
            return Err(fail(place, "nested too deeply"));
        }
        Ok(match value {
            Value::String(text) if text.contains("{{") || text.contains("{%") => self.text(text, place)?,
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

    fn text(&'static self, text: &str, place: &str) -> Result<Node, TemplateError> {
        let error = |error: JinjaError| fail(place, &error.to_string());
        if let Some(expression) = sole_expression(text) {
            return self.0.compile_expression_owned(expression.to_owned()).map(|e| Node::Expression(Box::new(e))).map_err(error);
        }
        self.0.template_from_str(text).map_err(error)?;
        Ok(Node::Text { engine: &self.0, source: text.to_owned() })
    }
}

/// Filters over text leave a missing value missing.
pub fn text_filter(value: &Jinja, apply: impl FnOnce(&str) -> String) -> Result<Jinja, JinjaError> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Jinja::UNDEFINED),
        ValueKind::String => Ok(Jinja::from(apply(value.as_str().unwrap_or_default()))),
        other => Err(JinjaError::new(ErrorKind::InvalidOperation, format!("expected text, found {other}"))),
    }
}

/// The expression of a string that holds one expression and nothing else.
fn sole_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{") && !inner.contains("}}")).then_some(inner.trim())
}

/// A compiled document, ready to be filled in many times.
#[derive(Debug)]
pub struct Template {
    root: Node,
    engine: &'static Environment<'static>,
}

#[derive(Debug)]
enum Node {
    Literal(Value),
    Expression(Box<Expression<'static, 'static>>),
    Text { engine: &'static Environment<'static>, source: String },
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Template {
    /// Fills in the document. `None` means that nothing of it was left.
    pub fn render(&self, context: &Value) -> Result<Option<Value>, TemplateError> {
        self.root.render(&Jinja::from(Serde(context)), &mut String::new())
    }

    /// The names that the document reads from its context.
    pub fn variables(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.root.variables(&mut names);
        names.sort();
        names.dedup();
        names.retain(|name| !self.engine.globals().any(|(global, _)| global == name));
        names
    }
}

impl Node {
    fn render(&self, context: &Jinja, place: &mut String) -> Result<Option<Value>, TemplateError> {
        match self {
            Self::Literal(value) => Ok(Some(value.clone())),
            Self::Expression(expression) => {
                let value = expression.eval(context.clone()).map_err(|error| fail(place, &error.to_string()))?;
                if value.is_undefined() {
                    return Ok(None);
                }
                serde_json::to_value(&value).map(Some).map_err(|error| fail(place, &error.to_string()))
            }
            Self::Text { engine, source } => engine
                .render_str(source, context.clone())
                .map(|text| Some(Value::String(text)))
                .map_err(|error| fail(place, &error.to_string())),
            Self::Array(nodes) => {
                let mut items = Vec::with_capacity(nodes.len());
                for (index, node) in nodes.iter().enumerate() {
                    items.extend(within(place, &index.to_string(), |place| node.render(context, place))?);
                }
                Ok((nodes.is_empty() || !items.is_empty()).then_some(Value::Array(items)))
            }
            Self::Object(nodes) => {
                let mut fields = Map::with_capacity(nodes.len());
                for (key, node) in nodes {
                    if let Some(value) = within(place, key, |place| node.render(context, place))? {
                        fields.insert(key.clone(), value);
                    }
                }
                Ok((nodes.is_empty() || !fields.is_empty()).then_some(Value::Object(fields)))
            }
        }
    }

    fn variables(&self, names: &mut Vec<String>) {
        match self {
            Self::Literal(_) => {}
            Self::Expression(expression) => names.extend(expression.undeclared_variables(false)),
            Self::Text { engine, source } => {
                names.extend(engine.template_from_str(source).map(|template| template.undeclared_variables(false)).unwrap_or_default());
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
        let endless = json!({"a": "{% for i in range(10000) %}{% for j in range(10000) %}x{% endfor %}{% endfor %}"});
        let error = ENGINE.compile(&endless).unwrap().render(&json!({})).unwrap_err();
        assert_eq!(error.place, "/a");
    }

    #[test]
    fn variables_are_known_before_rendering() {
        let template = ENGINE.compile(&json!({"a": "{{ x.y }}", "b": ["{{ z | base64 }} and {{ x }}"]})).unwrap();
        assert_eq!(template.variables(), ["x", "z"]);
    }
}
