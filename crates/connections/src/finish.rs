//! The end of an attempt: a person comes back from the provider, or hands in a form.

use std::collections::BTreeMap;

use catalog::Integration;
use catalog::auth::{AuthScheme, Field, Fields, OAuth2};
use catalog::fill::fill_address;
use kernel::{AppId, ConnectionId, ProjectId};
use url::Url;

use crate::attempt::{Secrets, Ticket, TicketPage};
use crate::create::check_fields;
use crate::grant::{Terms, find_scheme, not_checked, oauth_scheme, reading, token_error};
use crate::oauth::token::TokenRequest;
use crate::port::Identity;
use crate::store::{self, Grant};
use crate::{Connection, ConnectionError, Connections, HookEvent, LinkOptions};

const DECLINED: &str = "The person declined to connect the account.";
const OTHER_PROVIDER: &str = "The answer is not from the provider that was asked. Nothing was connected; please start again.";

/// A connection whose attempt came to its end.
#[derive(Debug)]
pub struct Finished {
    pub connection: Connection,
    pub integration_name: String,
    pub logo: Option<String>,
    /// What the person should know.
    pub note: Option<String>,
}

/// How somebody's way back from a provider ended.
#[derive(Debug)]
pub struct Ended {
    pub outcome: Result<Finished, ConnectionError>,
    /// Who came; nothing where the ticket is none of ours or is used up.
    pub visitor: Option<Visitor>,
}

/// Somebody with a ticket of ours.
#[derive(Clone, Debug)]
pub struct Visitor {
    pub project: ProjectId,
    pub connection: ConnectionId,
    /// How they are led. They go nowhere as long as their attempt is open.
    pub link: LinkOptions,
}

/// What a provider sends a person back with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Returned<'a> {
    pub state: &'a str,
    pub code: Option<&'a str>,
    pub error: Option<&'a str>,
    /// The account, where the provider connects accounts itself.
    pub account: Option<&'a str>,
    /// Who answers, in its own words (RFC 9207).
    pub issuer: Option<&'a str>,
    /// The last part of the address that the person came back to, where it is one app's alone.
    pub redirect_tag: Option<&'a str>,
}

/// What the page asks for.
#[derive(Clone, Debug)]
pub struct HostedForm {
    pub project: ProjectId,
    pub connection: ConnectionId,
    pub integration_name: String,
    pub logo: Option<String>,
    pub slug: String,
    pub fields: Vec<(String, Field)>,
    /// How the person is led.
    pub link: LinkOptions,
}

/// A credential that was obtained, on its way into the row.
pub(crate) struct Obtained<'a> {
    pub(crate) integration: &'a Integration,
    pub(crate) scheme: &'a AuthScheme,
    pub(crate) app: Option<AppId>,
    pub(crate) fields: Fields,
    pub(crate) terms: Terms,
    pub(crate) identity: Identity,
    /// The account at a provider that connects accounts itself.
    pub(crate) remote: Option<String>,
}

impl Connections {
    /// Ends an authorization: the provider sent the person back.
    pub async fn callback(&self, returned: Returned<'_>) -> Ended {
        let (ticket, secrets, connection) = match self.redeem(returned.state, TicketPage::Callback).await {
            Ok(redeemed) => redeemed,
            Err(error) => return Ended { outcome: Err(error), visitor: None },
        };
        let mut visitor = Visitor { project: ticket.p, connection: ticket.c, link: secrets.link.clone() };
        let nonce = ticket.n.clone();
        let outcome = self.come_back(ticket, secrets, connection, returned).await;
        // Whoever brought another's answer, or came too early, must not be taken for the one who is waited for.
        let is_open = store::open_attempt(&self.0.db, visitor.project, visitor.connection, &nonce, self.0.clock.now()).await;
        if matches!(outcome, Err(ConnectionError::BadAttempt)) || (outcome.is_err() && !matches!(is_open, Ok(None))) {
            visitor.link.return_to = None;
        }
        Ended { outcome, visitor: Some(visitor) }
    }

