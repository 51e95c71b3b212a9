//! An action as data: its words, its request and what its answer holds. Manifests and imports are written this way.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Encoding, Idempotency, Operation, RequestLine, RequestParts, Scalar};

/// One action, as it is written down.
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
    /// How much of what people do with the app this is: 3, the main thing, to 1.
    #[serde(default)]
    pub weight: Option<u8>,
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

impl ActionSpec {
    pub fn line(&self) -> Option<RequestLine> {
        RequestLine::parse(&self.request)
    }

    /// How often people mean it when they mean its app, from 0 to 1, as its weight says.
    pub fn usage(&self) -> Option<f32> {
        match self.weight? {
            3 => Some(1.0),
            2 => Some(0.7),
            1 => Some(0.4),
            _ => None,
        }
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

    /// Compiles its request, with the headers that all requests of its service share; the error is for its author.
    pub fn operation(&self, shared: &BTreeMap<String, String>) -> Result<Operation, String> {
        Operation::compile(&RequestParts {
            request: &self.request,
            params: Some(&self.params),
            query: self.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            headers: shared.iter().chain(&self.headers).map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            encoding: self.encoding,
            optional_body: self.optional_body,
            body: self.body.as_ref(),
            graphql: self.graphql.as_deref(),
            variables: None,
        })
    }
}
