//! One request, compiled once and built from arguments many times. Pure: nothing is sent here.

use bytes::Bytes;
use catalog::auth::{Fields, Send};
use catalog::fill::{FillError, fill_address};
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use kernel::Budget;
use kernel::template::Template;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use crate::filters::ENGINE;
use crate::pairs::QueryPairs;
use crate::values::{Fill, Values, simple};
use crate::{Param, ParamLocation, RequestLine, Style};

/// How a body is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    #[default]
    Json,
    Form,
    /// The body is a text; it needs a parameter that is the whole body.
    Text,
}

/// A fixed value of a query string.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    Bool(bool),
    Integer(i64),
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// A compiled request.
#[derive(Debug)]
pub struct Operation {
    line: RequestLine,
    params: Vec<Param>,
    query: Vec<(String, String)>,
    headers: Vec<(HeaderName, String)>,
    encoding: Encoding,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Params { optional: bool },
    Template(Template),
    Graphql { document: String, variables: Option<Template> },
}

/// What a request is compiled from.
#[derive(Debug, Default)]
pub struct RequestParts<'a> {
    pub request: &'a str,
    pub params: Option<&'a Map<String, Value>>,
    pub query: Vec<(String, Scalar)>,
    pub headers: Vec<(&'a str, &'a str)>,
    pub encoding: Encoding,
    pub optional_body: bool,
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
    /// Reads and compiles the parts; the error is for their author.
    pub fn compile(parts: &RequestParts<'_>) -> Result<Self, String> {
        let line =
            RequestLine::parse(parts.request).ok_or_else(|| format!("`{}` is not `METHOD /path` or `METHOD https://…`", parts.request))?;
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
            (None, None) => Body::Params { optional: parts.optional_body },
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
    pub fn slim(&mut self) {
        self.params.iter_mut().for_each(|param| {
            param.about = None;
            param.lookup = None;
        });
        self.params.shrink_to_fit();
    }

    pub fn line(&self) -> &RequestLine {
        &self.line
    }

    /// The names that body templates read; `None` when the body is just the parameters.
    pub fn template_variables(&self) -> Option<Vec<String>> {
        match &self.body {
            Body::Template(template) | Body::Graphql { variables: Some(template), .. } => Some(template.variables()),
            Body::Params { .. } | Body::Graphql { variables: None, .. } => None,
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
                ParamLocation::Query => query.flatten(&param.wire, value, param.style),
                ParamLocation::Header => {
                    let name: HeaderName = param.wire.parse().map_err(|_| BuildError::BadHeader(param.name.clone()))?;
                    put_header(&mut headers, name, &simple(&param.name, value)?, false)?;
                }
                ParamLocation::Cookie => put_cookie(&mut headers, &param.wire, &simple(&param.name, value)?)?,
                ParamLocation::Path | ParamLocation::Body | ParamLocation::Content | ParamLocation::Named => {}
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
            Body::Params { .. } if let Some(param) = values.content() => values.argument(param).cloned(),
            Body::Params { optional } => {
                let fields = values.body_fields();
                if fields.is_empty() && (*optional || self.line.is_bodiless()) {
                    return Ok(Bytes::new());
                }
                if fields.is_empty() && !self.params.iter().any(|param| param.place == ParamLocation::Body) {
                    return Ok(Bytes::new());
                }
                Some(Value::Object(fields))
            }
            Body::Template(template) => {
                template.render(&values.context(), &Budget::default()).map_err(|error| BuildError::Body(error.to_string()))?
            }
            Body::Graphql { document, variables } => {
                let variables = match variables {
                    Some(template) => {
                        template.render(&values.context(), &Budget::default()).map_err(|error| BuildError::Body(error.to_string()))?
                    }
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
            Encoding::Text => {
                headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("text/plain; charset=utf-8"));
                simple("body", &content).map(Bytes::from)
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
        let value = values.fill(text, Fill::Raw)?;
        if name == COOKIE {
            add_cookie(headers, &value)?;
        } else {
            put_header(headers, name, &value, true)?;
        }
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

/// A cookie of an argument: nothing in it can end it or begin another.
fn put_cookie(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), BuildError> {
    if value.bytes().any(|byte| !byte.is_ascii_graphic() || matches!(byte, b';' | b',' | b'"' | b'\\')) {
        return Err(BuildError::BadHeader(name.to_owned()));
    }
    add_cookie(headers, &format!("{name}={value}"))
}

/// Cookies share one header.
fn add_cookie(headers: &mut HeaderMap, pair: &str) -> Result<(), BuildError> {
    let others = headers.get(COOKIE).and_then(|cookies| cookies.to_str().ok());
    let cookies = others.map_or_else(|| pair.to_owned(), |others| format!("{others}; {pair}"));
    put_header(headers, COOKIE, &cookies, true)
}

fn put_header(headers: &mut HeaderMap, name: HeaderName, value: &str, sensitive: bool) -> Result<(), BuildError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| BuildError::BadHeader(name.to_string()))?;
    value.set_sensitive(sensitive);
    headers.insert(name, value);
    Ok(())
}
