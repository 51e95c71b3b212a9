//! Accounts that a provider connects on pages of its own and keeps. What is sealed here is its name for the account.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::Integration;
use catalog::auth::{AuthScheme, Fields, Hosted};
use kernel::{ConnectionId, ProjectId};

use crate::apps::OAuthApp;
use crate::attempt::{ConnectionKey, Secrets, Started, Ticket};
use crate::finish::{Finished, Obtained};
use crate::grant::{Terms, find_scheme};
use crate::life::ConnectResult;
use crate::port::{Host, HostError, Identity, OwnApp, Standing, Start};
use crate::{Connection, ConnectionError, Connections, HookEvent, LinkOptions, store};

/// The field that holds the provider's name for the account.
pub const ACCOUNT: &str = "account";
/// How often a provider that sent the person back too early is asked again, and how long after.
const LOOKS: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// An account younger than this may belong to a request that is still under way.
const YOUNG: Duration = Duration::from_mins(15);

/// What bringing both sides together came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Accounts that nobody here knew.
    pub removed: usize,
    /// Connections whose accounts do not work any more.
    pub invalidated: usize,
}

impl Connections {
    /// Starts to connect an account at a provider that does so itself.
    pub(crate) async fn start_hosted(
        &self,
        target: ConnectionKey,
        integration: &Integration,
        scheme: &Hosted,
        app: Option<&OAuthApp>,
        scopes: Option<&[String]>,
        link: &LinkOptions,
    ) -> Result<Started, ConnectionError> {
        if app.is_none() && !scheme.is_managed {
            return Err(no_managed(integration, &self.0.pages.save_app));
        }
        let secret = app.map(|app| self.app_secret(app)).transpose()?;
        let own = app.zip(secret.as_deref()).map(|(app, secret)| OwnApp { client_id: &app.client_id, client_secret: secret });
        let (ticket, nonce) = self.ticket(target);
        let mut callback: url::Url = self.callback_url().parse().map_err(|_| ConnectionError::Field("the public address".to_owned()))?;
        callback.query_pairs_mut().append_pair("state", &ticket);
        let start = Start {
            project: target.project,
            mark: &nonce,
            integration,
            scheme,
            app: own,
            scopes: scopes.or_else(|| app?.scopes.as_deref()),
            callback_url: callback.as_str(),
        };
        let begun = self.host(integration)?.begin(start).await.map_err(|error| explained(integration, error))?;
        let secrets = Secrets {
            scheme: if scheme.is_oauth { "oauth2" } else { "api_key" }.to_owned(),
            verifier: None,
            app: app.map(|app| app.id),
            fields: BTreeMap::new(),
            account: Some(begun.account),
            redirect_tag: None,
            link: link.clone(),
        };
        Ok(Started { stored: self.store_attempt(target, nonce, &secrets), redirect_url: begun.redirect_url })
    }

    /// The OAuth app to connect with: none where the provider's own will do.
    pub(crate) async fn app_for_hosted(
        &self,
        project: ProjectId,
        integration: &Integration,
        scheme: &Hosted,
    ) -> Result<Option<OAuthApp>, ConnectionError> {
        if scheme.is_oauth { self.app_for(project, integration, true).await } else { Ok(None) }
    }

