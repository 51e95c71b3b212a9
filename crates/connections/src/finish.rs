//! The end of an attempt: a person comes back from the provider, or hands in a form.

use std::collections::BTreeMap;

use catalog::Integration;
use catalog::auth::{AuthScheme, Field, Fields};
use kernel::{AppId, ConnectionId, ProjectId};

use crate::attempt::{Counter, Secrets, Ticket};
use crate::create::check_fields;
use crate::grant::{Times, find_scheme, not_checked, oauth_scheme, reading, token_error};
use crate::oauth::token::TokenRequest;
use crate::port::Identity;
use crate::store::{self, Grant};
use crate::{Connection, ConnectionError, Connections};

/// A connection whose attempt came to its end.
#[derive(Debug)]
pub struct Finished {
    pub connection: Connection,
    pub integration_name: String,
    pub logo: Option<String>,
    /// What the person should know.
    pub note: Option<String>,
}

/// What a provider sends a person back with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Returned<'a> {
    pub state: &'a str,
    pub code: Option<&'a str>,
    pub error: Option<&'a str>,
    /// The account, where the provider connects accounts itself.
    pub account: Option<&'a str>,
}

/// What the page asks for.
#[derive(Clone, Debug)]
pub struct HostedForm {
    pub integration_name: String,
    pub logo: Option<String>,
    pub slug: String,
    pub fields: Vec<(String, Field)>,
}

/// A credential that was obtained, on its way into the row.
pub(crate) struct Obtained<'a> {
    pub(crate) integration: &'a Integration,
    pub(crate) scheme: &'a AuthScheme,
    pub(crate) app: Option<AppId>,
    pub(crate) fields: Fields,
    pub(crate) times: Times,
    pub(crate) identity: Identity,
    /// The account at a provider that connects accounts itself.
    pub(crate) remote: Option<String>,
}

impl Connections {
    /// Ends an authorization: the provider sent the person back.
    pub async fn callback(&self, returned: Returned<'_>) -> Result<Finished, ConnectionError> {
        let Returned { state, code, error, account } = returned;
        let (ticket, mut secrets, connection) = self.redeem(state, Counter::Callback).await?;
        let error = error.map(|error| error.chars().filter(|c| !c.is_control()).take(300).collect::<String>());
        if let Some(own) = secrets.account.take() {
            if account.is_some_and(|account| account != own) {
                return Err(ConnectionError::BadAttempt);
            }
            let (project, id, this) = (ticket.p, ticket.c, self.clone());
            let finished = self.undisturbed(async move { this.finish_hosted(ticket, secrets, own, connection, error).await }).await;
            return self.noted(project, id, finished).await;
        }
        if !store::take_attempt(&self.db, ticket.p, ticket.c, &ticket.n, self.clock.now()).await? {
            return Err(ConnectionError::BadAttempt);
        }
        let (project, id) = (ticket.p, ticket.c);
        let finished = match (error, code.filter(|code| !code.is_empty())) {
            (Some(error), _) => Err(ConnectionError::Denied(error)),
            (None, None) => Err(ConnectionError::Denied("Missing authorization code. Please try again.".to_owned())),
            (None, Some(code)) => {
                let (this, code) = (self.clone(), code.to_owned());
                self.undisturbed(async move { this.exchange(&ticket, &connection, secrets, &code).await }).await
            }
        };
        self.noted(project, id, finished).await
    }

    /// Keeps why an attempt failed.
    async fn noted(
        &self,
        project: ProjectId,
        id: ConnectionId,
        finished: Result<Finished, ConnectionError>,
    ) -> Result<Finished, ConnectionError> {
        if let Err(error) = &finished
            && error.is_for_people()
        {
            store::note_failure(&self.db, project, id, &error.to_string()).await?;
        }
        finished
    }

