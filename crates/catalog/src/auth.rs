//! How an integration's accounts are connected: the schemes, the fields they ask for, and where the credential goes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use kernel::Scrubber;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// One way to connect an account.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "scheme", rename_all = "snake_case")]
pub enum AuthScheme {
    #[serde(rename = "oauth2")]
    OAuth2(OAuth2),
    ClientCredentials(ClientCredentials),
    Bearer(Credentials),
    Basic(Credentials),
    ApiKey(Credentials),
    None(Credentials),
    /// Never written in a manifest: the provider says so.
    #[serde(skip)]
    Hosted(Hosted),
}

/// An account that the provider connects on a page of its own, and keeps.
#[derive(Clone, Debug)]
pub struct Hosted {
    /// The provider's name for the scheme.
    pub scheme: String,
    /// Whether its page leads to the service's consent; else it asks for a key.
    pub is_oauth: bool,
    /// Whether the provider has what it takes to connect, such as an OAuth app; else it has to be brought.
    pub is_managed: bool,
}

/// What every scheme may say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    #[serde(default)]
    pub fields: BTreeMap<String, Field>,
    #[serde(default)]
    pub send: Option<Send>,
    #[serde(default)]
    pub base_url: Option<String>,
}

/// OAuth2 authorization code, with the quirks of real providers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth2 {
    pub authorize_url: String,
    pub token_url: String,
    /// What the provider calls itself where it says so in its answers; without it, its origin is compared.
    #[serde(default)]
    pub issuer: Option<String>,
    /// Whether the provider promises to say who it is.
    #[serde(default)]
    pub sends_issuer: bool,
    #[serde(default)]
    pub revoke_url: Option<String>,
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Scopes that actions or events need and that are not asked for unless a connection names them.
    #[serde(default)]
    pub optional_scopes: Vec<String>,
    #[serde(default = "space")]
    pub scope_separator: String,
    #[serde(default = "scope")]
    pub scope_param: String,
    #[serde(default = "yes")]
    pub pkce: bool,
    #[serde(default)]
    pub client_auth: ClientAuth,
    #[serde(default)]
    pub authorize_params: BTreeMap<String, String>,
    #[serde(default)]
    pub token_params: BTreeMap<String, String>,
    #[serde(default)]
    pub refresh_url: Option<String>,
    #[serde(default)]
    pub token_root: Option<String>,
    #[serde(default)]
    pub token_body: TokenBody,
    #[serde(default)]
    pub lifetime: Option<u64>,
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    #[serde(default)]
    pub discover: Option<Box<Discover>>,
    #[serde(default)]
    pub app_help: Option<String>,
    /// Whether a project chose the addresses, by importing them.
    #[serde(default)]
    pub is_imported: bool,
    #[serde(default)]
    pub fields: BTreeMap<String, Field>,
    #[serde(default)]
    pub send: Option<Send>,
    #[serde(default)]
    pub base_url: Option<String>,
}

impl OAuth2 {
    /// Whether a project, or whoever connects, decides where the client's secret is sent.
    pub fn trusts_the_connection(&self) -> bool {
        let urls = [Some(&self.token_url), self.refresh_url.as_ref(), self.revoke_url.as_ref()];
        urls.into_iter().flatten().any(|url| self.is_imported || url.starts_with('{'))
    }
}

/// OAuth2 client credentials: the user's own client, no browser.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCredentials {
    pub token_url: String,
    #[serde(default)]
    pub scopes: Vec<String>,
    #[serde(default = "space")]
    pub scope_separator: String,
    #[serde(default)]
    pub client_auth: ClientAuth,
    #[serde(default)]
    pub token_params: BTreeMap<String, String>,
    #[serde(default)]
    pub token_body: TokenBody,
    #[serde(default)]
    pub token_root: Option<String>,
    #[serde(default)]
    pub lifetime: Option<u64>,
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    #[serde(default)]
    pub fields: BTreeMap<String, Field>,
    #[serde(default)]
    pub send: Option<Send>,
    #[serde(default)]
    pub base_url: Option<String>,
}

