//! Connecting an account with an auth config: by a link that a person opens, or at once with a credential.

use std::collections::BTreeMap;

use accounts::AccountError;
use catalog::auth::AuthScheme;
use connections::{ConnectResult, ConnectionError, LinkOptions, NewConnection};
use document::ToSchema;
use kernel::{ConnectionId, Scope};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::body::{AccountSharing, AccountState, InitiatedBody, LinkBody, values, word};
use super::values::{claims_active, fields, is_complete};
use crate::auth_configs::AuthConfig;
use crate::choice::status;
use crate::{ApiError, ComposioApi, DEFAULT_USER, Refusal, ids};

const MAX_ADDRESS: usize = 2048;
/// In the address that people return to.
const ACCOUNT_PARAMETER: &str = "connected_account_id";

/// A request for a link to connect an account.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[schema(as = composio::CreateConnectLink)]
pub struct CreateLink {
    pub auth_config_id: String,
    pub user_id: String,
    /// Where the browser goes in the end.
    pub callback_url: Option<String>,
    pub alias: Option<String>,
    /// Fields of the scheme that are known beforehand.
    #[schema(value_type = Option<Object>)]
    pub connection_data: Option<Map<String, Value>>,
    #[schema(value_type = Option<Object>)]
    pub experimental: Option<Value>,
}

/// A request to connect an account.
#[derive(Clone, Deserialize, ToSchema)]
#[schema(as = composio::CreateConnectedAccount)]
pub struct CreateAccount {
    pub auth_config: AuthConfigOfAccount,
    #[serde(default)]
    pub connection: NewAccount,
}

/// An auth config by its id.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = composio::AuthConfigOfAccount)]
pub struct AuthConfigOfAccount {
    pub id: String,
}

/// The account as it shall be.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[schema(as = composio::NewConnectedAccount)]
pub struct NewAccount {
    pub user_id: Option<String>,
    #[serde(alias = "redirect_uri")]
    pub callback_url: Option<String>,
    pub alias: Option<String>,
    pub state: Option<NewAccountState>,
    /// The older form of `state.val`.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Map<String, Value>>,
    #[schema(value_type = Option<Object>)]
    pub experimental: Option<Value>,
}

/// A credential, by the fields of its scheme.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[schema(as = composio::NewAccountState)]
pub struct NewAccountState {
    #[serde(rename = "authScheme", alias = "auth_scheme")]
    pub auth_scheme: Option<String>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub val: Map<String, Value>,
}

impl std::fmt::Debug for CreateLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateLink").field("auth_config_id", &self.auth_config_id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for CreateAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateAccount").field("auth_config", &self.auth_config).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for NewAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewAccount").field("user_id", &self.user_id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for NewAccountState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewAccountState").field("auth_scheme", &self.auth_scheme).finish_non_exhaustive()
    }
}

/// What connecting an account begins with.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewConnect<'a> {
    pub(crate) user: &'a str,
    pub(crate) alias: Option<&'a str>,
    pub(crate) callback: Option<&'a str>,
    pub(crate) values: Map<String, Value>,
}

/// Accounts belong to one user, so they cannot be made for all.
fn not_shared(experimental: Option<&Value>) -> Result<(), Refusal> {
    let Some(experimental) = experimental else { return Ok(()) };
    if experimental.get("account_type").and_then(Value::as_str).is_some_and(|kind| kind != "PRIVATE") {
        return Err(Refusal::bad_request(
            "SHARED accounts are not served here; an account is one user's. Use the user `default` for the project's own.",
        ));
    }
    match experimental.get("acl_config_for_shared") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(acl_refused()),
    }
}

/// SDKs know it by its words.
pub(super) fn acl_refused() -> Refusal {
    Refusal::bad_request("acl_config_for_shared is only valid on SHARED connections; accounts here are PRIVATE.")
}