    async fn exchange(&self, ticket: &Ticket, connection: &Connection, secrets: Secrets, code: &str) -> Result<Finished, ConnectionError> {
        let integration = self.integration_of(connection).await?;
        let (scheme, oauth) = oauth_scheme(&integration).ok_or(ConnectionError::BadAttempt)?;
        let app = self.app_used(connection.project, secrets.app).await?.ok_or_else(|| self.no_app(&integration, oauth))?;
        let client = self.client(&app, oauth)?;
        let mut fields: Fields = secrets.fields.into_iter().collect();
        let redirect_uri = self.callback_url();
        let mut params = vec![("grant_type", "authorization_code"), ("code", code), ("redirect_uri", redirect_uri.as_str())];
        params.extend(secrets.verifier.as_deref().map(|verifier| ("code_verifier", verifier)));
        let request = TokenRequest {
            endpoint: &oauth.token_url,
            client: &client,
            params: &params,
            extra: &oauth.token_params,
            reading: reading(oauth),
            fields: &fields,
        };
        let tokens = request.send(&self.egress).await.map_err(|error| token_error(&integration, error))?;
        let times = self.keep(&mut fields, tokens, false);
        let identity = self.identity_of_grant(&integration, scheme, &fields).await?;
        self.settle(
            ticket,
            connection,
            Obtained { integration: &integration, scheme, app: Some(app.id), fields, times, identity, remote: None },
        )
        .await
    }

    /// A grant is proof in itself, so only an outright refusal stops it.
    async fn identity_of_grant(
        &self,
        integration: &Integration,
        scheme: &AuthScheme,
        fields: &Fields,
    ) -> Result<Identity, ConnectionError> {
        match self.prove(integration, scheme, fields).await {
            Err(error @ (ConnectionError::Unreachable { .. } | ConnectionError::UpstreamServer { .. })) => {
                tracing::warn!(integration = integration.key, %error, "connected, but the account could not be read");
                Ok(Identity::default())
            }
            proven => proven,
        }
    }

    /// The form behind a link, as long as it is open.
    pub async fn hosted_form(&self, ticket: &str) -> Result<HostedForm, ConnectionError> {
        let (_, secrets, connection) = self.redeem(ticket, Counter::Form).await?;
        let integration = self.integration_of(&connection).await?;
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
        let (ticket, secrets, connection) = self.redeem(ticket, Counter::Form).await?;
        let integration = self.integration_of(&connection).await?;
        let scheme = find_scheme(&integration, &secrets.scheme).ok_or(ConnectionError::BadAttempt)?;
        let mut fields = check_fields(scheme, values)?;
        let times = self.acquire(&integration, scheme, &mut fields).await?;
        let identity = self.prove(&integration, scheme, &fields).await?;
        let (this, scheme) = (self.clone(), scheme.clone());
        self.undisturbed(async move {
            if !store::take_attempt(&this.db, ticket.p, ticket.c, &ticket.n, this.clock.now()).await? {
                return Err(ConnectionError::BadAttempt);
            }
            let obtained = Obtained { integration: &integration, scheme: &scheme, app: None, fields, times, identity, remote: None };
            this.settle(&ticket, &connection, obtained).await
        })
        .await
    }

    /// Makes the connection valid, unless it was revoked, deleted or started anew meanwhile, and tells who uses it.
    pub(crate) async fn settle(&self, ticket: &Ticket, former: &Connection, obtained: Obtained<'_>) -> Result<Finished, ConnectionError> {
        let Obtained { integration, scheme, app, mut fields, times, identity, remote } = obtained;
        let account = identity.account();
        let note = not_checked(integration, scheme, &identity);
        identity.fields.into_iter().for_each(|(name, value)| fields.set(name, value));
        let sealed = store::seal_fields(&self.sealer, former.id, &fields);
        let grant = Grant { sealed, refresh_at: times.refresh_at, expires_at: times.expires_at, remote };
        let now = self.clock.now();
        if !store::set_grant(&self.db, former, &ticket.n, scheme.name(), app, &grant, account.as_ref(), now).await? {
            return Err(ConnectionError::BadAttempt);
        }
        self.db.flush().await?;
        let connection = store::by_id(&self.db, former.project, former.id).await?.ok_or(ConnectionError::BadAttempt)?;
        self.tell_connected(connection.clone(), connection.is_another_than(former).then(|| former.clone()));
        Ok(Finished { connection, integration_name: integration.name.clone(), logo: integration.logo.clone(), note })
    }
}
