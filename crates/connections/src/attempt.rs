//! Attempts to connect: a signed, expiring, single-use link or state that belongs to one row.

use std::collections::BTreeMap;
use std::time::Duration;

use catalog::Integration;
use catalog::auth::{AuthScheme, Field, Fields, OAuth2};
use catalog::fill::fill_address;
use kernel::key::random_text;
use kernel::{AppId, ConnectionId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::apps::App;
use crate::oauth::Client;
use crate::oauth::authorize::Authorize;
use crate::oauth::token::{self, Reading, TokenError, Tokens};
use crate::port::{Identity, Probe, ProbeError};
use crate::store::{self, Grant, StoredAttempt};
use crate::{Connection, ConnectionError, Connections, HOSTED_PATH};

const LIFETIME: Duration = Duration::from_hours(1);
/// A token is renewed this long before it expires, or a fifth of its life before, whichever is shorter.
const MARGIN: u64 = 60;

/// What the link says: which row, which attempt.
#[derive(Debug, Serialize, Deserialize)]
struct Ticket {
    p: ProjectId,
    c: ConnectionId,
    n: String,
}

/// What is kept sealed until the attempt ends.
#[derive(Serialize, Deserialize)]
struct Secrets {
    scheme: String,
    verifier: Option<String>,
    app: Option<AppId>,
    fields: BTreeMap<String, String>,
}

/// An attempt that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) stored: StoredAttempt,
    pub(crate) redirect_url: String,
}

/// A connection whose attempt came to its end.
#[derive(Debug)]
pub struct Finished {
    pub connection: Connection,
    pub integration_name: String,
    pub logo: Option<String>,
    pub url: Option<String>,
}

/// What the page asks for.
#[derive(Clone, Debug)]
pub struct HostedForm {
    pub integration_name: String,
    pub logo: Option<String>,
    pub slug: String,
    pub fields: Vec<(String, Field)>,
}

/// Who an attempt is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) project: ProjectId,
    pub(crate) id: ConnectionId,
}

impl Connections {
    /// Starts an OAuth2 authorization.
    pub(crate) fn start_oauth(
        &self,
        target: Target,
        scheme: &OAuth2,
        app: &App,
        fields: &Fields,
        scopes: Option<&[String]>,
    ) -> Result<Started, ConnectionError> {
        let verifier = scheme.pkce.then(|| random_text(64));
        let (ticket, stored) = self.ticket(target, "oauth2", verifier.clone(), Some(app.id), fields);
        let endpoint = fill_address(&scheme.authorize_url, fields).map_err(|error| ConnectionError::Field(error.to_string()))?;
        let scopes = scopes.or(app.scopes.as_deref()).unwrap_or(&scheme.scopes);
        let authorize = Authorize {
            endpoint: &endpoint,
            client_id: &app.client_id,
            redirect_uri: &self.callback_url(),
            state: &ticket,
            scopes,
            verifier: verifier.as_deref(),
        };
        let url = authorize.url(scheme).ok_or_else(|| ConnectionError::Field(format!("`{endpoint}` is not a web address")))?;
        Ok(Started { stored, redirect_url: url.into() })
    }

    /// Starts a form where a person types the credential.
    pub(crate) fn start_form(&self, target: Target, scheme: &AuthScheme) -> Started {
        let (ticket, stored) = self.ticket(target, scheme.name(), None, None, &Fields::default());
        Started { stored, redirect_url: format!("{}{HOSTED_PATH}/{ticket}", self.public_url) }
    }

    fn ticket(
        &self,
        target: Target,
        scheme: &str,
        verifier: Option<String>,
        app: Option<AppId>,
        fields: &Fields,
    ) -> (String, StoredAttempt) {
        let nonce = random_text(24);
        let fields = fields.expose().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let secrets = json!(Secrets { scheme: scheme.to_owned(), verifier, app, fields }).to_string();
        let sealed = self.sealer.seal(secrets.as_bytes(), store::place(target.id, "attempt_data"));
        let ticket = json!(Ticket { p: target.project, c: target.id, n: nonce.clone() }).to_string();
        (self.signer.sign(ticket.as_bytes()), StoredAttempt { nonce, until: self.clock.now().plus(LIFETIME), sealed })
    }

