//! A credential that works now. Tokens are renewed before they expire and once after a 401: one flight per connection, across processes
//! too, and a new refresh token is kept before anyone uses the new access token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use catalog::Integration;
use catalog::auth::{AuthScheme, Fields};
use kernel::ConnectionId;
use uuid::Uuid;

use crate::attempt::{find_scheme, reading, token_error};
use crate::oauth::token::{TokenError, Tokens};
use crate::store::{self, Grant};
use crate::{Connection, ConnectionError, Connections};

/// How long a refresh may keep others waiting; longer than a token request may take.
const LEASE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(40);
/// How long to wait for somebody else's refresh.
const PATIENCE: Duration = Duration::from_secs(25);

/// A connection's fields, fresh enough to be used.
#[derive(Clone, Debug)]
pub struct Usable {
    pub fields: Fields,
    pub scheme: Option<AuthScheme>,
    generation: i64,
}

impl Usable {
    pub(crate) fn new(fields: Fields, scheme: Option<AuthScheme>, connection: &Connection) -> Self {
        Self { fields, scheme, generation: connection.generation }
    }
}

/// Refreshes under way in this process.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<ConnectionId, Weak<tokio::sync::Mutex<()>>>>);

impl Flights {
    fn of(&self, id: ConnectionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(&id).and_then(Weak::upgrade) {
            return flight;
        }
        flights.retain(|_, flight| flight.strong_count() > 0);
        let flight = Arc::default();
        flights.insert(id, Arc::downgrade(&flight));
        flight
    }
}

impl Connections {
    /// The credential of a connection, renewed first if it is about to expire.
    pub async fn usable(&self, connection: &Connection, integration: &Integration) -> Result<Usable, ConnectionError> {
        connection.require_usable()?;
        let now = self.clock.now();
        if connection.refresh_at.is_none_or(|at| at > now) {
            return self.unseal(connection, integration);
        }
        match self.renew(connection, integration).await {
            Ok(renewed) => self.unseal(&renewed, integration),
            Err(error) if is_passing(&error) && connection.expires_at.is_some_and(|at| at > now) => {
                tracing::warn!(connection = %connection.id, %error, "could not renew yet; the token still works");
                self.unseal(connection, integration)
            }
            Err(error) => Err(error),
        }
    }

    /// The credential after the provider refused the one in `used`; nothing when there is nothing to renew.
    pub async fn after_refusal(
        &self,
        connection: &Connection,
        integration: &Integration,
        used: &Usable,
    ) -> Result<Option<Usable>, ConnectionError> {
        let current = self.get(connection.project, connection.id).await?;
        current.require_usable()?;
        if current.generation != used.generation {
            return self.unseal(&current, integration).map(Some);
        }
        if !can_renew(&self.unseal(&current, integration)?) {
            return Ok(None);
        }
        let renewed = self.renew(&current, integration).await?;
        self.unseal(&renewed, integration).map(Some)
    }

    fn unseal(&self, connection: &Connection, integration: &Integration) -> Result<Usable, ConnectionError> {
        let fields = match &connection.credentials {
            Some(sealed) => store::open_fields(&self.sealer, connection.id, sealed)?,
            None => Fields::default(),
        };
        let scheme = connection.auth_scheme.as_deref().and_then(|name| find_scheme(integration, name)).cloned();
        Ok(Usable::new(fields, scheme, connection))
    }

    /// Renews the tokens, or waits for whoever does. The work goes on if the caller goes away.
    pub(crate) async fn renew(&self, connection: &Connection, integration: &Integration) -> Result<Connection, ConnectionError> {
        let (this, connection) = (self.clone(), connection.clone());
        let integration = self.catalog.integration(connection.project, integration.provider, &integration.key)?;
        self.undisturbed(async move { this.renew_in_turn(&connection, &integration).await }).await
    }

