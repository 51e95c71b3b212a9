//! A credential that works now. Tokens are renewed before they expire and once after a 401: one refresh per connection at a time, across
//! processes too, and a new refresh token is kept before anyone uses the new access token.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use catalog::Integration;
use catalog::auth::{AuthScheme, Fields};
use kernel::Scrubber;
use uuid::Uuid;

use crate::grant::{reading, token_error};
use crate::oauth::token::{TokenError, TokenRequest, Tokens};
use crate::store::{self, Grant};
use crate::{Connection, ConnectionError, Connections, HookEvent, renewing};

/// How long a refresh that says nothing more keeps others waiting. It is told again while the refresh goes on, so that only one that died
/// is waited for in vain, and not for long.
const LEASE: Duration = Duration::from_secs(8);
const BEAT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(40);
/// How long to wait for somebody else's refresh.
const PATIENCE: Duration = Duration::from_secs(25);
const WRITE_TRIES: u32 = 4;

/// A connection's fields, fresh enough to be used.
#[derive(Clone, Debug)]
pub struct Usable {
    pub fields: Fields,
    pub scheme: Option<Arc<AuthScheme>>,
    generation: i64,
    scrubber: OnceLock<Scrubber>,
}

impl Usable {
    /// Whether it can be renewed without a person.
    pub(crate) fn can_renew(&self) -> bool {
        match self.scheme.as_deref() {
            Some(AuthScheme::OAuth2(_)) => self.fields.get("refresh_token").is_some(),
            Some(AuthScheme::ClientCredentials(_)) => true,
            _ => false,
        }
    }

    /// Which of the row's credentials it is.
    pub(crate) fn generation(&self) -> i64 {
        self.generation
    }

    /// What takes its secrets out of a service's answer.
    pub fn scrubber(&self) -> &Scrubber {
        let made = || self.scheme.as_ref().map_or_else(|| self.fields.scrubber(), |scheme| scheme.scrubber(&self.fields));
        self.scrubber.get_or_init(made)
    }

    /// A credential that no row stands behind, for trying a provider.
    pub fn unstored(fields: Fields, scheme: Option<Arc<AuthScheme>>) -> Self {
        Self { fields, scheme, generation: 0, scrubber: OnceLock::new() }
    }

    /// Whether it is for this scheme, and not for one that was there before the integration changed.
    fn is_for(&self, scheme: Option<&Arc<AuthScheme>>) -> bool {
        match (self.scheme.as_ref(), scheme) {
            (Some(known), Some(scheme)) => Arc::ptr_eq(known, scheme),
            (known, scheme) => known.is_none() && scheme.is_none(),
        }
    }
}

/// How the last refresh failed, for those who were already waiting for it.
pub(crate) type LastFailure = Option<(Instant, TokenError)>;