    /// Ends an attempt: the provider sent the person back, and is asked how the account stands. Only what it answers counts.
    pub(crate) async fn finish_hosted(
        &self,
        ticket: Ticket,
        secrets: Secrets,
        account: String,
        connection: Connection,
        denied: Option<String>,
    ) -> Result<Finished, ConnectionError> {
        let integration = self.integration_of(&connection).await?;
        let scheme = find_scheme(&integration, &secrets.scheme).ok_or(ConnectionError::BadAttempt)?.clone();
        let host = self.host(&integration)?;
        let denied = match denied {
            Some(reason) => Some(reason),
            None => match look(&*host, &account).await.map_err(|error| explained(&integration, error))? {
                Standing::Works => None,
                Standing::Waits => {
                    return Err(ConnectionError::Denied("The account is not connected yet. Please finish, then come back.".to_owned()));
                }
                Standing::Broken(reason) => Some(reason),
            },
        };
        if !store::take_attempt(&self.0.db, ticket.p, ticket.c, &ticket.n, self.0.clock.now()).await? {
            return Err(ConnectionError::BadAttempt);
        }
        if let Some(reason) = denied {
            self.forget_later(&connection.provider, [account]);
            return Err(ConnectionError::Denied(reason));
        }
        let replaced = connection.remote.clone().filter(|old| *old != account);
        let obtained = Obtained {
            integration: &integration,
            scheme: &scheme,
            app: secrets.app,
            fields: Fields::from_iter([(ACCOUNT, account.clone())]),
            terms: Terms::default(),
            identity: Identity::default(),
            remote: Some(account.clone()),
        };
        match self.settle(&ticket, &connection, obtained).await {
            Ok(finished) => {
                self.forget_later(&connection.provider, replaced);
                Ok(finished)
            }
            Err(error) => {
                // The grant may have been written all the same; what cannot be told now is left to `tidy`.
                if let Ok(None) =
                    store::by_id(&self.0.db, ticket.p, ticket.c).await.map(|row| row.filter(|row| row.remote.as_ref() == Some(&account)))
                {
                    self.forget_later(&connection.provider, [account]);
                }
                Err(error)
            }
        }
    }

    /// The row as its provider knows it: an account may be connected though the person has not come back to say so.
    pub async fn look_again(&self, connection: Connection) -> Result<Connection, ConnectionError> {
        // Every call comes here, and few go further.
        if connection.is_usable() || !self.0.hosts.contains_key(connection.provider.as_str()) {
            return Ok(connection);
        }
        self.ask_again(connection).await
    }

    #[kernel::boxed]
    async fn ask_again(&self, connection: Connection) -> Result<Connection, ConnectionError> {
        let (project, id) = (connection.project, connection.id);
        let Some((nonce, sealed)) = store::waiting_attempt(&self.0.db, project, id, self.0.clock.now()).await? else {
            return Ok(connection);
        };
        let mut secrets = self.open_secrets(id, &sealed)?;
        let Some(account) = secrets.account.take() else { return Ok(connection) };
        let integration = self.integration_of(&connection).await?;
        let Ok(Standing::Works) = self.host(&integration)?.standing(&account).await else { return Ok(connection) };
        let (this, ticket) = (self.clone(), Ticket { p: project, c: id, n: nonce });
        match self.undisturbed(async move { this.finish_hosted(ticket, secrets, account, connection, None).await }).await {
            Ok(finished) => Ok(finished.connection),
            // The person came back at the same moment.
            Err(ConnectionError::BadAttempt) => self.get(project, id).await,
            Err(error) => Err(error),
        }
    }

    /// Looks whether the account still works; asks a person if it does not, or in any case with `force`.
    pub(crate) async fn refresh_hosted(
        &self,
        connection: Connection,
        integration: &Integration,
        scheme: &Hosted,
        force: bool,
        link: &LinkOptions,
    ) -> Result<ConnectResult, ConnectionError> {
        let target = ConnectionKey { project: connection.project, id: connection.id };
        if !force
            && connection.is_usable()
            && let Some(account) = &connection.remote
        {
            match self.host(integration)?.standing(account).await.map_err(|error| explained(integration, error))? {
                Standing::Works => return Ok(ConnectResult { connection, redirect_url: None, note: None }),
                Standing::Waits => {}
                Standing::Broken(reason) => self.invalidate(&connection, HookEvent::Broken, &reason).await?,
            }
        }
        let app = match self.app_used(target.project, connection.app).await? {
            Some(app) => Some(app),
            None => self.app_for_hosted(target.project, integration, scheme).await?,
        };
        let started = self.start_hosted(target, integration, scheme, app.as_ref(), connection.scopes.as_deref(), link).await?;
        let given_up = store::attempt_remote(&self.0.db, target.project, target.id).await?;
        if !store::set_attempt(&self.0.db, target.project, target.id, &started.stored).await? {
            self.forget_later(&connection.provider, started.stored.account);
            return Err(ConnectionError::NotFound);
        }
        // The callback of the attempt that was given up may have come in meanwhile; from now on it cannot.
        let current = self.get(target.project, target.id).await?;
        self.forget_later(&connection.provider, given_up.filter(|account| current.remote.as_ref() != Some(account)));
        Ok(ConnectResult { connection: current, redirect_url: Some(started.redirect_url), note: None })
    }

