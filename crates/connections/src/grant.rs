//! Grants: getting a credential, proving it, and knowing when it ends.

use std::sync::Arc;
use std::time::Duration;

use catalog::Integration;
use catalog::auth::{AuthScheme, ClientCredentials, Fields, OAuth2};
use kernel::{ProjectId, Timestamp};
use serde_json::{Value, json};

use crate::apps::{OAuthApp, Owner};
use crate::oauth::Client;
use crate::oauth::token::{TokenError, TokenReplyShape, TokenRequest, Tokens};
use crate::port::{Identity, Probe, ProbeError};
use crate::{Connection, ConnectionError, Connections};

/// A token is renewed this long before it expires, or a fifth of its life before, whichever is shorter.
const MARGIN: u64 = 60;

/// When a credential is to be renewed, when it ends, and what it was granted for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) refresh_at: Option<Timestamp>,
    pub(crate) expires_at: Option<Timestamp>,
    /// OAuth scopes, where the provider named them.
    pub(crate) scopes: Option<Vec<String>>,
}

impl Terms {
    /// A provider that names no scopes granted those that it was asked for (RFC 6749, section 5.1).
    pub(crate) fn or_asked(self, asked: &[String]) -> Self {
        let asked = || (!asked.is_empty()).then(|| asked.to_vec());
        Self { scopes: self.scopes.or_else(asked), ..self }
    }
}

impl Identity {
    /// What people recognise an account by.
    pub(crate) fn account(&self) -> Option<Value> {
        (self.id.is_some() || self.label.is_some()).then(|| json!({"id": self.id, "label": self.label}))
    }
}

impl Connection {
    /// The way it was connected, as long as the integration still has it.
    pub(crate) fn scheme<'a>(&self, integration: &'a Integration) -> Option<&'a Arc<AuthScheme>> {
        find_scheme(integration, self.auth_scheme.as_deref()?)
    }
}

impl Connections {
    /// The integration that a connection is for.
    pub(crate) async fn integration_of(&self, connection: &Connection) -> Result<Arc<Integration>, ConnectionError> {
        self.0.catalog.ready(connection.project).await?;
        Ok(self.0.catalog.reach_integration(connection.project, &connection.provider, &connection.integration).await?)
    }

    /// Gets the first token where the scheme needs one.
    pub(crate) async fn acquire(
        &self,
        integration: &Integration,
        scheme: &AuthScheme,
        fields: &mut Fields,
    ) -> Result<Terms, ConnectionError> {
        let AuthScheme::ClientCredentials(settings) = scheme else { return Ok(Terms::default()) };
        match self.client_credentials(settings, fields).await {
            Ok(tokens) => Ok(self.keep(fields, tokens, true).or_asked(&settings.scopes)),
            Err(TokenError::Gone(reason) | TokenError::Refused(reason)) => {
                Err(ConnectionError::Refused { integration: integration.name.clone(), reason })
            }
            Err(error) => Err(token_error(integration, error)),
        }
    }

    pub(crate) async fn client_credentials(&self, settings: &ClientCredentials, fields: &Fields) -> Result<Tokens, TokenError> {
        let client = Client {
            id: fields.get("client_id").unwrap_or_default().to_owned(),
            secret: fields.get("client_secret").unwrap_or_default().to_owned(),
            auth: settings.client_auth,
            body: settings.token_body,
        };
        let scopes = settings.scopes.join(&settings.scope_separator);
        let mut params = vec![("grant_type", "client_credentials")];
        if !scopes.is_empty() {
            params.push(("scope", scopes.as_str()));
        }
        let reading = TokenReplyShape { root: settings.token_root.as_deref(), lifetime: settings.lifetime, keep: &settings.keep };
        TokenRequest { endpoint: &settings.token_url, client: &client, params: &params, extra: &settings.token_params, reading, fields }
            .send(&self.0.egress)
            .await
    }

    /// Asks the provider whose credential this is.
    pub(crate) async fn prove(&self, integration: &Integration, scheme: &AuthScheme, fields: &Fields) -> Result<Identity, ConnectionError> {
        let Some(connector) = self.0.connectors.get(integration.provider) else { return Ok(Identity::default()) };
        connector.prove(Probe { integration, scheme, fields }).await.map_err(|error| match error {
            ProbeError::Refused(reason) => ConnectionError::Refused { integration: integration.name.clone(), reason },
            ProbeError::Unreachable(error) => ConnectionError::Unreachable { integration: integration.name.clone(), error },
            ProbeError::Server(status) => ConnectionError::UpstreamServer { integration: integration.name.clone(), status },
        })
    }