/// What a domain says against connecting, as Composio would: SDKs repeat what is a conflict.
pub(crate) fn refused(error: ConnectionError) -> ApiError {
    use ConnectionError as E;
    match error {
        E::AliasTaken(_)
        | E::Taken { .. }
        | E::TooManyOfUser(_)
        | E::Full(_)
        | E::Field(_)
        | E::Words(_)
        | E::NoApp(_)
        | E::UnknownScheme { .. } => Refusal::bad_request(error.to_string()).into(),
        other => other.into(),
    }
}

impl ComposioApi {
    /// A link that a person opens to connect an account.
    #[kernel::boxed]
    pub async fn create_link(&self, scope: Scope, request: CreateLink) -> Result<LinkBody, ApiError> {
        not_shared(request.experimental.as_ref())?;
        let config = self.auth_config(scope, &request.auth_config_id).await?;
        let new = NewConnect {
            user: &request.user_id,
            alias: request.alias.as_deref(),
            callback: request.callback_url.as_deref(),
            values: request.connection_data.unwrap_or_default(),
        };
        self.link(scope, &config, new).await
    }

    /// The same for a config that is known.
    pub(crate) async fn link(&self, scope: Scope, config: &AuthConfig, new: NewConnect<'_>) -> Result<LinkBody, ApiError> {
        let callback = new.callback.map(str::to_owned);
        let (id, begun) = self.connect(scope, config, new, false).await?;
        let account = ids::ACCOUNT.show(id);
        // Where there is nothing to ask a person, they may as well go back at once.
        let nowhere = || {
            let link =
                LinkOptions { return_to: callback.and_then(|url| url.parse().ok()), named: Some(named(id)), ..LinkOptions::default() };
            link.leads_to(id, true).map_or_else(|| self.parts().public_url.clone(), String::from)
        };
        let until = begun.connection.open_until().unwrap_or_else(|| self.parts().clock.now());
        Ok(LinkBody {
            link_token: account.replacen("ca_", "lk_", 1),
            redirect_url: begun.redirect_url.unwrap_or_else(nowhere),
            expires_at: until.to_string(),
            connected_account_id: account,
            experimental: AccountSharing { account_type: "PRIVATE" },
        })
    }

    /// Begins an account, or connects it at once where the credential is there.
    #[kernel::boxed]
    pub async fn create_account(&self, scope: Scope, request: CreateAccount) -> Result<InitiatedBody, ApiError> {
        let CreateAccount { auth_config, connection } = request;
        not_shared(connection.experimental.as_ref())?;
        let config = self.auth_config(scope, &auth_config.id).await?;
        let state = connection.state.unwrap_or_default();
        let own = crate::schemes::word_of_name(&config.scheme);
        if let Some(scheme) = state.auth_scheme.as_deref()
            && !scheme.eq_ignore_ascii_case(own)
            && scheme != "COMPOSIO_LINK"
        {
            let shown: String = scheme.chars().filter(|letter| !letter.is_control()).take(40).collect();
            return Err(Refusal::bad_request(format!("The auth config is for {own}, and `authScheme` is `{shown}`.")).into());
        }
        let mut sent = connection.data.unwrap_or_default();
        sent.extend(state.val);
        let must_work = claims_active(&sent);
        let new = NewConnect {
            user: connection.user_id.as_deref().unwrap_or(DEFAULT_USER),
            alias: connection.alias.as_deref(),
            callback: connection.callback_url.as_deref(),
            values: sent,
        };
        let (id, ConnectResult { connection: row, redirect_url, .. }) = self.connect(scope, &config, new, must_work).await?;
        let (state, _) = row.state(self.parts().clock.now());
        let val = values(&row, state, redirect_url.as_deref().unwrap_or_default());
        Ok(InitiatedBody {
            id: ids::ACCOUNT.show(id),
            status: status(state),
            connection_data: AccountState { auth_scheme: word(&row), val },
            redirect_uri: redirect_url.clone(),
            redirect_url,
            experimental: AccountSharing { account_type: "PRIVATE" },
        })
    }

