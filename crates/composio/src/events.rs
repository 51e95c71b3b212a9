//! Events: trigger instances at Composio, and the one address that all of them are sent to.

use connections::ACCOUNT;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};
use triggers::{
    EventSource, Hub, HubMessage, Incoming, Judged, Polled, Refusal, Registered, RemoteTrigger, Signed, Verified, Watch, WatchError,
    WatchMethod,
};

use crate::Composio;
use crate::client::{ApiRequest, ComposioError};
use crate::envelope::{Envelope, EnvelopeKind, read_envelope};
use crate::mirror::{one, pages};
use crate::proof::prove;

const PAGE: usize = 50;
/// What we want to hear of.
const EVENTS: [&str; 3] = ["composio.trigger.message", "composio.connected_account.expired", "composio.trigger.disabled"];
const VERSION: &str = "V3";

/// The subscription to all events of the project, of which Composio has one.
#[derive(Debug, Deserialize)]
struct Subscription {
    id: String,
    #[serde(default)]
    webhook_url: Option<String>,
    #[serde(default)]
    enabled_events: Vec<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    secret: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Instance {
    id: String,
    #[serde(default)]
    trigger_name: Option<String>,
    #[serde(default)]
    trigger_config: Value,
    #[serde(default)]
    connected_account_id: Option<String>,
    #[serde(default)]
    updated_at: Option<String>,
    #[serde(default)]
    disabled_at: Option<Value>,
}

impl EventSource for Composio {
    fn method(&self, integration: &str, event: &str) -> Option<WatchMethod> {
        self.listing().get(integration)?.event(event).map(|_| WatchMethod::Register)
    }

    fn has_own_secret(&self, _: &str) -> bool {
        false
    }

    fn judge(&self, _: &str, _: &Incoming<'_>, _: Option<&str>, _: i64) -> Result<Judged, Refusal> {
        Err(Refusal::Scheme("Composio sends its events to one address, not to this one".to_owned()))
    }

    fn register<'a>(&'a self, watch: Watch<'a>) -> BoxFuture<'a, Result<Registered, WatchError>> {
        Box::pin(async move {
            let Some(account) = watch.usable.fields.get(ACCOUNT) else {
                return Err(WatchError::Config("its events need a connected account".to_owned()));
            };
            let body = json!({"connected_account_id": account, "trigger_config": watch.config});
            let path = ["trigger_instances", &watch.event.key, "upsert"];
            let upsert = || self.client.ask(ApiRequest::post(&path, body.clone()));
            let made = match upsert().await {
                // The same account and configuration are the same trigger, however often it is asked for.
                Err(fault) if fault.is_uncertain() => upsert().await,
                made => made,
            };
            let made = made.map_err(explained)?;
            let id = ["/trigger_id", "/id"].iter().find_map(|place| made.pointer(place).and_then(Value::as_str));
            let id = id.ok_or_else(|| WatchError::Upstream("Composio named no trigger".to_owned()))?;
            Ok(Registered { remote: Some(id.to_owned()), secret: None })
        })
    }

    fn unregister<'a>(&'a self, _: Watch<'a>, remote: &'a str) -> BoxFuture<'a, Result<(), WatchError>> {
        Hub::remove(self, remote)
    }

    fn poll<'a>(&'a self, _: Watch<'a>, _: Option<&'a Value>) -> BoxFuture<'a, Result<Polled, WatchError>> {
        Box::pin(async { Ok(Polled::default()) })
    }

    fn hub(&self) -> Option<&dyn Hub> {
        Some(self)
    }
}

impl Hub for Composio {
    fn prove(&self, secrets: &[String], incoming: &Incoming<'_>, now: i64) -> Result<Verified, Refusal> {
        let given = self.settings.webhook_secret.iter().map(ExposeSecret::expose_secret);
        prove(given.chain(secrets.iter().map(String::as_str)), incoming, now)
    }

    fn read(&self, headers: &HeaderMap, body: &Value) -> HubMessage {
        let Envelope { kind, trigger_id, event_id, trigger_slug, account_id, attributes, .. } = read_envelope(headers, body);
        match (kind, account_id, trigger_id, event_id) {
            (EnvelopeKind::AccountExpired, Some(account), ..) => {
                HubMessage::AccountLost { account, why: "Composio says that the account has expired. Connect it again.".to_owned() }
            }
            (EnvelopeKind::TriggerDisabled, _, Some(trigger), _) => {
                let why = "Composio switched this trigger off. Mend the connection, then refresh the subscription.".to_owned();
                HubMessage::TriggerDisabled { trigger, why }
            }
            (EnvelopeKind::Trigger, _, Some(trigger), Some(id)) => {
                HubMessage::Event { trigger, id, kind: trigger_slug, payload: attributes }
            }
            _ => HubMessage::Other,
        }
    }