    /// Refuses a connection whose account does not work any more, and says so in its row.
    pub(crate) async fn check_hosted(&self, connection: &Connection, integration: &Integration) -> Result<(), ConnectionError> {
        let Some(account) = &connection.remote else { return Ok(()) };
        if let Ok(Standing::Broken(reason)) = self.host(integration)?.standing(account).await {
            self.invalidate(connection, HookEvent::Broken, &reason).await?;
            self.get(connection.project, connection.id).await?.require_usable()?;
        }
        Ok(())
    }

    /// The provider's name for the account behind a connection.
    #[kernel::boxed]
    pub async fn account(&self, project: ProjectId, id: ConnectionId) -> Result<Option<String>, ConnectionError> {
        Ok(store::by_id(&self.0.db, project, id).await?.and_then(|connection| connection.remote))
    }

    /// The provider's names for all accounts of a project.
    #[kernel::boxed]
    pub async fn accounts(&self, provider: &str, project: ProjectId) -> Result<Vec<String>, ConnectionError> {
        let rows = store::remotes(&self.0.db, project, provider).await?;
        Ok(rows.into_iter().filter_map(|(connection, _)| connection.remote).collect())
    }

    /// The provider says that an account does not work any more. It may have said so long ago, so it is asked again.
    #[kernel::boxed]
    pub async fn lost(&self, provider: &str, account: &str, reason: &str) -> Result<(), ConnectionError> {
        if let Some(host) = self.0.hosts.get(provider)
            && let Ok(Standing::Works) = host.standing(account).await
        {
            return Ok(());
        }
        let lost = store::by_remote(&self.0.db, provider, account).await?;
        store::lose(&self.0.db, provider, account, reason, self.0.clock.now()).await?;
        for connection in &lost {
            self.announce(connection, HookEvent::Broken, Some(reason)).await;
        }
        Ok(())
    }

    /// What a project has at providers which keep accounts; to be read before the project goes, and given to `forget` after.
    #[kernel::boxed]
    pub async fn elsewhere(&self, project: ProjectId) -> Result<Vec<(&'static str, String)>, ConnectionError> {
        let mut all = Vec::new();
        for provider in self.0.hosts.keys() {
            let rows = store::remotes(&self.0.db, project, provider).await?;
            let accounts = rows.into_iter().flat_map(|(connection, waiting)| connection.remote.into_iter().chain(waiting));
            all.extend(accounts.map(|account| (*provider, account)));
        }
        Ok(all)
    }

