//! Events: how a provider sends them, or how they are found by asking.

use std::collections::BTreeMap;

use operations::{Encoding, Scalar};
use serde::Deserialize;
use serde_json::{Map, Value};

/// How the integration sends its events.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhooks {
    #[serde(default)]
    pub register: Option<Registration>,
    #[serde(default)]
    pub unregister: Option<Registration>,
    #[serde(default)]
    pub setup_help: Option<String>,
    #[serde(default)]
    pub signature: Option<Signature>,
    #[serde(default)]
    pub event: Option<Source>,
    #[serde(default)]
    pub id: Option<Source>,
    #[serde(default)]
    pub challenge: Option<Challenge>,
}

/// A call that makes or removes a webhook at the provider.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    pub request: String,
    #[serde(default)]
    pub query: BTreeMap<String, Scalar>,
    #[serde(default)]
    pub encoding: Encoding,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub graphql: Option<String>,
    #[serde(default)]
    pub variables: Option<Value>,
    #[serde(default)]
    pub id: Option<String>,
}

/// Where a value stands in an incoming request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Header(String),
    Pointer(String),
}

/// How an incoming request is signed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    pub algorithm: Algorithm,
    #[serde(default)]
    pub header: Option<String>,
    #[serde(default)]
    pub pointer: Option<String>,
    #[serde(default)]
    pub encoding: SignatureEncoding,
    #[serde(default)]
    pub prefix: Option<String>,
    #[serde(default)]
    pub signed: Option<String>,
    #[serde(default)]
    pub timestamp: Option<String>,
    #[serde(default)]
    pub pairs: Option<Pairs>,
    #[serde(default)]
    pub tolerance: Option<u32>,
    #[serde(default)]
    pub secret: SignatureSecret,
    /// Whether webhooks that an OAuth connection makes are signed with the client secret of its app, whatever `secret` says.
    #[serde(default)]
    pub client_secret: bool,
    #[serde(default)]
    pub key: Option<KeyEncoding>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    HmacSha256,
    HmacSha1,
    Ed25519,
    Token,
    Basic,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum SignatureEncoding {
    #[default]
    Hex,
    Base64,
}

/// How the text of the secret becomes the key.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum KeyEncoding {
    Text,
    Hex,
    Base64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    pub timestamp: String,
    pub signature: String,
}

/// Whose secret signs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureSecret {
    #[default]
    Ours,
    Theirs,
    FromReply(String),
}

/// A verification request and the value it wants back.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Challenge {
    #[serde(default, rename = "match")]
    pub matching: BTreeMap<String, Value>,
    pub reply: Echo,
    #[serde(default)]
    pub token: Option<String>,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub secret: bool,
}

/// Where the value stands that a challenge wants back.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Echo {
    Pointer(String),
    Outside(EchoSource),
}

/// A place outside the body.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EchoSource {
    Header(String),
    Query(String),
}

/// One event, as the file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    pub key: String,
    pub name: String,
    pub description: String,
    pub use_cases: Vec<String>,
    #[serde(default)]
    pub config: Map<String, Value>,
    #[serde(default)]
    pub webhook: Option<Webhook>,
    #[serde(default)]
    pub poll: Option<Poll>,
    #[serde(default)]
    pub payload: Option<Map<String, Value>>,
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// Which incoming requests are this event.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    #[serde(default)]
    pub event: Option<String>,
    #[serde(default, rename = "match")]
    pub matching: BTreeMap<String, Value>,
}

/// How new items are found by asking.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    pub request: String,
    #[serde(default)]
    pub query: BTreeMap<String, Scalar>,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub graphql: Option<String>,
    pub items: String,
    pub id: Pointers,
    #[serde(default)]
    pub since: Option<Since>,
    #[serde(default)]
    pub pages: Option<Pages>,
    #[serde(default = "minute")]
    pub seconds: u32,
}

/// One place in an item, or several that count together.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Pointers {
    One(String),
    All(Vec<String>),
}

impl Pointers {
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(pointer) => std::slice::from_ref(pointer),
            Self::All(pointers) => pointers,
        }
    }
}

/// Asks only for what is newer than the newest item seen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Since {
    pub param: String,
    pub from: String,
}

/// How a poll reads on past the first page of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "style", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pages {
    /// By the number of the page.
    Page {
        param: String,
        #[serde(default = "one")]
        first: u64,
    },
    /// By the number of items before it.
    Offset { param: String },
    /// By what the page before says: a value, or an address with the parameter in it.
    Cursor { param: String, next: String },
}

impl Pages {
    pub fn param(&self) -> &str {
        match self {
            Self::Page { param, .. } | Self::Offset { param } | Self::Cursor { param, .. } => param,
        }
    }
}

fn one() -> u64 {
    1
}

fn minute() -> u32 {
    60
}