    async fn come_back(
        &self,
        ticket: Ticket,
        mut secrets: Secrets,
        connection: Connection,
        returned: Returned<'_>,
    ) -> Result<Finished, ConnectionError> {
        let Returned { code, error, account, issuer, redirect_tag, .. } = returned;
        if secrets.redirect_tag.as_deref() != redirect_tag {
            return Err(ConnectionError::BadAttempt);
        }
        let error = error.map(|error| error.chars().filter(|c| !c.is_control()).take(300).collect::<String>());
        if let Some(own) = secrets.account.take() {
            if account.is_some_and(|account| account != own) {
                return Err(ConnectionError::BadAttempt);
            }
            let (project, id, this) = (ticket.p, ticket.c, self.clone());
            let finished = self.undisturbed(async move { this.finish_hosted(ticket, secrets, own, connection, error).await }).await;
            return self.noted(project, id, finished).await;
        }
        // The attempt stays open: whoever brought another's answer must not end it.
        self.check_issuer(&connection, &secrets, issuer).await?;
        if !store::take_attempt(&self.0.db, ticket.p, ticket.c, &ticket.n, self.0.clock.now()).await? {
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
            store::note_failure(&self.0.db, project, id, &error.to_string()).await?;
        }
        finished
    }

    /// Refuses the answer of another provider than the one that was asked: its code must not be handed to the latter.
    async fn check_issuer(&self, connection: &Connection, secrets: &Secrets, issuer: Option<&str>) -> Result<(), ConnectionError> {
        let integration = self.integration_of(connection).await?;
        let (_, oauth) = oauth_scheme(&integration).ok_or(ConnectionError::BadAttempt)?;
        let fields: Fields = secrets.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if answers(oauth, &fields, issuer) { Ok(()) } else { Err(ConnectionError::Denied(OTHER_PROVIDER.to_owned())) }
    }