    async fn renew_in_turn(&self, seen: &Connection, integration: &Integration) -> Result<Connection, ConnectionError> {
        let flight = self.0.flights.of(seen.id);
        let _turn = flight.lock().await;
        let started = tokio::time::Instant::now();
        loop {
            let current = self.get(seen.project, seen.id).await?;
            current.require_usable()?;
            if current.generation != seen.generation {
                return Ok(current);
            }
            let now = self.clock.now();
            let lease = Uuid::now_v7();
            if store::take_lease(&self.db, &current, lease, now, now.plus(LEASE)).await? {
                return self.renew_now(&current, integration, lease).await;
            }
            if started.elapsed() > PATIENCE {
                let message = "another node has been renewing the token for too long; try again".to_owned();
                return Err(ConnectionError::Upstream { integration: integration.name.clone(), message });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn renew_now(&self, connection: &Connection, integration: &Integration, lease: Uuid) -> Result<Connection, ConnectionError> {
        let usable = self.unseal(connection, integration)?;
        match self.ask(connection, integration, &usable).await {
            Ok(tokens) => {
                let mut fields = usable.fields;
                let times = self.keep(&mut fields, tokens);
                let sealed = store::seal_fields(&self.sealer, connection.id, &fields);
                let scheme = connection.auth_scheme.as_deref().unwrap_or_default();
                let grant = Grant {
                    scheme,
                    app: connection.app,
                    sealed,
                    refresh_at: times.refresh_at,
                    expires_at: times.expires_at,
                    account: None,
                };
                store::finish_refresh(&self.db, connection, lease, &grant, self.clock.now()).await?;
                let current = self.get(connection.project, connection.id).await?;
                current.require_usable()?;
                Ok(current)
            }
            Err(TokenError::Gone(reason)) => {
                let text = format!("{} no longer accepts this grant ({reason}). Connect the account again.", integration.name);
                store::invalidate(&self.db, connection, &text, self.clock.now()).await?;
                Err(not_valid(&connection.slug, Some(&text)))
            }
            Err(error) => {
                store::drop_lease(&self.db, connection, lease).await?;
                Err(token_error(integration, error))
            }
        }
    }

    async fn ask(&self, connection: &Connection, integration: &Integration, usable: &Usable) -> Result<Tokens, TokenError> {
        let internal = |error: ConnectionError| match error {
            ConnectionError::Unreachable { error, .. } => TokenError::Unreachable(error),
            ConnectionError::UpstreamServer { status, .. } => TokenError::Server(status),
            other => TokenError::Refused(other.to_string()),
        };
        match &usable.scheme {
            Some(AuthScheme::ClientCredentials(settings)) => {
                self.client_credentials(integration, settings, &usable.fields).await.map_err(internal)
            }
            Some(AuthScheme::OAuth2(oauth)) => {
                let Some(refresh_token) = usable.fields.get("refresh_token") else {
                    return Err(TokenError::Gone("the access token has expired and there is no refresh token".to_owned()));
                };
                let app = self
                    .app_for(connection.project, &connection.provider, &connection.integration, connection.app)
                    .await
                    .map_err(internal)?;
                let app = app.ok_or_else(|| TokenError::Refused("its OAuth app was removed".to_owned()))?;
                let client = self.client(&app, oauth).map_err(internal)?;
                let params = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
                let endpoint = oauth.refresh_url.as_deref().unwrap_or(&oauth.token_url);
                self.try_tokens(endpoint, &client, &params, &oauth.token_params, reading(oauth), &usable.fields).await
            }
            _ => Err(TokenError::Refused("there is nothing to renew".to_owned())),
        }
    }
}

pub(crate) fn can_renew(usable: &Usable) -> bool {
    match usable.scheme {
        Some(AuthScheme::OAuth2(_)) => usable.fields.get("refresh_token").is_some(),
        Some(AuthScheme::ClientCredentials(_)) => true,
        _ => false,
    }
}

fn is_passing(error: &ConnectionError) -> bool {
    matches!(
        error,
        ConnectionError::Unreachable { .. }
            | ConnectionError::UpstreamServer { .. }
            | ConnectionError::Upstream { .. }
            | ConnectionError::Interrupted(_)
    )
}

impl Connection {
    /// Refuses a connection that calls cannot be made through, with the reason.
    pub fn require_usable(&self) -> Result<(), ConnectionError> {
        if !self.is_active {
            return Err(ConnectionError::Inactive(self.slug.clone()));
        }
        if !self.is_usable() {
            return Err(not_valid(&self.slug, self.reason.as_deref()));
        }
        Ok(())
    }
}

fn not_valid(slug: &str, reason: Option<&str>) -> ConnectionError {
    ConnectionError::NotValid { slug: slug.to_owned(), reason: reason.map(|reason| format!(" Reason: {reason}")).unwrap_or_default() }
}
