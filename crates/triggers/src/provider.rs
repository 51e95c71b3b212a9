//! Asking providers to send events, and to stop.

use std::sync::Arc;

use catalog::{CatalogError, Event, Integration};
use connections::{Acceptance, Connection, ConnectionError, Usable};
use kernel::seal::{SealedColumn, Sealer};
use kernel::{ProjectId, SubscriptionId};
use serde_json::{Map, Value};
use store::{Db, args};

use crate::model::{Subscription, WEBHOOK};
use crate::port::{EventSource, Polled, Registered, Watch, WatchError, WatchMethod};
use crate::target::read_event;
use crate::{TriggerError, Triggers};

/// Everything that is known about what a subscription watches.
pub(crate) struct WatchedEvent {
    pub(crate) source: Arc<dyn EventSource>,
    pub(crate) integration: Arc<Integration>,
    pub(crate) event: Arc<Event>,
    pub(crate) connection: Connection,
    pub(crate) config: Map<String, Value>,
    pub(crate) method: WatchMethod,
}

/// What to ask of a provider.
enum ProviderRequest<'a> {
    Register,
    Unregister(&'a str),
    Poll(Option<&'a Value>),
}

enum ProviderReply {
    Registered(Registered),
    Unregistered,
    Polled(Polled),
}

impl Triggers {
    /// Looks up what a connection and an event key name.
    pub(crate) async fn watched(
        &self,
        project: ProjectId,
        connection: Connection,
        event_key: &str,
        config: Map<String, Value>,
    ) -> Result<WatchedEvent, TriggerError> {
        let unknown =
            || TriggerError::Invalid(format!("`{event_key}` is not an event of {}; see /triggers/catalog", connection.integration));
        let source = self.0.sources.get(connection.provider.as_str()).cloned();
        let source = source.ok_or_else(|| TriggerError::Invalid(format!("provider `{}` has no events", connection.provider)))?;
        self.0.catalog.ready(project).await.map_err(ConnectionError::from)?;
        let integration = self.0.catalog.reach_integration(project, &connection.provider, &connection.integration).await;
        let integration = integration.map_err(|error| match error {
            error @ (CatalogError::NotConfigured { .. } | CatalogError::Upstream(_) | CatalogError::UpstreamServer(_)) => {
                ConnectionError::from(error).into()
            }
            _ => unknown(),
        })?;
        let event = integration.event(event_key).cloned().ok_or_else(unknown)?;
        let method = source.method(&integration.key, event_key).ok_or_else(unknown)?;
        Ok(WatchedEvent { source, integration, event, connection, config, method })
    }

    /// What a stored subscription watches; none for a plain webhook.
    pub(crate) async fn watched_by(&self, row: &Subscription) -> Result<Option<WatchedEvent>, TriggerError> {
        let Some(connection) = row.connection else { return Ok(None) };
        let connection = self.0.connections.get(row.project, connection).await?;
        let (event_key, config) = read_event(&row.data)?;
        self.watched(row.project, connection, &event_key, config).await.map(Some)
    }

    /// How events of this kind come; none where nobody sends them.
    pub fn method(&self, provider: &str, integration: &str, event: &str) -> Option<WatchMethod> {
        self.0.sources.get(provider)?.method(integration, event)
    }

    /// The address that a provider sends events to.
    pub fn address(&self, row: &Subscription) -> String {
        let base = self.0.public_url.trim_end_matches('/');
        format!("{base}/triggers/{}/{}/{}", if row.integration == WEBHOOK { "native" } else { &row.provider }, row.integration, row.token)
    }

    pub(crate) async fn register(&self, watched: &WatchedEvent, row: &Subscription, secret: &str) -> Result<Registered, TriggerError> {
        self.ensure_hub(&watched.connection.provider).await?;
        match self.ask(watched, row, secret, ProviderRequest::Register).await? {
            ProviderReply::Registered(registered) => Ok(registered),
            ProviderReply::Unregistered | ProviderReply::Polled(_) => Ok(Registered::default()),
        }
    }

    pub(crate) async fn unregister(&self, watched: &WatchedEvent, row: &Subscription, secret: &str) -> Result<(), TriggerError> {
        match &row.trigger_id {
            Some(remote) => self.ask(watched, row, secret, ProviderRequest::Unregister(remote)).await.map(|_| ()),
            None => Ok(()),
        }
    }

    pub(crate) async fn poll(&self, watched: &WatchedEvent, row: &Subscription) -> Result<Polled, TriggerError> {
        match self.ask(watched, row, "", ProviderRequest::Poll(row.poll_cursor.as_ref())).await? {
            ProviderReply::Polled(polled) => Ok(polled),
            ProviderReply::Registered(_) | ProviderReply::Unregistered => Ok(Polled::default()),
        }
    }

    /// Asks with the connection's credential, renewed once if the provider refuses it.
    async fn ask(
        &self,
        watched: &WatchedEvent,
        row: &Subscription,
        secret: &str,
        ask: ProviderRequest<'_>,
    ) -> Result<ProviderReply, TriggerError> {
        let WatchedEvent { integration, connection, .. } = watched;
        let url = self.address(row);
        let usable = self.0.connections.usable(connection, integration).await?;
        let client_secret = match ask {
            ProviderRequest::Register => self.0.connections.client_secret(connection).await?,
            ProviderRequest::Unregister(_) | ProviderRequest::Poll(_) => None,
        };
        let secrets = Secrets { ours: secret, client: client_secret.as_deref() };
        let (url, ask) = (url.as_str(), &ask);
        let attempt = |usable: Arc<Usable>| async move { once(watched, &usable, url, secrets, ask).await };
        let outcome = self.0.connections.with_credential(connection, integration, usable, attempt, accepts).await?;
        outcome.map_err(|error| explained(&integration.name, error))
    }

    pub(crate) fn seal_secret(&self, row: &Subscription, secret: &str) -> Vec<u8> {
        self.0.sealer.seal(secret.as_bytes(), place(row.id))
    }

    pub(crate) fn secret(&self, row: &Subscription) -> Result<Option<String>, TriggerError> {
        let Some(sealed) = &row.secret else { return Ok(None) };
        let plain = self.0.sealer.open(sealed, place(row.id))?;
        Ok(Some(String::from_utf8_lossy(&plain).into_owned()))
    }
}

/// A provider's failure as a caller hears of it.
pub(crate) fn explained(name: &str, error: WatchError) -> TriggerError {
    match error {
        WatchError::Config(reason) => TriggerError::Invalid(format!("{name}: {reason}")),
        WatchError::Unauthorized(reason) | WatchError::Forbidden(reason) => {
            TriggerError::Upstream(format!("{name} refused the credential: {reason}"))
        }
        WatchError::Upstream(reason) => TriggerError::Upstream(format!("{name}: {reason}")),
        WatchError::Server { status, message } => TriggerError::UpstreamServer(format!("{name} failed with status {status}: {message}")),
        WatchError::Unreachable(error) => TriggerError::Upstream(format!("{name} could not be reached: {error}")),
    }
}

fn place(id: SubscriptionId) -> SealedColumn<'static> {
    SealedColumn { table: "trigger_subscriptions", column: "secret", row: id.uuid() }
}