/// Where the client id and secret stand in a token request.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    #[default]
    Body,
    Basic,
}

/// How a token request is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum TokenBody {
    #[default]
    Form,
    Json,
}

/// A call made once with a new token, whose values become connection fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discover {
    pub request: String,
    pub keep: BTreeMap<String, String>,
}

/// Something that the user is asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default)]
    pub help: Option<String>,
    #[serde(default = "yes")]
    pub secret: bool,
    #[serde(default)]
    pub pattern: Option<String>,
    #[serde(default)]
    pub default: Option<String>,
    #[serde(default)]
    pub optional: bool,
}

/// Where a credential goes; the values hold `{connection.field}`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    #[serde(default)]
    pub basic: Option<BasicPair>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasicPair {
    pub username: String,
    pub password: String,
}

impl AuthScheme {
    /// The name of the scheme in a manifest.
    pub fn name(&self) -> &'static str {
        match self {
            Self::OAuth2(_) | Self::Hosted(Hosted { is_oauth: true, .. }) => "oauth2",
            Self::ClientCredentials(_) => "client_credentials",
            Self::Bearer(_) => "bearer",
            Self::Basic(_) => "basic",
            Self::ApiKey(_) | Self::Hosted(_) => "api_key",
            Self::None(_) => "none",
        }
    }

    /// The name of the scheme on the wire: `oauth` for what needs a browser, `api_key` for what can be typed, nothing for no auth.
    pub fn wire_name(&self) -> Option<&'static str> {
        match self {
            Self::OAuth2(_) | Self::Hosted(Hosted { is_oauth: true, .. }) => Some("oauth"),
            Self::None(_) => None,
            _ => Some("api_key"),
        }
    }

    pub fn base_url(&self) -> Option<&str> {
        match self {
            Self::OAuth2(scheme) => scheme.base_url.as_deref(),
            Self::ClientCredentials(scheme) => scheme.base_url.as_deref(),
            Self::Bearer(scheme) | Self::Basic(scheme) | Self::ApiKey(scheme) | Self::None(scheme) => scheme.base_url.as_deref(),
            Self::Hosted(_) => None,
        }
    }

    /// What the user is asked for, the scheme's own fields first.
    pub fn fields(&self) -> Vec<(String, Field)> {
        let (own, named): (&[(&str, &str)], _) = match self {
            Self::Hosted(_) => return Vec::new(),
            Self::OAuth2(scheme) => (&[], &scheme.fields),
            Self::ClientCredentials(scheme) => (&[("client_id", "Client ID"), ("client_secret", "Client secret")], &scheme.fields),
            Self::Bearer(scheme) => (&[("token", "Token")], &scheme.fields),
            Self::Basic(scheme) => (&[("username", "User name"), ("password", "Password")], &scheme.fields),
            Self::ApiKey(scheme) | Self::None(scheme) => (&[], &scheme.fields),
        };
        let mut fields: Vec<(String, Field)> = own
            .iter()
            .map(|&(name, label)| {
                let default = Field { secret: !matches!(name, "username" | "client_id"), ..Field::default() };
                let mut field = named.get(name).cloned().unwrap_or(default);
                field.label.get_or_insert_with(|| label.to_owned());
                (name.to_owned(), field)
            })
            .collect();
        fields.extend(named.iter().filter(|(name, _)| !own.iter().any(|(own, _)| own == name)).map(|(n, f)| (n.clone(), f.clone())));
        fields
    }

    /// Where the credential goes.
    pub fn send(&self) -> &Send {
        let (own, fallback) = match self {
            Self::Hosted(_) => return Send::nothing(),
            Self::OAuth2(scheme) => (&scheme.send, &*ACCESS_TOKEN),
            Self::ClientCredentials(scheme) => (&scheme.send, &*ACCESS_TOKEN),
            Self::Bearer(scheme) => (&scheme.send, &*TOKEN),
            Self::Basic(scheme) => (&scheme.send, &*BASIC),
            Self::ApiKey(scheme) | Self::None(scheme) => (&scheme.send, &*NOTHING),
        };
        own.as_ref().unwrap_or(fallback)
    }

    /// What takes the secrets among these fields out of a service's answer. What a connection only points at, such as a site, stays.
    pub fn scrubber(&self, fields: &Fields) -> Scrubber {
        let send = self.send();
        let asked = self.fields();
        let kept: Vec<&String> = match self {
            Self::OAuth2(scheme) => scheme.keep.keys().chain(scheme.discover.iter().flat_map(|discover| discover.keep.keys())).collect(),
            Self::ClientCredentials(scheme) => scheme.keep.keys().collect(),
            _ => Vec::new(),
        };
        let is_secret = |name: &str| match asked.iter().find(|(asked, _)| asked == name) {
            Some((_, field)) => field.secret,
            None => !kept.iter().any(|kept| *kept == name) || send.mentions(name),
        };
        let pair = send.basic.as_ref().map(|pair| format!("{}:{}", fields.fill(&pair.username), fields.fill(&pair.password)));
        Scrubber::new(fields.expose().filter(|(name, _)| is_secret(name)).map(|(_, value)| value).chain(pair.as_deref()))
    }

    /// The connection fields that exist once an account is connected with this scheme.
    pub fn field_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.fields().into_iter().map(|(name, _)| name).collect();
        match self {
            Self::OAuth2(scheme) => {
                names.push("access_token".to_owned());
                names.extend(scheme.keep.keys().cloned());
                names.extend(scheme.discover.iter().flat_map(|discover| discover.keep.keys().cloned()));
            }
            Self::ClientCredentials(scheme) => {
                names.push("access_token".to_owned());
                names.extend(scheme.keep.keys().cloned());
            }
            _ => {}
        }
        names
    }
}