    /// The row and the secrets of a ticket that is ours, unused and in time.
    async fn redeem(&self, ticket: &str) -> Result<(Ticket, Secrets, Connection), ConnectionError> {
        let payload = self.signer.verify(ticket).ok_or(ConnectionError::BadAttempt)?;
        let ticket: Ticket = serde_json::from_slice(&payload).map_err(|_| ConnectionError::BadAttempt)?;
        let sealed =
            store::open_attempt(&self.db, ticket.p, ticket.c, &ticket.n, self.clock.now()).await?.ok_or(ConnectionError::BadAttempt)?;
        let plain = self.sealer.open(&sealed, store::place(ticket.c, "attempt_data"))?;
        let secrets: Secrets = serde_json::from_slice(&plain).map_err(|_| ConnectionError::BadAttempt)?;
        let connection = store::by_id(&self.db, ticket.p, ticket.c).await?.ok_or(ConnectionError::BadAttempt)?;
        Ok((ticket, secrets, connection))
    }

    /// Ends an OAuth2 authorization: the provider sent the person back.
    pub async fn callback(&self, state: &str, code: Option<&str>, error: Option<&str>) -> Result<Finished, ConnectionError> {
        let (ticket, secrets, connection) = self.redeem(state).await?;
        if !store::take_attempt(&self.db, ticket.p, ticket.c, &ticket.n).await? {
            return Err(ConnectionError::BadAttempt);
        }
        let finished = match (error, code.filter(|code| !code.is_empty())) {
            (Some(error), _) => Err(ConnectionError::Denied(error.chars().filter(|c| !c.is_control()).take(300).collect())),
            (None, None) => Err(ConnectionError::Denied("Missing authorization code. Please try again.".to_owned())),
            (None, Some(code)) => {
                let (this, code) = (self.clone(), code.to_owned());
                self.undisturbed(async move { this.exchange(&connection, secrets, &code).await }).await
            }
        };
        if let Err(error) = &finished {
            store::note_failure(&self.db, ticket.p, ticket.c, &error.to_string()).await?;
        }
        finished
    }

    async fn exchange(&self, connection: &Connection, secrets: Secrets, code: &str) -> Result<Finished, ConnectionError> {
        let integration = self.catalog.integration(connection.project, &connection.provider, &connection.integration)?;
        let (scheme, oauth) = oauth_scheme(&integration).ok_or(ConnectionError::BadAttempt)?;
        let app = self.app_for(connection.project, &connection.provider, &connection.integration, secrets.app).await?;
        let app = app.ok_or_else(|| self.no_app(&integration, oauth))?;
        let client = self.client(&app, oauth)?;
        let mut fields: Fields = secrets.fields.into_iter().collect();
        let redirect_uri = self.callback_url();
        let mut params = vec![("grant_type", "authorization_code"), ("code", code), ("redirect_uri", redirect_uri.as_str())];
        params.extend(secrets.verifier.as_deref().map(|verifier| ("code_verifier", verifier)));
        let tokens = self.tokens(&integration, &oauth.token_url, &client, &params, &oauth.token_params, reading(oauth), &fields).await?;
        let times = self.keep(&mut fields, tokens);
        self.establish(connection, &integration, scheme, Some(app.id), fields, times).await
    }

    /// The form behind a link, as long as it is open.
    pub async fn hosted_form(&self, ticket: &str) -> Result<HostedForm, ConnectionError> {
        let (_, secrets, connection) = self.redeem(ticket).await?;
        let integration = self.catalog.integration(connection.project, &connection.provider, &connection.integration)?;
        let scheme = find_scheme(&integration, &secrets.scheme).ok_or(ConnectionError::BadAttempt)?;
        Ok(HostedForm {
            integration_name: integration.name.clone(),
            logo: integration.logo.clone(),
            slug: connection.slug,
            fields: scheme.fields(),
        })
    }

    /// Takes what a person typed. A credential that is refused leaves the link open for another try.
    pub async fn submit_form(&self, ticket: &str, values: BTreeMap<String, String>) -> Result<Finished, ConnectionError> {
        let (ticket, secrets, connection) = self.redeem(ticket).await?;
        let integration = self.catalog.integration(connection.project, &connection.provider, &connection.integration)?;
        let scheme = find_scheme(&integration, &secrets.scheme).ok_or(ConnectionError::BadAttempt)?;
        let mut fields = crate::create::check_fields(scheme, values)?;
        let times = self.acquire(&integration, scheme, &mut fields).await?;
        let identity = self.prove(&integration, scheme, &fields).await?;
        if !store::take_attempt(&self.db, ticket.p, ticket.c, &ticket.n).await? {
            return Err(ConnectionError::BadAttempt);
        }
        self.settle(&connection, &integration, scheme, None, fields, times, identity).await
    }

