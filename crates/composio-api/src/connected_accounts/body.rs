//! Connected accounts as Composio shows them. Secrets are masked; what its models require is there as text.

use connections::{Connection, ConnectionState};
use document::ToSchema;
use kernel::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::auth_configs::{AuthConfig, MASKED};
use crate::choice::status;
use crate::{ids, schemes};

/// A connected account.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ConnectedAccount)]
pub struct AccountBody {
    pub id: String,
    pub user_id: String,
    /// `INITIATED`, `ACTIVE`, `FAILED`, `EXPIRED` or `REVOKED`.
    pub status: &'static str,
    #[schema(required)]
    pub status_reason: Option<String>,
    pub is_disabled: bool,
    pub toolkit: AccountToolkit,
    pub auth_config: AccountAuthConfig,
    pub state: AccountState,
    /// The same as `state.val`.
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
    /// The same, for older clients; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub params: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    pub experimental: AccountSharing,
    pub deprecated: AccountUuid,
    pub created_at: String,
    pub updated_at: String,
}

/// The toolkit of an account.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AccountToolkit)]
pub struct AccountToolkit {
    pub slug: String,
}

/// The auth config that an account was made with.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AccountAuthConfig)]
pub struct AccountAuthConfig {
    pub id: String,
    pub auth_scheme: &'static str,
    pub is_composio_managed: bool,
    pub is_disabled: bool,
}

impl AccountAuthConfig {
    pub(crate) fn of(config: &AuthConfig) -> Self {
        Self {
            id: ids::AUTH_CONFIG.show(config.id),
            auth_scheme: schemes::word_of_name(&config.scheme),
            is_composio_managed: config.is_managed,
            is_disabled: !config.is_enabled,
        }
    }
}

/// How an account is connected, with masked values.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AccountState)]
pub struct AccountState {
    #[serde(rename = "authScheme")]
    pub auth_scheme: &'static str,
    #[schema(value_type = Object)]
    pub val: Map<String, Value>,
}

/// Accounts are never shared between users here.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AccountSharing)]
pub struct AccountSharing {
    /// Always `PRIVATE`.
    pub account_type: &'static str,
}

/// The id in an older form.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AccountUuid)]
pub struct AccountUuid {
    pub uuid: Uuid,
    #[schema(value_type = Vec<String>)]
    pub labels: [String; 0],
}

impl AccountBody {
    pub(crate) fn of(row: &Connection, toolkit: &str, config: &AuthConfig, user: &str, now: Timestamp) -> Self {
        let (state, reason) = row.state(now);
        let val = values(row, state, "");
        Self {
            id: ids::ACCOUNT.show(row.id),
            user_id: user.to_owned(),
            status: status(state),
            status_reason: reason.map(str::to_owned),
            is_disabled: !row.is_active,
            toolkit: AccountToolkit { slug: toolkit.to_owned() },
            auth_config: AccountAuthConfig::of(config),
            state: AccountState { auth_scheme: word(row), val: val.clone() },
            data: val.clone(),
            params: Some(val),
            alias: row.alias.clone(),
            experimental: AccountSharing { account_type: "PRIVATE" },
            deprecated: AccountUuid { uuid: row.id.uuid(), labels: [] },
            created_at: row.created_at.to_string(),
            updated_at: row.updated_at.to_string(),
        }
    }

    pub(crate) fn in_list(self) -> Self {
        Self { params: None, ..self }
    }
}

pub(crate) fn word(row: &Connection) -> &'static str {
    schemes::word_of_name(row.auth_scheme.as_deref().unwrap_or("none"))
}

/// What `val` shows: the status, what is no secret, and masks where SDKs look for a credential. `link` is told once, to whoever begins.
pub(crate) fn values(row: &Connection, state: ConnectionState, link: &str) -> Map<String, Value> {
    let scheme = word(row);
    let mut val: Map<String, Value> = row.known_fields().iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    val.insert("status".to_owned(), json!(status(state)));
    let masked: &[&str] = match (state, scheme) {
        (ConnectionState::Connected, "OAUTH2") => &["access_token"],
        (ConnectionState::Connected, "S2S_OAUTH2") => &["access_token", "client_secret"],
        (ConnectionState::Connected, "BEARER_TOKEN") => &["token"],
        (ConnectionState::Connected, "BASIC") => &["password"],
        (ConnectionState::Connected, "API_KEY") => &["api_key", "generic_api_key"],
        _ => &[],
    };
    for name in masked {
        val.insert((*name).to_owned(), json!(MASKED));
    }
    if scheme == "BASIC" && !val.contains_key("username") {
        val.insert("username".to_owned(), json!(""));
    }
    if state == ConnectionState::Connected
        && let Some(scopes) = &row.granted
    {
        val.insert("scope".to_owned(), json!(scopes.join(" ")));
    }
    if state == ConnectionState::Waiting {
        for name in ["redirectUrl", "redirect_url"] {
            val.insert(name.to_owned(), json!(link));
        }
    }
    val
}

/// A link to connect an account.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ConnectLink)]
pub struct LinkBody {
    /// Names the link; nothing is asked with it.
    pub link_token: String,
    pub redirect_url: String,
    pub expires_at: String,
    pub connected_account_id: String,
    pub experimental: AccountSharing,
}

/// An account that was begun, or connected at once.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::InitiatedAccount)]
pub struct InitiatedBody {
    pub id: String,
    pub status: &'static str,
    #[serde(rename = "connectionData")]
    pub connection_data: AccountState,
    #[schema(required)]
    pub redirect_url: Option<String>,
    #[schema(required)]
    pub redirect_uri: Option<String>,
    pub experimental: AccountSharing,
}

/// That an account was changed.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ChangedAccount)]
pub struct ChangedBody {
    pub success: bool,
    pub id: String,
    pub status: &'static str,
}

/// That something was done.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = composio::Success)]
pub struct SuccessBody {
    pub success: bool,
}

/// What refreshing an account came to.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::RefreshedAccount)]
pub struct RefreshedBody {
    pub id: String,
    pub status: &'static str,
    /// Where a person has to go, if one is needed.
    #[schema(required)]
    pub redirect_url: Option<String>,
}

/// What revoking an account came to.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::RevokedAccount)]
pub struct RevokedBody {
    /// `access_token` or `refresh_token` where the provider took it back, `credential` where it was forgotten here only; none where it was revoked
    /// before.
    pub revoked_tokens: Vec<&'static str>,
    pub connected_account: RevokedAccount,
}

/// The account after that.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::RevokedAccountState)]
pub struct RevokedAccount {
    pub id: String,
    pub status: &'static str,
}