    /// Puts tokens among the fields. A reply without a refresh token keeps the one there is. What cannot be renewed is used to its end.
    pub(crate) fn keep(&self, fields: &mut Fields, tokens: Tokens, renewable: bool) -> Terms {
        let now = self.0.clock.now();
        fields.set("access_token", tokens.access_token);
        if let Some(refresh_token) = tokens.refresh_token {
            fields.set("refresh_token", refresh_token);
        }
        for (name, value) in tokens.kept {
            fields.set(name, value);
        }
        let renewable = renewable || fields.get("refresh_token").is_some();
        let margin = |life: u64| if renewable { MARGIN.min(life / 5) } else { 0 };
        let after = |seconds: u64| now.plus(Duration::from_secs(seconds));
        Terms {
            refresh_at: tokens.lifetime.map(|life| after(life - margin(life))),
            expires_at: tokens.lifetime.map(after),
            scopes: tokens.scopes,
        }
    }

    pub(crate) fn client(&self, app: &OAuthApp, oauth: &OAuth2) -> Result<Client, ConnectionError> {
        Ok(Client { id: app.client_id.clone(), secret: self.app_secret(app)?, auth: oauth.client_auth, body: oauth.token_body })
    }

    /// What to do when there is no OAuth app.
    pub(crate) fn no_app(&self, project: ProjectId, integration: &Integration, oauth: &OAuth2) -> ConnectionError {
        let help = oauth.app_help.as_deref().unwrap_or("Register an OAuth app at the provider.");
        let others: Vec<&str> =
            integration.schemes().filter(|scheme| scheme.wire_name() == Some("api_key")).map(AuthScheme::name).collect();
        let otherwise =
            if others.is_empty() { String::new() } else { format!(" Or connect with auth_scheme `{}`.", others.join("` or `")) };
        let name = match integration.provider {
            "native" => integration.key.clone(),
            provider => format!("{provider}/{}", integration.key),
        };
        ConnectionError::NoApp(format!(
            "The '{}' integration needs an OAuth app of yours. {help} Use the redirect URL {} (for an app of all projects: {}) and save the client id and secret with `toolyard oauth-app set {}` or {}.{otherwise}",
            integration.key,
            self.redirect_url(Owner::Project(project), integration.provider, &integration.key),
            self.redirect_url(Owner::Deployment, integration.provider, &integration.key),
            name,
            self.0.pages.save_app,
        ))
    }
}

pub(crate) fn reading(oauth: &OAuth2) -> TokenReplyShape<'_> {
    TokenReplyShape { root: oauth.token_root.as_deref(), lifetime: oauth.lifetime, keep: &oauth.keep }
}

pub(crate) fn oauth_scheme(integration: &Integration) -> Option<(&AuthScheme, &OAuth2)> {
    integration.schemes().find_map(|scheme| match scheme {
        AuthScheme::OAuth2(oauth) => Some((scheme, oauth)),
        _ => None,
    })
}

pub(crate) fn find_scheme<'a>(integration: &'a Integration, name: &str) -> Option<&'a Arc<AuthScheme>> {
    integration.auth.iter().find(|scheme| scheme.name() == name)
}

/// What a person should know about a typed credential that nothing was asked with.
pub(crate) fn not_checked(integration: &Integration, scheme: &AuthScheme, identity: &Identity) -> Option<String> {
    let is_proven =
        identity.is_checked || matches!(scheme, AuthScheme::OAuth2(_) | AuthScheme::ClientCredentials(_) | AuthScheme::Hosted(_));
    let text =
        || format!("The credential was not checked: {} has no call for that. The first call shows whether it works.", integration.name);
    (!is_proven).then(text)
}

pub(crate) fn token_error(integration: &Integration, error: TokenError) -> ConnectionError {
    let integration = integration.name.clone();
    match error {
        TokenError::Gone(reason) | TokenError::Refused(reason) => ConnectionError::Upstream { integration, message: reason },
        TokenError::Server(status) if status < 500 => {
            ConnectionError::Upstream { integration, message: format!("the token endpoint answered {status}; try again later") }
        }
        TokenError::Server(status) => ConnectionError::UpstreamServer { integration, status },
        TokenError::Unreachable(error) => ConnectionError::Unreachable { integration, error },
        TokenError::Malformed => {
            ConnectionError::Upstream { integration, message: "the token endpoint answered with something unreadable".to_owned() }
        }
    }
}
