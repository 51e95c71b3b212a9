//! The life of a connection after it was made: read, refresh, revoke, delete.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::auth::{AuthScheme, Fields};
use catalog::fill::fill_address;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use kernel::{ConnectionId, ProjectId, Scope};
use url::form_urlencoded;

use crate::attempt::{Target, find_scheme};
use crate::fresh::can_renew;
use crate::{Connection, ConnectionError, Connections, Consumer, store};

const REVOKE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, and where a person has to go if one is needed.
#[derive(Clone, Debug)]
pub struct Refreshed {
    pub connection: Connection,
    pub redirect_url: Option<String>,
}

/// How many consumers of each kind a connection has.
pub type Usage = BTreeMap<&'static str, i64>;

impl Connections {
    pub async fn get(&self, project: ProjectId, id: ConnectionId) -> Result<Connection, ConnectionError> {
        store::by_id(&self.db, project, id).await?.ok_or(ConnectionError::NotFound)
    }

    pub async fn find(
        &self,
        project: ProjectId,
        provider: &str,
        integration: &str,
        slug: &str,
    ) -> Result<Option<Connection>, ConnectionError> {
        Ok(store::by_slug(&self.db, project, provider, integration, slug).await?)
    }

    /// Active connections, newest first.
    pub async fn query(
        &self,
        project: ProjectId,
        provider: Option<&str>,
        integration: Option<&str>,
    ) -> Result<Vec<Connection>, ConnectionError> {
        Ok(store::query(&self.db, project, provider, integration).await?)
    }

    /// Makes a connection fresh. Tokens that can be renewed are; else a person is asked, and what works goes on working until the new grant
    /// is proven. `force` asks a person in any case.
    pub async fn refresh(&self, scope: Scope, id: ConnectionId, force: bool) -> Result<Refreshed, ConnectionError> {
        let connection = self.get(scope.project, id).await?;
        if connection.is_no_auth() {
            store::revalidate(&self.db, scope.project, id, self.clock.now()).await?;
            return Ok(Refreshed { connection: self.get(scope.project, id).await?, redirect_url: None });
        }
        if !connection.is_active {
            return Err(ConnectionError::Inactive(connection.slug));
        }
        let integration = self.catalog.integration(scope.project, &connection.provider, &connection.integration)?;
        let mut fields = Fields::default();
        if connection.is_usable() {
            let sealed = connection.credentials.as_deref().unwrap_or_default();
            fields = store::open_fields(&self.sealer, connection.id, sealed)?;
            let scheme = connection.auth_scheme.as_deref().and_then(|name| find_scheme(&integration, name)).cloned();
            let usable = crate::Usable::new(fields.clone(), scheme, &connection);
            if !force && can_renew(&usable) {
                match self.renew(&connection, &integration).await {
                    Ok(connection) => return Ok(Refreshed { connection, redirect_url: None }),
                    Err(ConnectionError::NotValid { .. }) => {}
                    Err(error) => return Err(error),
                }
            } else if !force && !matches!(usable.scheme, Some(AuthScheme::OAuth2(_))) {
                self.prove(&integration, usable.scheme.as_ref().unwrap_or(&integration.auth[0]), &fields).await?;
                return Ok(Refreshed { connection, redirect_url: None });
            }
        }
        let target = Target { project: scope.project, id };
        let name = connection.auth_scheme.as_deref().unwrap_or_default();
        let scheme = find_scheme(&integration, name).or(integration.auth.first()).ok_or(ConnectionError::NotFound)?;
        let started = match scheme {
            AuthScheme::OAuth2(oauth) => {
                let app = self.app_for(scope.project, &connection.provider, &connection.integration, connection.app).await?;
                let app = app.ok_or_else(|| self.no_app(&integration, oauth))?;
                let asked: Fields = oauth.fields.keys().filter_map(|name| Some((name.clone(), fields.get(name)?.to_owned()))).collect();
                self.start_oauth(target, oauth, &app, &asked, connection.scopes.as_deref())?
            }
            other => self.start_form(target, other),
        };
        if !store::set_attempt(&self.db, scope.project, id, &started.stored).await? {
            return Err(ConnectionError::NotFound);
        }
        Ok(Refreshed { connection: self.get(scope.project, id).await?, redirect_url: Some(started.redirect_url) })
    }

    /// Makes a connection unusable and forgets its credential. Local and repeatable.
    pub async fn revoke(&self, scope: Scope, id: ConnectionId) -> Result<Connection, ConnectionError> {
        store::revoke(&self.db, scope.project, id, scope.author(), self.clock.now()).await?.ok_or(ConnectionError::NotFound)
    }

    /// Deletes a connection, and tells the provider if it listens.
    pub async fn delete(&self, scope: Scope, id: ConnectionId) -> Result<(), ConnectionError> {
        let connection = store::delete(&self.db, scope.project, id).await?.ok_or(ConnectionError::NotFound)?;
        let this = self.clone();
        self.0.tasks.spawn(async move { this.tell_provider(&connection).await });
        Ok(())
    }

    async fn tell_provider(&self, connection: &Connection) -> Option<()> {
        let integration = self.catalog.integration(connection.project, &connection.provider, &connection.integration).ok()?;
        let Some(AuthScheme::OAuth2(oauth)) = connection.auth_scheme.as_deref().and_then(|name| find_scheme(&integration, name)) else {
            return None;
        };
        let revoke_url = oauth.revoke_url.as_deref()?;
        let fields = store::open_fields(&self.sealer, connection.id, connection.credentials.as_deref()?).ok()?;
        let app = self.app_for(connection.project, &connection.provider, &connection.integration, connection.app).await.ok()??;
        let secret = self.app_secret(&app).ok()?;
        let token = fields.get("refresh_token").or_else(|| fields.get("access_token"))?;
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("token", token), ("client_id", &app.client_id), ("client_secret", &secret)])
            .finish();
        let url = fill_address(revoke_url, &fields).ok()?.parse().ok()?;
        let request = egress::Request::new(Method::POST, url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
            .body(body)
            .timeout(REVOKE_TIMEOUT);
        if let Err(error) = self.egress.send(request).await {
            tracing::info!(connection = %connection.id, %error, "deleted, but the provider could not be told");
        }
        Some(())
    }

    /// Who uses a connection.
    pub async fn usage(&self, scope: Scope, id: ConnectionId, consumers: &[Arc<dyn Consumer>]) -> Result<Usage, ConnectionError> {
        self.get(scope.project, id).await?;
        let mut usage = Usage::new();
        for consumer in consumers {
            usage.insert(consumer.kind(), consumer.count(scope.project, id).await?);
        }
        Ok(usage)
    }
}