    /// Gets the first token where the scheme needs one.
    pub(crate) async fn acquire(
        &self,
        integration: &Integration,
        scheme: &AuthScheme,
        fields: &mut Fields,
    ) -> Result<Times, ConnectionError> {
        let AuthScheme::ClientCredentials(settings) = scheme else { return Ok(Times::default()) };
        let tokens = self.client_credentials(integration, settings, fields).await?;
        Ok(self.keep(fields, tokens))
    }

    /// Proves a fresh grant and makes the connection valid. A grant is proof in itself, so only an outright refusal stops it.
    async fn establish(
        &self,
        connection: &Connection,
        integration: &Integration,
        scheme: &AuthScheme,
        app: Option<AppId>,
        fields: Fields,
        times: Times,
    ) -> Result<Finished, ConnectionError> {
        let identity = match self.prove(integration, scheme, &fields).await {
            Err(ConnectionError::Unreachable { error, .. }) => {
                tracing::warn!(integration = integration.key, %error, "connected, but the account could not be read");
                Identity::default()
            }
            Err(ConnectionError::UpstreamServer { status, .. }) => {
                tracing::warn!(integration = integration.key, status, "connected, but the account could not be read");
                Identity::default()
            }
            proven => proven?,
        };
        self.settle(connection, integration, scheme, app, fields, times, identity).await
    }

    #[expect(clippy::too_many_arguments, reason = "a grant is made of these parts and nothing else uses them together")]
    async fn settle(
        &self,
        connection: &Connection,
        integration: &Integration,
        scheme: &AuthScheme,
        app: Option<AppId>,
        mut fields: Fields,
        times: Times,
        identity: Identity,
    ) -> Result<Finished, ConnectionError> {
        let account = account(&identity);
        identity.fields.into_iter().for_each(|(name, value)| fields.set(name, value));
        let sealed = store::seal_fields(&self.sealer, connection.id, &fields);
        let grant = Grant {
            scheme: scheme.name(),
            app,
            sealed,
            refresh_at: times.refresh_at,
            expires_at: times.expires_at,
            account: account.as_ref(),
        };
        if !store::set_grant(&self.db, connection.project, connection.id, &grant, self.clock.now()).await? {
            return Err(ConnectionError::BadAttempt);
        }
        let connection = store::by_id(&self.db, connection.project, connection.id).await?.ok_or(ConnectionError::BadAttempt)?;
        Ok(Finished {
            connection,
            integration_name: integration.name.clone(),
            logo: integration.logo.clone(),
            url: integration.url.clone(),
        })
    }

    /// Asks the provider whose credential this is.
    pub(crate) async fn prove(&self, integration: &Integration, scheme: &AuthScheme, fields: &Fields) -> Result<Identity, ConnectionError> {
        let Some(connector) = self.connectors.get(integration.provider) else { return Ok(Identity::default()) };
        connector.prove(Probe { integration, scheme, fields }).await.map_err(|error| match error {
            ProbeError::Refused(reason) => ConnectionError::Refused { integration: integration.name.clone(), reason },
            ProbeError::Unreachable(error) => ConnectionError::Unreachable { integration: integration.name.clone(), error },
            ProbeError::Server(status) => ConnectionError::UpstreamServer { integration: integration.name.clone(), status },
        })
    }

    #[expect(clippy::too_many_arguments, reason = "a token request is made of these parts")]
    pub(crate) async fn tokens(
        &self,
        integration: &Integration,
        endpoint: &str,
        client: &Client,
        params: &[(&str, &str)],
        extra: &BTreeMap<String, String>,
        reading: Reading<'_>,
        fields: &Fields,
    ) -> Result<Tokens, ConnectionError> {
        self.try_tokens(endpoint, client, params, extra, reading, fields).await.map_err(|error| token_error(integration, error))
    }