    async fn exchange(&self, ticket: &Ticket, connection: &Connection, secrets: Secrets, code: &str) -> Result<Finished, ConnectionError> {
        let integration = self.integration_of(connection).await?;
        let (scheme, oauth) = oauth_scheme(&integration).ok_or(ConnectionError::BadAttempt)?;
        let app =
            self.app_used(connection.project, secrets.app).await?.ok_or_else(|| self.no_app(connection.project, &integration, oauth))?;
        let client = self.client(&app, oauth)?;
        let mut fields: Fields = secrets.fields.into_iter().collect();
        let redirect_uri = self.redirect_at(secrets.redirect_tag.as_deref());
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
        let tokens = request.send(&self.0.egress).await.map_err(|error| token_error(&integration, error))?;
        let asked = connection.scopes.as_deref().or(app.scopes.as_deref()).unwrap_or(&oauth.scopes);
        let terms = self.keep(&mut fields, tokens, false).or_asked(asked);
        let identity = self.identity_of_grant(&integration, scheme, &fields).await?;
        self.settle(
            ticket,
            connection,
            Obtained { integration: &integration, scheme, app: Some(app.id), fields, terms, identity, remote: None },
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
    #[kernel::boxed]
    pub async fn hosted_form(&self, ticket: &str) -> Result<HostedForm, ConnectionError> {
        let (_, secrets, connection) = self.redeem(ticket, TicketPage::Form).await?;
        let integration = self.integration_of(&connection).await?;
        let scheme = find_scheme(&integration, &secrets.scheme).ok_or(ConnectionError::BadAttempt)?;
        let asked = scheme.fields().into_iter().filter(|(name, _)| !secrets.fields.contains_key(name));
        Ok(HostedForm {
            project: connection.project,
            connection: connection.id,
            integration_name: integration.name.clone(),
            logo: integration.logo.clone(),
            slug: connection.slug,
            fields: asked.collect(),
            link: secrets.link,
        })
    }

    /// Takes what a person typed. A credential that is refused leaves the link open for another try.
    #[kernel::boxed]
    pub async fn submit_form(&self, ticket: &str, values: BTreeMap<String, String>) -> Result<Finished, ConnectionError> {
        let (ticket, secrets, connection) = self.redeem(ticket, TicketPage::Form).await?;
        let integration = self.integration_of(&connection).await?;
        let scheme = find_scheme(&integration, &secrets.scheme).ok_or(ConnectionError::BadAttempt)?;
        let mut fields = check_fields(scheme, values.into_iter().chain(secrets.fields).collect())?;
        let terms = self.acquire(&integration, scheme, &mut fields).await?;
        let identity = self.prove(&integration, scheme, &fields).await?;
        let (this, scheme) = (self.clone(), scheme.clone());
        self.undisturbed(async move {
            if !store::take_attempt(&this.0.db, ticket.p, ticket.c, &ticket.n, this.0.clock.now()).await? {
                return Err(ConnectionError::BadAttempt);
            }
            let obtained = Obtained { integration: &integration, scheme: &scheme, app: None, fields, terms, identity, remote: None };
            this.settle(&ticket, &connection, obtained).await
        })
        .await
    }

    /// The person does not want to connect: the link is used up.
    #[kernel::boxed]
    pub async fn decline_form(&self, ticket: &str) -> Result<(), ConnectionError> {
        let (ticket, ..) = self.redeem(ticket, TicketPage::Form).await?;
        if !store::take_attempt(&self.0.db, ticket.p, ticket.c, &ticket.n, self.0.clock.now()).await? {
            return Err(ConnectionError::BadAttempt);
        }
        Ok(store::note_failure(&self.0.db, ticket.p, ticket.c, DECLINED).await?)
    }

    /// Makes the connection valid, unless it was revoked, deleted or started anew meanwhile, and tells who uses it.
    pub(crate) async fn settle(&self, ticket: &Ticket, former: &Connection, obtained: Obtained<'_>) -> Result<Finished, ConnectionError> {
        let Obtained { integration, scheme, app, mut fields, terms, identity, remote } = obtained;
        let account = identity.account();
        let note = not_checked(integration, scheme, &identity);
        identity.fields.into_iter().for_each(|(name, value)| fields.set(name, value));
        let sealed = store::seal_fields(&self.0.sealer, former.id, &fields);
        let grant = Grant { sealed, terms, remote };
        let now = self.0.clock.now();
        if !store::set_grant(&self.0.db, former, &ticket.n, scheme.name(), app, &grant, account.as_ref(), now).await? {
            return Err(ConnectionError::BadAttempt);
        }
        self.0.db.flush().await?;
        let connection = store::by_id(&self.0.db, former.project, former.id).await?.ok_or(ConnectionError::BadAttempt)?;
        self.announce(&connection, HookEvent::Connected, None).await;
        self.tell_connected(connection.clone(), connection.is_another_than(former).then(|| former.clone()));
        Ok(Finished { connection, integration_name: integration.name.clone(), logo: integration.logo.clone(), note })
    }
}

/// Whether an answer is that of the provider which was asked. One that says who it is must be right: by the name that it is known to have, or
/// else by its origin. One that promised to say so must.
fn answers(oauth: &OAuth2, fields: &Fields, issuer: Option<&str>) -> bool {
    let Some(issuer) = issuer else { return !oauth.sends_issuer };
    let filled = |url: &str| fill_address(url, fields).ok();
    if let Some(known) = &oauth.issuer {
        return filled(known).as_deref() == Some(issuer);
    }
    let origin = |url: &str| url.parse::<Url>().ok().map(|url| url.origin());
    let asked = [&oauth.authorize_url, &oauth.token_url].into_iter().filter_map(|url| origin(&filled(url)?));
    origin(issuer).is_some_and(|issuer| issuer.is_tuple() && asked.into_iter().any(|asked| asked == issuer))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_held_against_the_provider_that_was_asked() {
        let scheme = |more: serde_json::Value| {
            let mut scheme = json!({"authorize_url": "https://{connection.host}/authorize", "token_url": "https://api.example.com/token"});
            scheme.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<OAuth2>(scheme).unwrap()
        };
        let fields: Fields = [("host", "login.example.com")].into_iter().collect();
        let plain = scheme(json!({}));
        let named = scheme(json!({"issuer": "https://{connection.host}/realm", "sends_issuer": true}));
        for (scheme, issuer, fits) in [
            (&plain, None, true),
            (&plain, Some("https://login.example.com"), true),
            (&plain, Some("https://login.example.com/realm"), true),
            (&plain, Some("https://api.example.com/"), true),
            (&plain, Some("https://evil.example.com"), false),
            (&plain, Some("http://login.example.com"), false),
            (&plain, Some(""), false),
            (&plain, Some("data:x"), false),
            (&named, None, false),
            (&named, Some("https://login.example.com/realm"), true),
            (&named, Some("https://login.example.com/realm/"), false),
            (&named, Some("https://login.example.com/other"), false),
        ] {
            assert_eq!(answers(scheme, &fields, issuer), fits, "{issuer:?}");
        }
    }
}
