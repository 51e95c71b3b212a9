//! The key by which a service knows a repeated request: where it goes, and what may be sent again because of it. Pure.

use std::borrow::Cow;

use calls::UpstreamKey;
use egress::Retry;
use http::HeaderName;
use kernel::schema::Schema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Operation;

/// As long as the keys are that calls bring.
const SAMPLE: &str = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

/// Where a service takes a key by which it knows a repeated request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idempotency {
    /// In a header of this name.
    Header(String),
    /// In this parameter, when the caller leaves it out.
    Param(String),
}

/// Where a request takes its key.
#[derive(Debug)]
pub enum KeyLocation {
    Header(HeaderName),
    /// A parameter, and the most characters it takes.
    Param {
        name: String,
        longest: usize,
    },
}

impl KeyLocation {
    /// Reads the place and holds it against the request; the error is for its author.
    pub fn read(place: &Idempotency, operation: &Operation) -> Result<Self, String> {
        match place {
            Idempotency::Header(name) => name.parse().map(Self::Header).map_err(|_| format!("idempotency: `{name}` is not a header name")),
            Idempotency::Param(name) => {
                let param = operation.params().iter().find(|param| param.name == *name);
                let param = param.ok_or_else(|| format!("idempotency: `{name}` is not a parameter"))?;
                let longest = key_length(param.schema())
                    .filter(|_| !param.required)
                    .ok_or_else(|| format!("idempotency: parameter `{name}` must be an optional text that a UUID fits, whole or cut"))?;
                Ok(Self::Param { name: param.name.clone(), longest })
            }
        }
    }
}

/// How many characters of a key a parameter with this schema takes, if any.
pub fn key_length(schema: Map<String, Value>) -> Option<usize> {
    let longest = schema.get("maxLength").and_then(Value::as_u64).and_then(|longest| usize::try_from(longest).ok());
    let longest = longest.unwrap_or(SAMPLE.len()).min(SAMPLE.len());
    let is_text = schema.get("type").is_none_or(|kind| kind == "string");
    let schema = Schema::compile(&Value::Object(schema)).ok()?;
    // What is shorter than this would soon be the same for different calls.
    (is_text && longest >= 16 && schema.check(&SAMPLE[..longest].into()).is_ok()).then_some(longest)
}

/// A request with its key.
pub(crate) struct Keyed<'a> {
    pub(crate) arguments: Cow<'a, Map<String, Value>>,
    pub(crate) header: Option<(&'a HeaderName, &'a str)>,
    pub(crate) retry: Retry,
}

impl<'a> Keyed<'a> {
    /// Puts the key where the action takes it. What the caller says itself stays as it is.
    pub(crate) fn new(place: Option<&'a KeyLocation>, key: &'a dyn UpstreamKey, arguments: &'a Map<String, Value>) -> Self {
        let mut keyed = Self { arguments: Cow::Borrowed(arguments), header: None, retry: Retry::Keyed };
        match place {
            None => keyed.retry = Retry::Safe,
            Some(KeyLocation::Header(name)) => keyed.header = Some((name, key.get())),
            Some(KeyLocation::Param { name, longest }) => {
                if arguments.get(name).is_none_or(Value::is_null) {
                    keyed.arguments.to_mut().insert(name.clone(), key.get().chars().take(*longest).collect::<String>().into());
                }
            }
        }
        keyed
    }
}