static ACCESS_TOKEN: LazyLock<Send> = LazyLock::new(|| bearer("{connection.access_token}"));
static TOKEN: LazyLock<Send> = LazyLock::new(|| bearer("{connection.token}"));
static BASIC: LazyLock<Send> = LazyLock::new(basic);
static NOTHING: LazyLock<Send> = LazyLock::new(Send::default);

impl Send {
    /// Nothing to send.
    pub fn nothing() -> &'static Self {
        &NOTHING
    }

    /// Whether the field is part of the credential.
    fn mentions(&self, field: &str) -> bool {
        let place = format!("{{connection.{field}}}");
        let pair = self.basic.iter().flat_map(|pair| [&pair.username, &pair.password]);
        self.headers.values().chain(self.query.values()).chain(pair).any(|text| text.contains(&place))
    }
}

fn bearer(token: &str) -> Send {
    Send { headers: BTreeMap::from([("Authorization".to_owned(), format!("Bearer {token}"))]), ..Send::default() }
}

fn basic() -> Send {
    let pair = BasicPair { username: "{connection.username}".to_owned(), password: "{connection.password}".to_owned() };
    Send { basic: Some(pair), ..Send::default() }
}

fn space() -> String {
    " ".to_owned()
}

fn scope() -> String {
    "scope".to_owned()
}

fn yes() -> bool {
    true
}

/// The fields of one connection, secrets included. It cannot be printed.
#[derive(Clone, Default)]
pub struct Fields(BTreeMap<String, SecretString>);

impl Fields {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(ExposeSecret::expose_secret)
    }

    pub fn set(&mut self, name: impl Into<String>, value: impl Into<SecretString>) {
        self.0.insert(name.into(), value.into());
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What takes every value out of a text: what a service repeats of a credential is not ours to print.
    pub fn scrubber(&self) -> Scrubber {
        Scrubber::new(self.expose().map(|(_, value)| value))
    }

    /// The text with the fields in their places.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, value) in self.expose() {
            filled = filled.replace(&format!("{{connection.{name}}}"), value);
        }
        filled
    }

    /// Every name and value, for sealing.
    pub fn expose(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.expose_secret()))
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<N: Into<String>, V: Into<SecretString>> FromIterator<(N, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
