//! A provider: what the operator says of it, what it says of itself, and the keys that it signs with.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use egress::{Egress, Request};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use kernel::{Clock, Slug, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::rules::Rule;
use crate::PeopleError;

const TIMEOUT: Duration = Duration::from_secs(10);
const LARGEST: usize = 512 << 10;
/// How long what a provider says of itself is believed; a key that it dropped is good for no longer.
const BELIEVED: Duration = Duration::from_hours(1);

/// How the client proves itself at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    Basic,
    Post,
}

/// A provider as the operator configures it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// In the address that it sends people back to.
    pub name: String,
    /// On the button.
    pub label: Option<String>,
    pub issuer: String,
    pub client_id: String,
    client_secret: Option<String>,
    pub client_auth: Option<ClientAuth>,
    /// Besides `openid`, `email` and `profile`.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The claim that lists groups [default: groups].
    pub groups_claim: Option<String>,
    #[serde(default)]
    pub rules: Vec<Rule>,
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig").field("name", &self.name).field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl ProviderConfig {
    /// What is wrong with it, if something is.
    pub fn problem(&self) -> Option<String> {
        let name = &self.name;
        if name.parse::<Slug>().is_err() {
            return Some(format!("`{name}` cannot be the name of a provider; use letters, digits and dashes"));
        }
        if !self.issuer.parse::<Url>().is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
            return Some(format!("the issuer of `{name}` is not a web address: `{}`", self.issuer));
        }
        if self.client_id.is_empty() {
            return Some(format!("`{name}` has no `client_id`"));
        }
        self.rules.iter().find_map(Rule::problem).map(|problem| format!("`{name}`: {problem}"))
    }

    /// The host that the operator named by the issuer, which may be a private one.
    pub fn host(&self) -> Option<String> {
        let url: Url = self.issuer.parse().ok()?;
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        Some(url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
    }
}

/// What a provider says of itself.
#[derive(Clone, Debug)]
pub(super) struct Metadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) userinfo_endpoint: Option<Url>,
    jwks_uri: Url,
    /// Whether it always names itself in its answers (RFC 9207).
    pub(super) names_itself: bool,
    takes_basic: bool,
}

#[derive(Clone, Debug)]
struct Believed {
    metadata: Metadata,
    keys: Vec<Value>,
    since: Timestamp,
}

/// One provider at work.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(super) config: ProviderConfig,
    pub(super) egress: Egress,
    clock: Clock,
    believed: Mutex<Option<Believed>>,
}