impl Connections {
    /// The credential of a connection, renewed first if it is about to expire.
    #[kernel::boxed]
    pub async fn usable(&self, connection: &Connection, integration: &Integration) -> Result<Arc<Usable>, ConnectionError> {
        connection.require_usable()?;
        let now = self.0.clock.now();
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
    pub(crate) async fn after_refusal(
        &self,
        connection: &Connection,
        integration: &Integration,
        used: &Usable,
    ) -> Result<Option<Arc<Usable>>, ConnectionError> {
        if connection.is_implicit() {
            return Ok(None);
        }
        let current = self.get(connection.project, connection.id).await?;
        current.require_usable()?;
        if current.generation != used.generation {
            return self.unseal(&current, integration).map(Some);
        }
        let known = self.unseal(&current, integration)?;
        if let Some(AuthScheme::Hosted(_)) = known.scheme.as_deref() {
            self.check_hosted(&current, integration).await?;
        }
        if !known.can_renew() {
            return Ok(None);
        }
        let renewed = self.renew(&current, integration).await?;
        self.unseal(&renewed, integration).map(Some)
    }

    /// The credential in a row, which is opened once for all who were handed the same row.
    pub(crate) fn unseal(&self, connection: &Connection, integration: &Integration) -> Result<Arc<Usable>, ConnectionError> {
        let scheme = connection.scheme(integration);
        if let Some(opened) = connection.opened.get().filter(|opened| opened.is_for(scheme)) {
            return Ok(opened.clone());
        }
        let fields = match &connection.credentials {
            Some(sealed) => store::open_fields(&self.0.sealer, connection.id, sealed)?,
            None => Fields::default(),
        };
        let opened = Arc::new(Usable { generation: connection.generation, ..Usable::unstored(fields, scheme.cloned()) });
        // Another may have been first, which is as good.
        let _ = connection.opened.set(opened.clone());
        Ok(opened)
    }

    /// Renews the tokens, or waits for whoever does. The work goes on if the caller goes away.
    pub(crate) async fn renew(&self, connection: &Connection, integration: &Integration) -> Result<Connection, ConnectionError> {
        let (this, connection) = (self.clone(), connection.clone());
        let integration = self.0.catalog.integration(connection.project, integration.provider, &integration.key)?;
        let renewal = pin!(self.undisturbed(async move { this.renew_in_turn(&connection, &integration).await }));
        renewing::noted(renewal).await
    }

    async fn renew_in_turn(&self, seen: &Connection, integration: &Integration) -> Result<Connection, ConnectionError> {
        let queued = Instant::now();
        let mut turn = self.0.refreshes.lock(&seen.id).await;
        if let Some((ended, error)) = turn.as_ref().filter(|(ended, _)| *ended >= queued) {
            tracing::debug!(connection = %seen.id, since = ?ended.elapsed(), "shares the outcome of the refresh it waited for");
            return Err(token_error(integration, error.clone()));
        }
        loop {
            let current = self.get(seen.project, seen.id).await?;
            current.require_usable()?;
            if current.generation != seen.generation {
                return Ok(current);
            }
            let now = self.0.clock.now();
            let lease = Uuid::now_v7();
            if store::take_lease(&self.0.db, &current, lease, now, now.plus(LEASE)).await? {
                return match self.renew_now(&current, integration, lease).await? {
                    Ok(renewed) => Ok(renewed),
                    Err(error) => {
                        *turn = Some((Instant::now(), error.clone()));
                        Err(token_error(integration, error))
                    }
                };
            }
            if queued.elapsed() > PATIENCE {
                let message = "another node has been renewing the token for too long; try again".to_owned();
                return Err(ConnectionError::Upstream { integration: integration.name.clone(), message });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Renews under the lease. The inner error is one that will pass.
    async fn renew_now(
        &self,
        connection: &Connection,
        integration: &Integration,
        lease: Uuid,
    ) -> Result<Result<Connection, TokenError>, ConnectionError> {
        let usable = self.unseal(connection, integration)?;
        match self.holding(connection, lease, Box::pin(self.ask(connection, &usable))).await? {
            Ok(tokens) => {
                let mut fields = usable.fields.clone();
                let renewable = matches!(usable.scheme.as_deref(), Some(AuthScheme::ClientCredentials(_)));
                let terms = self.keep(&mut fields, tokens, renewable);
                let sealed = store::seal_fields(&self.0.sealer, connection.id, &fields);
                self.keep_tokens(connection, &Grant { sealed, terms, remote: None }).await?;
                let current = self.get(connection.project, connection.id).await?;
                current.require_usable()?;
                Ok(Ok(current))
            }
            Err(TokenError::Gone(reason)) => {
                let text = format!("{} no longer accepts this grant ({reason}). Connect the account again.", integration.name);
                self.invalidate(connection, HookEvent::Expired, &text).await?;
                Err(not_valid(&connection.slug, Some(&text)))
            }
            Err(error) => {
                if let Err(error) = store::drop_lease(&self.0.db, connection, lease).await {
                    tracing::warn!(connection = %connection.id, %error, "the lease could not be given back; it ends by itself");
                }
                Ok(Err(error))
            }
        }
    }

    /// Does the work with the lease in hand.
    async fn holding<T>(&self, connection: &Connection, lease: Uuid, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(BEAT) => {
                    if let Err(error) = store::extend_lease(&self.0.db, connection, lease, self.0.clock.now().plus(LEASE)).await {
                        tracing::warn!(connection = %connection.id, %error, "the lease on a refresh could not be kept");
                    }
                }
            }
        }
    }

    /// Writes new tokens down. The old ones may be spent already, so a write that fails is tried again.
    async fn keep_tokens(&self, connection: &Connection, grant: &Grant) -> Result<(), ConnectionError> {
        let mut tries = 0;
        let kept = loop {
            tries += 1;
            match store::finish_refresh(&self.0.db, connection, grant, self.0.clock.now()).await {
                Err(error) if tries < WRITE_TRIES => {
                    tracing::warn!(connection = %connection.id, %error, "new tokens could not be written; trying again");
                    tokio::time::sleep(POLL * tries).await;
                }
                written => break written?,
            }
        };
        if !kept {
            tracing::info!(connection = %connection.id, "changed while its tokens were renewed; the new tokens are dropped");
        }
        Ok(self.0.db.flush().await?)
    }

    /// Asks for new tokens. The outer error is ours, the inner one the provider's.
    async fn ask(&self, connection: &Connection, usable: &Usable) -> Result<Result<Tokens, TokenError>, ConnectionError> {
        match usable.scheme.as_deref() {
            // The client is the user's own: if it is refused, nothing but a new one helps.
            Some(AuthScheme::ClientCredentials(settings)) => {
                Ok(self.client_credentials(settings, &usable.fields).await.map_err(|error| match error {
                    TokenError::Refused(reason) => TokenError::Gone(reason),
                    other => other,
                }))
            }
            Some(AuthScheme::OAuth2(oauth)) => {
                let Some(refresh_token) = usable.fields.get("refresh_token") else {
                    return Ok(Err(TokenError::Gone("the access token has expired and there is no refresh token".to_owned())));
                };
                let Some(app) = self.app_used(connection.project, connection.app).await? else {
                    return Ok(Err(TokenError::Refused(
                        "the OAuth app it was connected with was removed or replaced; connect the account again".to_owned(),
                    )));
                };
                let client = self.client(&app, oauth)?;
                let params = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
                let endpoint = oauth.refresh_url.as_deref().unwrap_or(&oauth.token_url);
                let request = TokenRequest {
                    endpoint,
                    client: &client,
                    params: &params,
                    extra: &oauth.token_params,
                    reading: reading(oauth),
                    fields: &usable.fields,
                };
                Ok(request.send(&self.0.egress).await)
            }
            _ => Ok(Err(TokenError::Refused("there is nothing to renew".to_owned()))),
        }
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
