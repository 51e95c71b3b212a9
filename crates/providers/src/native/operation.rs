//! One request of a manifest, compiled once and built from arguments many times. Pure: nothing is sent here.

use bytes::Bytes;
use catalog::auth::{Fields, Send};
use catalog::fill::{FillError, SEGMENT, fill_address};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use kernel::template::Template;
use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value, json};
use url::Url;

use super::filters::ENGINE;
use super::manifest::{Encoding, Line, Param, Place, Scalar, Style};

/// A compiled request.
#[derive(Debug)]
pub struct Operation {
    line: Line,
    params: Vec<Param>,
    query: Vec<(String, String)>,
    headers: Vec<(HeaderName, String)>,
    encoding: Encoding,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Params,
    Template(Template),
    Graphql { document: String, variables: Option<Template> },
}

/// The parts of a manifest entry that make a request.
#[derive(Debug, Default)]
pub struct Parts<'a> {
    pub request: &'a str,
    pub params: Option<&'a Map<String, Value>>,
    pub query: Vec<(String, Scalar)>,
    pub headers: Vec<(&'a str, &'a str)>,
    pub encoding: Encoding,
    pub body: Option<&'a Value>,
    pub graphql: Option<&'a str>,
    pub variables: Option<&'a Value>,
}

/// A request that is ready to be sent.
#[derive(Clone, Debug)]
pub struct Built {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why a request could not be built; always the arguments' or the connection's fault.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BuildError {
    #[error("`{0}` is required")]
    Missing(String),
    #[error("`{0}` may not be empty, `.` or `..` in a path")]
    BadPathValue(String),
    #[error("`{0}` must be a string, a number or a boolean here")]
    NotScalar(String),
    #[error("`{0}` cannot be sent in a header")]
    BadHeader(String),
    #[error(transparent)]
    Address(#[from] FillError),
    #[error("the address made from the connection's fields is not a web address")]
    BadUrl,
    #[error("the request body could not be made: {0}")]
    Body(String),
}

impl Operation {
    /// Reads and compiles the parts; the error is for the author of the manifest.
    pub fn compile(parts: &Parts<'_>) -> Result<Self, String> {
        let line = Line::parse(parts.request).ok_or_else(|| format!("`{}` is not `METHOD /path` or `METHOD https://…`", parts.request))?;
        let query: Vec<(String, String)> = parts.query.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let fixed: Vec<&str> = query.iter().map(|(_, text)| text.as_str()).chain(parts.headers.iter().map(|(_, text)| *text)).collect();
        let params = parts.params.map(|params| Param::read_all(params, &line, &fixed)).transpose()?.unwrap_or_default();
        let template = |value: &Value| ENGINE.compile(value).map_err(|error| format!("template {error}"));
        let body = match (parts.graphql, parts.body) {
            (Some(_), Some(_)) => return Err("`graphql` and `body` exclude each other".to_owned()),
            (Some(document), None) => {
                Body::Graphql { document: document.to_owned(), variables: parts.variables.map(template).transpose()? }
            }
            (None, Some(body)) => Body::Template(template(body)?),
            (None, None) => Body::Params,
        };
        let headers = parts
            .headers
            .iter()
            .map(|(name, value)| Ok((name.parse().map_err(|_| format!("`{name}` is not a header name"))?, (*value).to_owned())))
            .collect::<Result<_, String>>()?;
        Ok(Self { line, params, query, headers, encoding: parts.encoding, body })
    }

    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Lets go of what only the catalog needs, once the input schema is made from it.
    pub(super) fn slim(&mut self) {
        self.params.iter_mut().for_each(|param| {
            param.about = None;
            param.lookup = None;
        });
        self.params.shrink_to_fit();
    }

    pub fn line(&self) -> &Line {
        &self.line
    }

    /// The names that body templates read; `None` when the body is just the parameters.
    pub fn template_variables(&self) -> Option<Vec<String>> {
        match &self.body {
            Body::Template(template) | Body::Graphql { variables: Some(template), .. } => Some(template.variables()),
            Body::Params | Body::Graphql { variables: None, .. } => None,
        }
    }

