//! The life of a connection after it was made: read, refresh, revoke, delete.

use std::collections::BTreeMap;
use std::time::Duration;

use catalog::Integration;
use catalog::auth::AuthScheme;
use catalog::fill::fill_address;
use kernel::{ConnectionId, ProjectId, Scope};

use crate::attempt::ConnectionKey;
use crate::create::check_fields;
use crate::grant::not_checked;
use crate::oauth::token::post;
use crate::{Connection, ConnectionError, Connections, HookEvent, LinkOptions, store};

const REVOKE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, and where a person has to go if one is needed.
#[derive(Clone, Debug)]
pub struct ConnectResult {
    pub connection: Connection,
    pub redirect_url: Option<String>,
    /// What the caller should know.
    pub note: Option<String>,
}

/// How many consumers of each kind a connection has.
pub type Usage = BTreeMap<&'static str, i64>;

impl Connections {
    #[kernel::boxed]
    pub async fn get(&self, project: ProjectId, id: ConnectionId) -> Result<Connection, ConnectionError> {
        store::by_id(&self.0.db, project, id).await?.ok_or(ConnectionError::NotFound)
    }

    /// A connection that the scope may see: any of its project, or for an end user one of their own.
    #[kernel::boxed]
    pub async fn seen(&self, scope: Scope, id: ConnectionId) -> Result<Connection, ConnectionError> {
        let connection = self.get(scope.project, id).await?;
        if scope.sees(connection.owner) { Ok(connection) } else { Err(ConnectionError::NotFound) }
    }

    /// Makes a connection fresh. Tokens that can be renewed are; else a person is asked, and what works goes on working until the new grant
    /// is proven. `force` asks a person in any case.
    #[kernel::boxed]
    pub async fn refresh(&self, scope: Scope, id: ConnectionId, force: bool) -> Result<ConnectResult, ConnectionError> {
        self.refresh_by(scope, id, force, LinkOptions::default()).await
    }

    /// The same; if a person is asked, they are led so.
    #[kernel::boxed]
    pub async fn refresh_by(
        &self,
        scope: Scope,
        id: ConnectionId,
        force: bool,
        link: LinkOptions,
    ) -> Result<ConnectResult, ConnectionError> {
        let connection = self.seen(scope, id).await?;
        if connection.is_no_auth() {
            let this = self.clone();
            return self.undisturbed(async move { this.revalidate(&connection).await }).await;
        }
        if !connection.is_active {
            return Err(ConnectionError::Inactive(connection.slug));
        }
        let integration = self.integration_of(&connection).await?;
        let scheme = connection.scheme(&integration).or(integration.auth.first());
        let scheme = scheme.ok_or(ConnectionError::NotFound)?;
        if let AuthScheme::Hosted(hosted) = &**scheme {
            let (this, hosted, integration) = (self.clone(), hosted.clone(), integration.clone());
            return self.undisturbed(async move { this.refresh_hosted(connection, &integration, &hosted, force, &link).await }).await;
        }
        if !force
            && connection.is_usable()
            && let Some(refreshed) = self.refresh_quietly(&connection, &integration, scheme).await?
        {
            return Ok(refreshed);
        }
        let target = ConnectionKey { project: scope.project, id };
        let started = match &**scheme {
            AuthScheme::OAuth2(oauth) => {
                let app = match self.app_used(scope.project, connection.app).await? {
                    Some(app) => Some(app),
                    None => self.app_for(scope.project, &integration, !oauth.trusts_the_connection()).await?,
                };
                let app = app.ok_or_else(|| self.no_app(connection.project, &integration, oauth))?;
                let fields = check_fields(scheme, connection.asked.clone())?;
                self.start_oauth(target, oauth, &app, &fields, connection.scopes.as_deref(), &link)?
            }
            other => self.start_form(target, other, BTreeMap::new(), &link),
        };
        if !store::set_attempt(&self.0.db, scope.project, id, &started.stored).await? {
            return Err(ConnectionError::NotFound);
        }
        Ok(ConnectResult { connection: self.get(scope.project, id).await?, redirect_url: Some(started.redirect_url), note: None })
    }

    /// Renews or proves what there is; nothing when a person is needed.
    async fn refresh_quietly(
        &self,
        connection: &Connection,
        integration: &Integration,
        scheme: &AuthScheme,
    ) -> Result<Option<ConnectResult>, ConnectionError> {
        let fresh = |connection, note| ConnectResult { connection, redirect_url: None, note };
        // The service refuses what these brought, and would refuse what they bring next.
        if connection.is_failing() && matches!(scheme, AuthScheme::OAuth2(_)) {
            return Ok(None);
        }
        let usable = self.unseal(connection, integration)?;
        let orphaned = matches!(scheme, AuthScheme::OAuth2(_)) && self.app_used(connection.project, connection.app).await?.is_none();
        if usable.can_renew() && !orphaned {
            return match self.renew(connection, integration).await {
                Err(ConnectionError::NotValid { .. }) => Ok(None),
                renewed => renewed.map(|renewed| Some(fresh(renewed, None))),
            };
        }
        if matches!(scheme, AuthScheme::OAuth2(_)) {
            return Ok(None);
        }
        let identity = match self.prove(integration, scheme, &usable.fields).await {
            Err(ConnectionError::Refused { .. }) if connection.is_failing() => return Ok(None),
            proven => proven?,
        };
        if connection.is_failing() && !identity.is_checked {
            return Ok(None);
        }
        self.worked(connection).await;
        let connection = self.get(connection.project, connection.id).await?;
        Ok(Some(fresh(connection, not_checked(integration, scheme, &identity))))
    }

