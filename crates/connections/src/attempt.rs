//! Attempts to connect: a signed, expiring, single-use ticket that belongs to one row, and to one way of connecting.

use std::collections::BTreeMap;
use std::time::Duration;

use catalog::auth::{AuthScheme, Fields, OAuth2};
use catalog::fill::fill_address;
use kernel::key::random_text;
use kernel::{AppId, ConnectionId, ProjectId};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::apps::OAuthApp;
use crate::oauth::authorize::Authorize;
use crate::store::{self, StoredAttempt};
use crate::{Connection, ConnectionError, Connections, LinkOptions};

const LIFETIME: Duration = Duration::from_hours(1);

/// What the ticket says: which row, which attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) p: ProjectId,
    pub(crate) c: ConnectionId,
    pub(crate) n: String,
}

/// What is kept sealed until the attempt ends.
#[derive(Serialize, Deserialize)]
pub(crate) struct Secrets {
    pub(crate) scheme: String,
    pub(crate) verifier: Option<String>,
    pub(crate) app: Option<AppId>,
    pub(crate) fields: BTreeMap<String, String>,
    /// The account at a provider that connects accounts itself.
    #[serde(default)]
    pub(crate) account: Option<String>,
    /// The last part of the address to come back to, where the OAuth app has one of its own.
    #[serde(default)]
    pub(crate) redirect_tag: Option<String>,
    #[serde(default)]
    pub(crate) link: LinkOptions,
}

impl Secrets {
    /// Where the person comes back to: every credential that is not typed here comes in at the callback.
    fn counter(&self) -> TicketPage {
        if self.scheme == "oauth2" || self.account.is_some() { TicketPage::Callback } else { TicketPage::Form }
    }
}

/// Where a ticket may be redeemed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TicketPage {
    /// The page to which a provider sends people back.
    Callback,
    /// The page where people type a credential.
    Form,
}

/// An attempt that was started.
pub(crate) struct Started {
    pub(crate) stored: StoredAttempt,
    pub(crate) redirect_url: String,
}

/// Who an attempt is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionKey {
    pub(crate) project: ProjectId,
    pub(crate) id: ConnectionId,
}

impl Connections {
    /// Starts an OAuth2 authorization.
    pub(crate) fn start_oauth(
        &self,
        target: ConnectionKey,
        scheme: &OAuth2,
        app: &OAuthApp,
        fields: &Fields,
        scopes: Option<&[String]>,
        link: &LinkOptions,
    ) -> Result<Started, ConnectionError> {
        let verifier = scheme.pkce.then(|| random_text(64));
        let fields_kept = fields.expose().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let secrets = Secrets {
            scheme: "oauth2".to_owned(),
            verifier: verifier.clone(),
            app: Some(app.id),
            fields: fields_kept,
            account: None,
            redirect_tag: app.redirect_tag(),
            link: link.clone(),
        };
        let (ticket, nonce) = self.ticket(target);
        let stored = self.store_attempt(target, nonce, &secrets);
        let endpoint = fill_address(&scheme.authorize_url, fields).map_err(|error| ConnectionError::Field(error.to_string()))?;
        let scopes = scopes.or(app.scopes.as_deref()).unwrap_or(&scheme.scopes);
        let authorize = Authorize {
            endpoint: &endpoint,
            client_id: &app.client_id,
            redirect_uri: &self.app_redirect_url(app),
            state: &ticket,
            scopes,
            verifier: verifier.as_deref(),
        };
        let url = authorize.url(scheme).ok_or_else(|| ConnectionError::Field(format!("`{endpoint}` is not a web address")))?;
        Ok(Started { stored, redirect_url: url.into() })
    }

    /// Starts a form where a person types the credential, but for what is known of it.
    pub(crate) fn start_form(
        &self,
        target: ConnectionKey,
        scheme: &AuthScheme,
        known: BTreeMap<String, String>,
        link: &LinkOptions,
    ) -> Started {
        let (ticket, nonce) = self.ticket(target);
        let secrets = Secrets {
            scheme: scheme.name().to_owned(),
            verifier: None,
            app: None,
            fields: known,
            account: None,
            redirect_tag: None,
            link: link.clone(),
        };
        let stored = self.store_attempt(target, nonce, &secrets);
        Started { stored, redirect_url: format!("{}/{ticket}", self.0.pages.key_form) }
    }

    /// A ticket that leads back to the row, and the nonce in it.
    pub(crate) fn ticket(&self, target: ConnectionKey) -> (String, String) {
        let nonce = random_text(24);
        let ticket = json!(Ticket { p: target.project, c: target.id, n: nonce.clone() }).to_string();
        (self.0.signer.sign(ticket.as_bytes()), nonce)
    }

    pub(crate) fn store_attempt(&self, target: ConnectionKey, nonce: String, secrets: &Secrets) -> StoredAttempt {
        let sealed = self.0.sealer.seal(json!(secrets).to_string().as_bytes(), store::place(target.id, "attempt_data"));
        StoredAttempt { nonce, until: self.0.clock.now().plus(LIFETIME), sealed, account: secrets.account.clone() }
    }

    /// The row and the secrets of a ticket that is ours, unused, in time and at the right counter.
    pub(crate) async fn redeem(&self, ticket: &str, counter: TicketPage) -> Result<(Ticket, Secrets, Connection), ConnectionError> {
        let payload = self.0.signer.verify(ticket).ok_or(ConnectionError::BadAttempt)?;
        let ticket: Ticket = serde_json::from_slice(&payload).map_err(|_| ConnectionError::BadAttempt)?;
        let sealed =
            store::open_attempt(&self.0.db, ticket.p, ticket.c, &ticket.n, self.0.clock.now()).await?.ok_or(ConnectionError::BadAttempt)?;
        let secrets = self.open_secrets(ticket.c, &sealed)?;
        if secrets.counter() != counter {
            return Err(ConnectionError::BadAttempt);
        }
        let connection = store::by_id(&self.0.db, ticket.p, ticket.c).await?.ok_or(ConnectionError::BadAttempt)?;
        Ok((ticket, secrets, connection))
    }

    /// The secrets of an attempt.
    pub(crate) fn open_secrets(&self, id: ConnectionId, sealed: &[u8]) -> Result<Secrets, ConnectionError> {
        let plain = self.0.sealer.open(sealed, store::place(id, "attempt_data"))?;
        serde_json::from_slice(&plain).map_err(|_| ConnectionError::BadAttempt)
    }
}