    /// Removes accounts that belonged to a project which is gone.
    pub fn forget(&self, accounts: Vec<(&'static str, String)>) {
        for (provider, account) in accounts {
            self.forget_later(provider, [account]);
        }
    }

    /// Brings a project's connections and its accounts at the provider together: what nobody here knows is removed there, what does not work
    /// there is not valid here.
    #[kernel::boxed]
    pub async fn tidy(&self, provider: &str, project: ProjectId) -> Result<Tidied, ConnectionError> {
        let Some(host) = self.0.hosts.get(provider) else { return Ok(Tidied::default()) };
        // What is listed first may be gone by the time that the rows are read, but not the other way round.
        let listed = host.accounts(project).await.map_err(|error| named(provider, error))?;
        let rows = store::remotes(&self.0.db, project, provider).await?;
        let mut tidied = Tidied::default();
        let young = self.0.clock.now().minus(YOUNG);
        for account in &listed {
            let is_known = rows.iter().any(|(row, waiting)| [row.remote.as_ref(), waiting.as_ref()].contains(&Some(&account.id)));
            if is_known || account.created_at.is_none_or(|created| created > young) {
                continue;
            }
            match host.forget(&account.id).await {
                Ok(()) => tidied.removed += 1,
                Err(error) => tracing::info!(provider, ?error, "an account that nobody uses could not be removed"),
            }
        }
        for (row, _) in rows.iter().filter(|(row, _)| row.is_usable()) {
            let Some(account) = &row.remote else { continue };
            let reason = match listed.iter().find(|listed| listed.id == *account).map(|listed| &listed.standing) {
                Some(Standing::Works | Standing::Waits) => continue,
                Some(Standing::Broken(reason)) => reason.clone(),
                // One that was connected while the list was read is not in it.
                None => match host.standing(account).await.map_err(|error| named(provider, error))? {
                    Standing::Broken(reason) => reason,
                    Standing::Works | Standing::Waits => continue,
                },
            };
            self.invalidate(row, HookEvent::Broken, &reason).await?;
            tidied.invalidated += 1;
        }
        Ok(tidied)
    }

    /// Removes accounts at their provider, when it listens; what stays is found by `tidy`.
    pub(crate) fn forget_later(&self, provider: &str, accounts: impl IntoIterator<Item = String>) {
        let Some(host) = self.0.hosts.get(provider) else { return };
        for account in accounts {
            let host = host.clone();
            self.0.tasks.spawn(async move {
                if let Err(error) = host.forget(&account).await {
                    tracing::info!(?error, "an account could not be removed at its provider yet");
                }
            });
        }
    }

    fn host(&self, integration: &Integration) -> Result<Arc<dyn Host>, ConnectionError> {
        let missing = || named(integration.provider, HostError::Refused("it connects no accounts here".to_owned()));
        self.0.hosts.get(integration.provider).cloned().ok_or_else(missing)
    }
}

/// How an account stands, asked again for a moment while its person is not done.
async fn look(host: &dyn Host, account: &str) -> Result<Standing, HostError> {
    for _ in 1..LOOKS {
        match host.standing(account).await? {
            Standing::Waits => tokio::time::sleep(BETWEEN_LOOKS).await,
            other => return Ok(other),
        }
    }
    host.standing(account).await
}

/// The way to connect where the caller has no wish: the service's consent if it can be had, else a key.
pub(crate) fn preferred(integration: &Integration, has_app: bool) -> Option<&AuthScheme> {
    let hosted = |wanted: &dyn Fn(&Hosted) -> bool| {
        integration.schemes().find(|scheme| matches!(scheme, AuthScheme::Hosted(hosted) if wanted(hosted)))
    };
    hosted(&|hosted| hosted.is_oauth && (hosted.is_managed || has_app))
        .or_else(|| hosted(&|hosted| !hosted.is_oauth))
        .or_else(|| hosted(&|_| true))
}

fn no_managed(integration: &Integration, save_app: &str) -> ConnectionError {
    ConnectionError::NoApp(format!(
        "The '{key}' integration has no managed OAuth configuration available in this environment. It requires custom OAuth credentials \
         (use_custom_auth) to be configured for this provider before it can be connected: save a client id and secret with \
         `toolyard oauth-app set {provider}/{key}` or {save_app}.",
        key = integration.key,
        provider = integration.provider,
    ))
}

fn explained(integration: &Integration, error: HostError) -> ConnectionError {
    named(&integration.name, error)
}

fn named(name: &str, error: HostError) -> ConnectionError {
    let integration = name.to_owned();
    match error {
        HostError::Refused(message) => ConnectionError::Upstream { integration, message },
        HostError::Server(status) => ConnectionError::UpstreamServer { integration, status },
        HostError::Unreachable(error) => ConnectionError::Unreachable { integration, error },
    }
}