impl Provider {
    pub(crate) fn new(config: ProviderConfig, egress: Egress, clock: Clock) -> Self {
        Self { config, egress, clock, believed: Mutex::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn label(&self) -> &str {
        self.config.label.as_deref().unwrap_or(&self.config.name)
    }

    pub(super) fn failed(&self, why: impl fmt::Display) -> PeopleError {
        tracing::warn!(provider = self.name(), %why, "an identity provider could not be used");
        PeopleError::Provider { provider: self.label().to_owned(), why: why.to_string() }
    }

    /// What the provider says of itself, asked at most once an hour.
    pub(super) async fn metadata(&self) -> Result<Metadata, PeopleError> {
        Ok(self.believed(None).await?.metadata)
    }

    /// The keys that it signs with; newer ones than those of `seen`, if there are any.
    pub(super) async fn keys(&self, seen: Option<&[Value]>) -> Result<Vec<Value>, PeopleError> {
        Ok(self.believed(seen).await?.keys)
    }

    async fn believed(&self, outdated: Option<&[Value]>) -> Result<Believed, PeopleError> {
        let mut held = self.believed.lock().await;
        let now = self.clock.now();
        let is_good = |held: &&Believed| now < held.since.plus(BELIEVED) && outdated.is_none_or(|old| old != held.keys);
        if let Some(held) = held.as_ref().filter(is_good) {
            return Ok(held.clone());
        }
        let metadata = self.discover().await?;
        let document = self.get(metadata.jwks_uri.clone(), None).await?;
        let keys = document["keys"].as_array().cloned().ok_or_else(|| self.failed("its list of keys is none"))?;
        let fresh = Believed { metadata, keys, since: now };
        *held = Some(fresh.clone());
        Ok(fresh)
    }

    async fn discover(&self) -> Result<Metadata, PeopleError> {
        let issuer = self.config.issuer.trim_end_matches('/');
        let address = format!("{issuer}/.well-known/openid-configuration");
        let document = self.get(address.parse().map_err(|error| self.failed(error))?, None).await?;
        let named = document["issuer"].as_str().unwrap_or_default();
        if named.trim_end_matches('/') != issuer {
            return Err(self
                .failed(format!("it calls itself `{}`, which is not the configured issuer", named.chars().take(200).collect::<String>())));
        }
        let endpoint = |name: &str| document[name].as_str().and_then(|text| text.parse::<Url>().ok());
        let needed = |name: &str| endpoint(name).ok_or_else(|| self.failed(format!("it names no `{name}`")));
        let methods = document["token_endpoint_auth_methods_supported"].as_array();
        Ok(Metadata {
            issuer: named.to_owned(),
            authorization_endpoint: needed("authorization_endpoint")?,
            token_endpoint: needed("token_endpoint")?,
            userinfo_endpoint: endpoint("userinfo_endpoint"),
            jwks_uri: needed("jwks_uri")?,
            names_itself: document["authorization_response_iss_parameter_supported"] == true,
            takes_basic: methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic")),
        })
    }

    /// A JSON document, with a token of the person where it is theirs.
    pub(super) async fn get(&self, url: Url, token: Option<&SecretString>) -> Result<Value, PeopleError> {
        let mut request = Request::new(Method::GET, url).header(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            let bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
            request = request.header(AUTHORIZATION, bearer.map_err(|_| self.failed("its access token is no header"))?);
        }
        self.send(request).await
    }

    async fn send(&self, request: Request) -> Result<Value, PeopleError> {
        let response = self.egress.send(request.timeout(TIMEOUT).max_response(LARGEST)).await.map_err(|error| self.failed(error))?;
        let body: Option<Value> = serde_json::from_slice(&response.body).ok();
        match body {
            Some(body) if response.status.is_success() => Ok(body),
            Some(body) if body["error"].is_string() => {
                let error: String = body["error"].as_str().unwrap_or_default().chars().take(100).collect();
                Err(self.failed(format!("it answered `{error}` with status {}", response.status.as_u16())))
            }
            _ => Err(self.failed(format!("it answered with status {} and no JSON that helps", response.status.as_u16()))),
        }
    }

    /// Exchanges a code for tokens.
    pub(super) async fn tokens(&self, metadata: &Metadata, code: &str, redirect: &str, verifier: &str) -> Result<Value, PeopleError> {
        let mut form = vec![("grant_type", "authorization_code"), ("code", code), ("redirect_uri", redirect), ("code_verifier", verifier)];
        let mut request = Request::new(Method::POST, metadata.token_endpoint.clone())
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let usual = if metadata.takes_basic { ClientAuth::Basic } else { ClientAuth::Post };
        match (&self.config.client_secret, self.config.client_auth.unwrap_or(usual)) {
            (Some(secret), ClientAuth::Basic) => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = STANDARD.encode(format!("{}:{}", encoded(&self.config.client_id), encoded(secret)));
                let mut value = HeaderValue::from_str(&format!("Basic {pair}")).map_err(|error| self.failed(error))?;
                value.set_sensitive(true);
                request = request.header(AUTHORIZATION, value);
            }
            (Some(secret), ClientAuth::Post) => {
                form.extend([("client_id", self.config.client_id.as_str()), ("client_secret", secret)]);
            }
            (None, _) => {
                form.push(("client_id", &self.config.client_id));
            }
        }
        let form = Serializer::new(String::new()).extend_pairs(form).finish();
        self.send(request.body(form)).await
    }
}