    /// Makes a connection that needs no credential usable again.
    async fn revalidate(&self, former: &Connection) -> Result<ConnectResult, ConnectionError> {
        store::revalidate(&self.0.db, former.project, former.id, self.0.clock.now()).await?;
        let connection = self.get(former.project, former.id).await?;
        if !former.is_valid && connection.is_usable() {
            self.tell_connected(connection.clone(), None);
        }
        Ok(ConnectResult { connection, redirect_url: None, note: None })
    }

    /// Makes a connection unusable, forgets its credential, and tells who used it; `why` is for people. Local and repeatable.
    #[kernel::boxed]
    pub async fn revoke(&self, scope: Scope, id: ConnectionId, why: &'static str) -> Result<Connection, ConnectionError> {
        let this = self.clone();
        self.undisturbed(async move {
            let revoked = this.revoke_now(scope, id).await?;
            this.tell_released(scope.project, id, why).await?;
            Ok(revoked)
        })
        .await
    }

    /// The same, and tells the provider, if it listens: which token it was told of.
    #[kernel::boxed]
    pub async fn revoke_there(
        &self,
        scope: Scope,
        id: ConnectionId,
        why: &'static str,
    ) -> Result<(Connection, Option<&'static str>), ConnectionError> {
        let this = self.clone();
        self.undisturbed(async move {
            let former = this.seen(scope, id).await?;
            let told = this.tell_provider(&former).await;
            let revoked = this.revoke_now(scope, id).await?;
            this.tell_released(scope.project, id, why).await?;
            Ok((revoked, told))
        })
        .await
    }

    async fn revoke_now(&self, scope: Scope, id: ConnectionId) -> Result<Connection, ConnectionError> {
        self.seen(scope, id).await?;
        let given_up = store::attempt_remote(&self.0.db, scope.project, id).await?;
        let revoked = store::revoke(&self.0.db, scope.project, id, scope.author(), self.0.clock.now()).await?;
        let revoked = revoked.ok_or(ConnectionError::NotFound)?;
        self.announce(&revoked, HookEvent::Removed, Some("revoked")).await;
        self.forget_later(&revoked.provider, given_up.filter(|account| revoked.remote.as_ref() != Some(account)));
        Ok(revoked)
    }

    /// Deletes a connection, and tells who used it, and the provider if it listens.
    #[kernel::boxed]
    pub async fn delete(&self, scope: Scope, id: ConnectionId) -> Result<(), ConnectionError> {
        let this = self.clone();
        self.undisturbed(async move {
            this.delete_now(scope, id).await?;
            this.tell_released(scope.project, id, "The connection was deleted.").await
        })
        .await
    }

    async fn delete_now(&self, scope: Scope, id: ConnectionId) -> Result<(), ConnectionError> {
        self.seen(scope, id).await?;
        let given_up = store::attempt_remote(&self.0.db, scope.project, id).await?;
        let connection = store::delete(&self.0.db, scope.project, id).await?.ok_or(ConnectionError::NotFound)?;
        self.announce(&connection, HookEvent::Removed, Some("deleted")).await;
        self.forget_later(&connection.provider, given_up.into_iter().chain(connection.remote.clone()));
        let this = self.clone();
        self.0.tasks.spawn(async move { this.tell_provider(&connection).await });
        Ok(())
    }

    /// Tells the provider that a grant is not needed any more; which token it took back.
    async fn tell_provider(&self, connection: &Connection) -> Option<&'static str> {
        let integration = self.integration_of(connection).await.ok()?;
        let Some(AuthScheme::OAuth2(oauth)) = connection.scheme(&integration).map(|scheme| &**scheme) else {
            return None;
        };
        let revoke_url = oauth.revoke_url.as_deref()?;
        let fields = store::open_fields(&self.0.sealer, connection.id, connection.credentials.as_deref()?).ok()?;
        let app = self.app_used(connection.project, connection.app).await.ok()??;
        let client = self.client(&app, oauth).ok()?;
        let (name, token) = ["refresh_token", "access_token"].into_iter().find_map(|name| Some((name, fields.get(name)?)))?;
        let url = fill_address(revoke_url, &fields).ok()?.parse().ok()?;
        let request = post(url, &client, vec![("token", token)]).timeout(REVOKE_TIMEOUT);
        match self.0.egress.send(request).await {
            Ok(answer) if answer.status.is_success() => Some(name),
            Ok(answer) => {
                tracing::info!(connection = %connection.id, status = %answer.status, "the provider did not take a grant back");
                None
            }
            Err(error) => {
                tracing::info!(connection = %connection.id, %error, "the provider could not be told that a grant is over");
                None
            }
        }
    }
}