/// Seals the secrets of every subscription with the current key; one that changes meanwhile is left to its writer.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, TriggerError> {
    let mut resealed = 0;
    for row in db.all("select project_id, id, secret from trigger_subscriptions where secret is not null", args![]).await? {
        let (project, id): (ProjectId, SubscriptionId) = (row.get("project_id")?, row.get("id")?);
        let old: Vec<u8> = row.get("secret")?;
        if !sealer.is_current(&old) {
            let new = sealer.seal(&sealer.open(&old, place(id))?, place(id));
            let sql = "update trigger_subscriptions set secret = $3 where project_id = $1 and id = $2 and secret = $4";
            resealed += db.execute(sql, args![project, id, new, old]).await?;
        }
    }
    Ok(resealed + crate::hub::reseal(db, sealer).await?)
}

/// What webhooks may be signed with.
#[derive(Clone, Copy)]
struct Secrets<'a> {
    ours: &'a str,
    client: Option<&'a str>,
}

async fn once(
    watched: &WatchedEvent,
    usable: &Usable,
    url: &str,
    secrets: Secrets<'_>,
    ask: &ProviderRequest<'_>,
) -> Result<ProviderReply, WatchError> {
    let WatchedEvent { source, integration, event, connection, config, .. } = watched;
    let (project, connection) = (connection.project, connection.id);
    let (secret, client_secret) = (secrets.ours, secrets.client);
    let watch = Watch { integration, event, config, project, connection, usable, url, secret, client_secret };
    match ask {
        ProviderRequest::Register => source.register(watch).await.map(ProviderReply::Registered),
        ProviderRequest::Unregister(remote) => source.unregister(watch, remote).await.map(|()| ProviderReply::Unregistered),
        ProviderRequest::Poll(cursor) => source.poll(watch, *cursor).await.map(ProviderReply::Polled),
    }
}

/// What an outcome says about the credential.
fn accepts(outcome: &Result<ProviderReply, WatchError>) -> Acceptance {
    match outcome {
        Ok(_) => Acceptance::Accepted,
        Err(WatchError::Unauthorized(reason)) => Acceptance::Refused(reason.clone()),
        Err(WatchError::Forbidden(_)) => Acceptance::Forbidden,
        Err(_) => Acceptance::Unknown,
    }
}

/// A connection that is gone is no reason to fail what only cleans up.
pub(crate) fn is_gone(error: &TriggerError) -> bool {
    matches!(error, TriggerError::Connection(ConnectionError::NotFound))
}