    /// Builds the request. Arguments are taken as checked against the schema.
    pub fn build(&self, base_url: &str, send: &Send, arguments: &Map<String, Value>, fields: &Fields) -> Result<Built, BuildError> {
        let values = Values { params: &self.params, arguments, fields };
        let mut url = self.url(base_url, &values)?;
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 3);
        for (name, text) in &self.headers {
            put_header(&mut headers, name.clone(), &values.fill(text, Fill::Raw)?, false)?;
        }
        let mut query = QueryPairs::default();
        for (name, text) in &self.query {
            if let Some(text) = values.fill_optional(text)? {
                query.push(name, text);
            }
        }
        for param in &self.params {
            let Some(value) = values.argument(param) else { continue };
            match param.place {
                Place::Query => query.flatten(&param.wire, value, param.style),
                Place::Header => {
                    let name: HeaderName = param.wire.parse().map_err(|_| BuildError::BadHeader(param.name.clone()))?;
                    put_header(&mut headers, name, &scalar(&param.name, value)?, false)?;
                }
                Place::Path | Place::Body | Place::Named => {}
            }
        }
        let body = self.body(&values, &mut headers)?;
        apply(send, &values, &mut headers, &mut query)?;
        query.append_to(&mut url);
        Ok(Built { method: self.line.method.clone(), url, headers, body })
    }

    fn url(&self, base_url: &str, values: &Values<'_>) -> Result<Url, BuildError> {
        let mut text = String::new();
        if self.line.target.starts_with('/') {
            text.push_str(fill_address(base_url, values.fields)?.trim_end_matches('/'));
        }
        text.push_str(&values.fill(&self.line.target, Fill::Path)?);
        let url: Url = text.parse().map_err(|_| BuildError::BadUrl)?;
        (url.has_host() && url.username().is_empty() && url.password().is_none()).then_some(url).ok_or(BuildError::BadUrl)
    }

    fn body(&self, values: &Values<'_>, headers: &mut HeaderMap) -> Result<Bytes, BuildError> {
        let content = match &self.body {
            Body::Params => {
                let fields = values.body_fields();
                if fields.is_empty() && self.line.is_bodiless() {
                    return Ok(Bytes::new());
                }
                if fields.is_empty() && !self.params.iter().any(|param| param.place == Place::Body) {
                    return Ok(Bytes::new());
                }
                Some(Value::Object(fields))
            }
            Body::Template(template) => template.render(&values.context()).map_err(|error| BuildError::Body(error.to_string()))?,
            Body::Graphql { document, variables } => {
                let variables = match variables {
                    Some(template) => template.render(&values.context()).map_err(|error| BuildError::Body(error.to_string()))?,
                    None => Some(values.context()),
                };
                Some(json!({"query": document, "variables": variables.unwrap_or_else(|| json!({}))}))
            }
        };
        let Some(content) = content else { return Ok(Bytes::new()) };
        match self.encoding {
            Encoding::Json => {
                headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
                serde_json::to_vec(&content).map(Bytes::from).map_err(|error| BuildError::Body(error.to_string()))
            }
            Encoding::Form => {
                headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/x-www-form-urlencoded"));
                let mut pairs = QueryPairs::default();
                for (name, value) in content.as_object().into_iter().flatten() {
                    let style = self.params.iter().find(|param| param.wire == *name).map_or(Style::Repeat, |param| param.style);
                    pairs.flatten(name, value, style);
                }
                Ok(Bytes::from(pairs.encode()))
            }
        }
    }
}

/// Puts the credential where the scheme says.
fn apply(send: &Send, values: &Values<'_>, headers: &mut HeaderMap, query: &mut QueryPairs) -> Result<(), BuildError> {
    for (name, text) in &send.headers {
        let name: HeaderName = name.parse().map_err(|_| BuildError::BadHeader(name.clone()))?;
        put_header(headers, name, &values.fill(text, Fill::Raw)?, true)?;
    }
    for (name, text) in &send.query {
        query.push(name, values.fill(text, Fill::Raw)?);
    }
    if let Some(pair) = &send.basic {
        use base64::Engine as _;
        let plain = format!("{}:{}", values.fill(&pair.username, Fill::Raw)?, values.fill(&pair.password, Fill::Raw)?);
        let value = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(plain));
        put_header(headers, AUTHORIZATION, &value, true)?;
    }
    Ok(())
}

fn put_header(headers: &mut HeaderMap, name: HeaderName, value: &str, sensitive: bool) -> Result<(), BuildError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| BuildError::BadHeader(name.to_string()))?;
    value.set_sensitive(sensitive);
    headers.insert(name, value);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    /// A path: values are percent-encoded.
    Path,
    /// Anything else: values as they are.
    Raw,
}

