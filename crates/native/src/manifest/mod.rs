//! The integration manifest: the YAML file as types. `docs/integrations.md` is its reference.

mod check;
mod event;

use std::collections::BTreeMap;

use catalog::auth::AuthScheme;
use operations::{AccountSpec, ActionSpec, Failure, Idempotency};
use serde::Deserialize;

pub use check::{Finding, check};
pub use event::{
    Algorithm, Challenge, Echo, EchoSource, EventSpec, KeyEncoding, Pages, Pairs, Pointers, Poll, Registration, Signature,
    SignatureEncoding, SignatureSecret, Since, Source, Webhook, Webhooks,
};

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
    pub account: Option<AccountSpec>,
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

/// How often the provider lets one account call.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    pub requests: u32,
    pub seconds: u32,
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
