//! The integration manifest: the YAML file as types. `docs/integrations.md` is its reference.

mod check;
mod event;
mod output;
mod param;

use std::collections::BTreeMap;

use catalog::auth::AuthScheme;
use serde::Deserialize;
use serde_json::{Map, Value};

pub use check::{Finding, check};
pub use event::{
    Algorithm, Challenge, Echo, EchoSource, EventSpec, KeyEncoding, Pages, Pairs, Pointers, Poll, Registration, Signature,
    SignatureEncoding, SignatureSecret, Since, Source, Webhook, Webhooks,
};
pub use output::output_schema;
pub use param::{Param, Place, Style, input_schema};

/// One integration, as its file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub key: String,
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub docs: Option<String>,
    #[serde(default)]
    pub logo: Option<String>,
    #[serde(default)]
    pub categories: Vec<String>,
    #[serde(default)]
    pub aliases: Vec<String>,
    pub base_url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub auth: Vec<AuthScheme>,
    #[serde(default)]
    pub account: Option<Account>,
    #[serde(default)]
    pub failure: Option<Failure>,
    #[serde(default)]
    pub rate_limit: Option<RateLimit>,
    #[serde(default)]
    pub idempotency: Option<Idempotency>,
    #[serde(default)]
    pub webhooks: Option<Webhooks>,
    #[serde(default)]
    pub actions: Vec<ActionSpec>,
    #[serde(default)]
    pub events: Vec<EventSpec>,
}

/// A cheap call that proves a credential and tells whose it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    pub request: String,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub label: Option<String>,
}

/// When a reply with a good status is a failure all the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub when: String,
    #[serde(default)]
    pub equals: Option<Value>,
    #[serde(default)]
    pub message: Option<String>,
}

/// Where a service takes a key by which it knows a repeated request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idempotency {
    /// In a header of this name.
    Header(String),
    /// In this parameter, when the caller leaves it out.
    Param(String),
}

/// How often the provider lets one account call.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    pub requests: u32,
    pub seconds: u32,
}

/// One action, as the file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionSpec {
    pub key: String,
    pub name: String,
    pub description: String,
    pub use_cases: Vec<String>,
    pub request: String,
    #[serde(default)]
    pub params: Map<String, Value>,
    #[serde(default)]
    pub query: BTreeMap<String, Scalar>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub encoding: Encoding,
    /// Whether nothing at all is sent when no parameter of the body is given.
    #[serde(default)]
    pub optional_body: bool,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub graphql: Option<String>,
    #[serde(default)]
    pub result: Option<String>,
    #[serde(default)]
    pub read_only: Option<bool>,
    #[serde(default)]
    pub destructive: Option<bool>,
    #[serde(default)]
    pub scopes: Vec<String>,
    #[serde(default)]
    pub pagination: Option<Pagination>,
    /// Where it takes a key, if that is not where the integration says.
    #[serde(default)]
    pub idempotency: Option<Idempotency>,
    #[serde(default)]
    pub output: Option<Map<String, Value>>,
    /// The whole JSON Schema of the result, in place of the short form.
    #[serde(default)]
    pub output_schema: Option<Value>,
    #[serde(default)]
    pub pitfalls: Vec<String>,
}

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

/// How the next page is asked for; a hint for agents.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "style", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pagination {
    Page {
        param: String,
        #[serde(default)]
        size: Option<String>,
    },
    Offset {
        param: String,
        #[serde(default)]
        size: Option<String>,
    },
    Cursor {
        param: String,
        next: String,
        #[serde(default)]
        size: Option<String>,
    },
    Link,
}

/// A method and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub method: http::Method,
    pub target: String,
}

impl Line {
    /// Reads `GET /path` or `GET https://host/path`.
    pub fn parse(text: &str) -> Option<Self> {
        let (method, target) = text.split_once(' ')?;
        let method: http::Method = method.parse().ok()?;
        let known = matches!(method.as_str(), "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE");
        let placed = target.starts_with('/') || target.starts_with("https://");
        (known && placed && !target.contains(char::is_whitespace)).then(|| Self { method, target: target.to_owned() })
    }

    /// Whether the parameters go into the query string by default.
    pub fn is_bodiless(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "DELETE")
    }
}

impl ActionSpec {
    pub fn line(&self) -> Option<Line> {
        Line::parse(&self.request)
    }

    pub fn is_read_only(&self) -> bool {
        self.read_only.unwrap_or_else(|| self.line().is_some_and(|line| matches!(line.method.as_str(), "GET" | "HEAD")))
    }

    /// Where this action takes a key: as it says itself, else as the integration does for every POST that changes something.
    pub fn idempotency<'a>(&'a self, integration: Option<&'a Idempotency>) -> Option<&'a Idempotency> {
        let usual = || integration.filter(|_| !self.is_read_only() && self.line().is_some_and(|line| line.method == http::Method::POST));
        self.idempotency.as_ref().or_else(usual)
    }

    pub fn is_destructive(&self) -> bool {
        self.destructive.unwrap_or_else(|| self.line().is_some_and(|line| line.method == http::Method::DELETE))
    }
}

/// A file that is not a manifest.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ManifestError(String);

impl Manifest {
    /// Reads a manifest from YAML.
    pub fn parse(yaml: &str) -> Result<Self, ManifestError> {
        serde_saphyr::from_str(yaml).map_err(|error| ManifestError(error.to_string()))
    }
}

/// The names in `{braces}` of a text.
pub fn placeholders(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        rest = &rest[start + 1..];
        let Some(end) = rest.find('}') else { break };
        names.push(&rest[..end]);
        rest = &rest[end + 1..];
    }
    names
}