/// What placeholders are filled from.
struct Values<'a> {
    params: &'a [Param],
    arguments: &'a Map<String, Value>,
    fields: &'a Fields,
}

impl<'a> Values<'a> {
    /// The value of a parameter: the argument, else its default. An explicit null counts as left out, except in the body.
    fn argument(&self, param: &'a Param) -> Option<&'a Value> {
        match self.arguments.get(&param.name) {
            Some(Value::Null) if param.place != Place::Body => None,
            Some(value) => Some(value),
            None => param.default.as_deref(),
        }
    }

    fn body_fields(&self) -> Map<String, Value> {
        let body = self.params.iter().filter(|param| param.place == Place::Body);
        body.filter_map(|param| Some((param.wire.clone(), self.argument(param)?.clone()))).collect()
    }

    /// All parameters by name, for templates.
    fn context(&self) -> Value {
        let mut context: Map<String, Value> =
            self.params.iter().filter_map(|param| Some((param.name.clone(), self.argument(param)?.clone()))).collect();
        for (name, value) in self.arguments {
            context.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Value::Object(context)
    }

    fn fill(&self, text: &str, mode: Fill) -> Result<String, BuildError> {
        let mut filled = String::with_capacity(text.len() + 16);
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            let Some(end) = rest[start..].find('}') else { break };
            self.push(&mut filled, &rest[start + 1..start + end], mode)?;
            rest = &rest[start + end + 1..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// As `fill`, but nothing at all when a parameter in the text was left out.
    fn fill_optional(&self, text: &str) -> Result<Option<String>, BuildError> {
        match self.fill(text, Fill::Raw) {
            Err(BuildError::Missing(_)) => Ok(None),
            filled => filled.map(Some),
        }
    }

    fn push(&self, filled: &mut String, name: &str, mode: Fill) -> Result<(), BuildError> {
        if let Some(field) = name.strip_prefix("connection.") {
            let value = self.fields.get(field).ok_or_else(|| FillError::NoField(field.to_owned()))?;
            match mode {
                Fill::Raw => filled.push_str(value),
                Fill::Path => filled.extend(utf8_percent_encode(value, SEGMENT)),
            }
            return Ok(());
        }
        let param = self.params.iter().find(|param| param.name == name);
        let value = param.map_or_else(|| self.arguments.get(name), |param| self.argument(param));
        let value = value.filter(|value| !value.is_null()).ok_or_else(|| BuildError::Missing(name.to_owned()))?;
        let text = scalar(name, value)?;
        if mode != Fill::Path {
            filled.push_str(&text);
            return Ok(());
        }
        let slashes = param.is_some_and(|param| param.slashes);
        let segments: Vec<&str> = if slashes { text.split('/').collect() } else { vec![text.as_str()] };
        for (index, segment) in segments.iter().enumerate() {
            if matches!(*segment, "" | "." | "..") {
                return Err(BuildError::BadPathValue(name.to_owned()));
            }
            if index > 0 {
                filled.push('/');
            }
            filled.extend(utf8_percent_encode(segment, SEGMENT));
        }
        Ok(())
    }
}

fn scalar(name: &str, value: &Value) -> Result<String, BuildError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err(BuildError::NotScalar(name.to_owned())),
    }
}

/// Names and values of a query string or a form.
#[derive(Default)]
struct QueryPairs(Vec<(String, String)>);

impl QueryPairs {
    fn push(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), value));
    }

    fn flatten(&mut self, name: &str, value: &Value, style: Style) {
        match value {
            Value::Null => {}
            Value::Object(fields) => fields.iter().for_each(|(key, value)| self.flatten(&format!("{name}[{key}]"), value, style)),
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                items.iter().enumerate().for_each(|(index, item)| self.flatten(&format!("{name}[{index}]"), item, style));
            }
            Value::Array(items) => {
                let texts = items.iter().filter_map(|item| scalar(name, item).ok());
                match style {
                    Style::Repeat => texts.for_each(|text| self.push(name, text)),
                    Style::Brackets => texts.for_each(|text| self.push(&format!("{name}[]"), text)),
                    Style::Comma => self.push(name, texts.collect::<Vec<_>>().join(",")),
                }
            }
            other => self.0.extend(scalar(name, other).ok().map(|text| (name.to_owned(), text))),
        }
    }

    fn append_to(self, url: &mut Url) {
        if !self.0.is_empty() {
            url.query_pairs_mut().extend_pairs(self.0);
        }
    }

    fn encode(self) -> String {
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(self.0).finish()
    }
}