    fn ensure<'a>(&'a self, url: &'a str, knows_secret: bool) -> BoxFuture<'a, Result<Signed, WatchError>> {
        Box::pin(async move {
            if url.starts_with("http:") && !self.client.is_plain() {
                let reason = "Composio sends events to https addresses only; set `public_url` or COMPOSIO_WEBHOOK_URL to one";
                return Err(WatchError::Config(reason.to_owned()));
            }
            let wanted = json!({"webhook_url": url, "enabled_events": EVENTS, "version": VERSION});
            let (subscription, repaired) = match self.subscription().await.map_err(explained)? {
                Some(there) if there.is_as(url) => (there, None),
                Some(there) => {
                    let path = ["webhook_subscriptions", &there.id];
                    let saved = self.client.ask(ApiRequest::patch(&path, wanted)).await.map_err(explained)?;
                    let was = there.webhook_url.as_deref().filter(|was| *was != url);
                    let repaired =
                        was.map_or_else(|| "its events or its version".to_owned(), |was| format!("its address, which was {was}"));
                    let saved: Subscription = one(saved).map_err(explained)?;
                    (Subscription { secret: saved.secret.or(there.secret), ..saved }, Some(repaired))
                }
                None => match self.client.ask(ApiRequest::post(&["webhook_subscriptions"], wanted)).await {
                    Ok(made) => (one(made).map_err(explained)?, Some("it was not there".to_owned())),
                    // Another node was faster.
                    Err(ComposioError::Refused { status: 409, .. }) => {
                        let there = self.subscription().await.map_err(explained)?;
                        (there.ok_or_else(|| WatchError::Upstream("Composio has a subscription and does not show it".to_owned()))?, None)
                    }
                    Err(fault) => return Err(explained(fault)),
                },
            };
            let secret = match subscription.secret.filter(|secret| !secret.is_empty() && !secret.contains('*')) {
                Some(secret) => Some(secret),
                None if knows_secret => None,
                None => Some(self.rotate_at(&subscription.id).await?),
            };
            Ok(Signed { secret, repaired })
        })
    }

    fn rotate(&self) -> BoxFuture<'_, Result<String, WatchError>> {
        Box::pin(async move {
            let there = self.subscription().await.map_err(explained)?;
            let there = there.ok_or_else(|| WatchError::Upstream("Composio has no webhook subscription to rotate".to_owned()))?;
            self.rotate_at(&there.id).await
        })
    }

    fn instances(&self, accounts: Vec<String>) -> BoxFuture<'_, Result<Vec<RemoteTrigger>, WatchError>> {
        Box::pin(async move {
            let mut all = Vec::new();
            for account in accounts {
                let query = [("connected_account_ids", account.as_str()), ("show_disabled", "true")];
                let listed: Vec<Instance> = pages(&self.client, &["trigger_instances", "active"], &query, PAGE).await.map_err(explained)?;
                let own = listed.into_iter().filter(|instance| instance.connected_account_id.as_deref() == Some(account.as_str()));
                all.extend(own.map(Instance::remote));
            }
            Ok(all)
        })
    }

    fn instance<'a>(&'a self, trigger: &'a str) -> BoxFuture<'a, Result<Option<RemoteTrigger>, WatchError>> {
        Box::pin(async move {
            let query = [("trigger_ids", trigger), ("show_disabled", "true")];
            let listed: Vec<Instance> = pages(&self.client, &["trigger_instances", "active"], &query, PAGE).await.map_err(explained)?;
            Ok(listed.into_iter().find(|instance| instance.id == trigger).map(Instance::remote))
        })
    }

    fn remove<'a>(&'a self, trigger: &'a str) -> BoxFuture<'a, Result<(), WatchError>> {
        Box::pin(async move {
            match self.client.ask(ApiRequest::delete(&["trigger_instances", "manage", trigger])).await {
                Err(fault) if !fault.is_missing() => Err(explained(fault)),
                _ => Ok(()),
            }
        })
    }
}

impl Composio {
    async fn subscription(&self) -> Result<Option<Subscription>, ComposioError> {
        let listed: Vec<Subscription> = pages(&self.client, &["webhook_subscriptions"], &[], PAGE).await?;
        Ok(listed.into_iter().next())
    }

    async fn rotate_at(&self, id: &str) -> Result<String, WatchError> {
        let rotated =
            self.client.ask(ApiRequest::post(&["webhook_subscriptions", id, "rotate_secret"], json!({}))).await.map_err(explained)?;
        let secret = rotated.get("secret").and_then(Value::as_str).filter(|secret| !secret.is_empty());
        secret.map(str::to_owned).ok_or_else(|| WatchError::Upstream("Composio rotated the secret and does not show it".to_owned()))
    }
}

impl Instance {
    fn remote(self) -> RemoteTrigger {
        RemoteTrigger {
            event: self.trigger_name.unwrap_or_default(),
            config: self.trigger_config,
            is_disabled: self.disabled_at.is_some_and(|at| !at.is_null()),
            updated_at: self.updated_at.as_deref().and_then(crate::time),
            id: self.id,
        }
    }
}

impl Subscription {
    fn is_as(&self, url: &str) -> bool {
        self.webhook_url.as_deref() == Some(url)
            && self.version.as_deref() == Some(VERSION)
            && EVENTS.iter().all(|event| self.enabled_events.iter().any(|enabled| enabled == event))
    }
}

fn explained(fault: ComposioError) -> WatchError {
    match fault {
        ComposioError::Server { status, message } => WatchError::Server { status, message },
        ComposioError::Unreachable(error) => WatchError::Unreachable(error),
        other => WatchError::Upstream(other.to_string()),
    }
}