    async fn connect(
        &self,
        scope: Scope,
        config: &AuthConfig,
        new: NewConnect<'_>,
        must_work: bool,
    ) -> Result<(ConnectionId, ConnectResult), ApiError> {
        if !config.is_enabled {
            let message = format!("Auth config `{}` is disabled.", ids::AUTH_CONFIG.show(config.id));
            return Err(Refusal::of_status(400, "Auth_Config_Disabled", message).fix("Enable it, or use another one.").into());
        }
        let integration = self.parts().catalog.reach_integration(scope.project, &config.provider, &config.integration).await?;
        let scheme = integration.schemes().find(|scheme| scheme.name() == config.scheme);
        let scheme =
            scheme.ok_or_else(|| Refusal::bad_request("The toolkit cannot be connected this way any more; make another auth config."))?;
        let id = ConnectionId::new();
        let link = self.link_options(scope, id, new.callback).await?;
        let mut known = self.open_fields(config)?;
        known.extend(fields(scheme, &new.values)?.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let is_complete = is_complete(scheme, &known);
        if must_work && !is_complete && !known.is_empty() && scheme.name() != "oauth2" {
            return Err(missing(scheme, &known).into());
        }
        let (credentials, known) = if is_complete && scheme.name() != "none" { (known, BTreeMap::new()) } else { (BTreeMap::new(), known) };
        let acting = self.acting_for(scope, new.user).await?;
        let new = NewConnection {
            id: Some(id),
            slug: ids::ACCOUNT.show(id).replacen('_', "-", 1),
            alias: new.alias.map(str::trim).filter(|alias| !alias.is_empty()).map(str::to_owned),
            provider: config.provider.clone(),
            integration: config.integration.clone(),
            auth_scheme: Some(config.scheme.clone()),
            credentials,
            known,
            scopes: config.scopes.clone(),
            auth_config: (!config.is_implied).then_some(config.id),
            app: config.app,
            link,
            ..NewConnection::default()
        };
        let begun = self.parts().connections.create(acting, new).await.map_err(refused)?;
        Ok((id, begun))
    }

    /// How a person is led: back to the caller's address, as far as the project allows it.
    pub(super) async fn link_options(&self, scope: Scope, id: ConnectionId, callback: Option<&str>) -> Result<LinkOptions, ApiError> {
        let Some(callback) = callback.map(str::trim).filter(|callback| !callback.is_empty()) else { return Ok(LinkOptions::default()) };
        if callback.len() > MAX_ADDRESS {
            return Err(Refusal::bad_request(format!("`callback_url` may have {MAX_ADDRESS} characters.")).into());
        }
        let links = self.parts().accounts.connect_links(scope.project).await.map_err(of_accounts)?;
        let return_to = links.return_address_or_any(callback).map_err(of_accounts)?;
        Ok(LinkOptions { return_to: Some(return_to), named: Some(named(id)), ..LinkOptions::default() })
    }
}

fn named(id: ConnectionId) -> (String, String) {
    (ACCOUNT_PARAMETER.to_owned(), ids::ACCOUNT.show(id))
}

fn of_accounts(error: AccountError) -> ApiError {
    match error {
        AccountError::Store(error) => error.into(),
        other => Refusal::bad_request(other.to_string().replacen("`return_to`", "`callback_url`", 1)).into(),
    }
}

fn missing(scheme: &AuthScheme, given: &BTreeMap<String, String>) -> Refusal {
    let wanted =
        scheme.fields().into_iter().filter(|(name, field)| !field.optional && field.default.is_none() && !given.contains_key(name));
    let names: Vec<String> = wanted.map(|(name, _)| name).collect();
    Refusal::bad_request(format!("The credential is not complete: `{}` is missing.", names.join("`, `")))
}