    pub(crate) async fn try_tokens(
        &self,
        endpoint: &str,
        client: &Client,
        params: &[(&str, &str)],
        extra: &BTreeMap<String, String>,
        reading: Reading<'_>,
        fields: &Fields,
    ) -> Result<Tokens, TokenError> {
        let endpoint = fill_address(endpoint, fields).map_err(|error| TokenError::Refused(error.to_string()))?;
        let extra: Vec<(&str, String)> = extra.iter().map(|(name, text)| (name.as_str(), fill_text(text, fields))).collect();
        let params: Vec<(&str, &str)> = params.iter().copied().chain(extra.iter().map(|(name, text)| (*name, text.as_str()))).collect();
        token::request(&self.egress, &endpoint, client, &params, reading).await
    }

    /// Puts tokens among the fields. A reply without a refresh token keeps the one there is.
    pub(crate) fn keep(&self, fields: &mut Fields, tokens: Tokens) -> Times {
        let now = self.clock.now();
        fields.set("access_token", tokens.access_token);
        if let Some(refresh_token) = tokens.refresh_token {
            fields.set("refresh_token", refresh_token);
        }
        for (name, value) in tokens.kept {
            fields.set(name, value);
        }
        let after = |seconds: u64| now.plus(Duration::from_secs(seconds));
        Times { refresh_at: tokens.lifetime.map(|life| after(life - MARGIN.min(life / 5))), expires_at: tokens.lifetime.map(after) }
    }

    pub(crate) fn client(&self, app: &App, oauth: &OAuth2) -> Result<Client, ConnectionError> {
        Ok(Client { id: app.client_id.clone(), secret: self.app_secret(app)?, auth: oauth.client_auth, body: oauth.token_body })
    }

    /// What to do when there is no OAuth app.
    pub(crate) fn no_app(&self, integration: &Integration, oauth: &OAuth2) -> ConnectionError {
        let help = oauth.app_help.as_deref().unwrap_or("Register an OAuth app at the provider.");
        let others: Vec<&str> =
            integration.auth.iter().filter(|scheme| scheme.wire_name() == Some("api_key")).map(AuthScheme::name).collect();
        let otherwise =
            if others.is_empty() { String::new() } else { format!(" Or connect with auth_scheme `{}`.", others.join("` or `")) };
        ConnectionError::NoApp(format!(
            "The '{}' integration needs an OAuth app of yours. {help} Use the redirect URL {} and save the client id and secret with `toolyard oauth-app set {}` or POST /tools/oauth-apps.{otherwise}",
            integration.key,
            self.callback_url(),
            integration.key
        ))
    }
}

/// When a credential is to be renewed and when it ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) refresh_at: Option<Timestamp>,
    pub(crate) expires_at: Option<Timestamp>,
}

/// What people recognise an account by.
pub(crate) fn account(identity: &Identity) -> Option<serde_json::Value> {
    let Identity { id, label, .. } = identity;
    (id.is_some() || label.is_some()).then(|| json!({"id": id, "label": label}))
}

pub(crate) fn reading(oauth: &OAuth2) -> Reading<'_> {
    Reading { root: oauth.token_root.as_deref(), lifetime: oauth.lifetime, keep: &oauth.keep }
}

pub(crate) fn oauth_scheme(integration: &Integration) -> Option<(&AuthScheme, &OAuth2)> {
    integration.auth.iter().find_map(|scheme| match scheme {
        AuthScheme::OAuth2(oauth) => Some((scheme, oauth)),
        _ => None,
    })
}

pub(crate) fn find_scheme<'a>(integration: &'a Integration, name: &str) -> Option<&'a AuthScheme> {
    integration.auth.iter().find(|scheme| scheme.name() == name)
}

fn fill_text(text: &str, fields: &Fields) -> String {
    let mut filled = text.to_owned();
    for (name, value) in fields.expose() {
        filled = filled.replace(&format!("{{connection.{name}}}"), value);
    }
    filled
}

pub(crate) fn token_error(integration: &Integration, error: TokenError) -> ConnectionError {
    let integration = integration.name.clone();
    match error {
        TokenError::Gone(reason) | TokenError::Refused(reason) => ConnectionError::Upstream { integration, message: reason },
        TokenError::Server(status) => ConnectionError::UpstreamServer { integration, status },
        TokenError::Unreachable(error) => ConnectionError::Unreachable { integration, error },
        TokenError::Malformed => {
            ConnectionError::Upstream { integration, message: "the token endpoint answered with something unreadable".to_owned() }
        }
    }
}
