//! Taking requests in: who is it for, is it real, is it new. Only what is stored is acknowledged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use kernel::DeliveryId;
use serde_json::{Map, Value, json};

use super::composio::{Kind, read_envelope};
use super::plain;
use crate::inbox::{Arrival, Taken};
use crate::model::{EventRow, Parent, Subscription, WEBHOOK};
use crate::port::{Answer, Incoming, Judged, Refusal, Verified};
use crate::store::{self as rows, NewDelivery};
use crate::subscriptions::fires;
use crate::{TriggerError, Triggers};

/// Refused requests of one address in a minute before the rest are not even looked at.
const MAX_REFUSED: u32 = 120;
const MAX_ADDRESSES: usize = 10_000;
/// Headers that may carry a credential of the sender; they are never stored.
const PRIVATE: [&str; 5] = ["authorization", "cookie", "proxy-authorization", "x-webhook-token", "x-gitlab-token"];
/// Why a subscription takes no events.
const NO_SECRET: &str = "Events are refused: there is no secret to check them with. Save the subscription again with `data.secret`.";
/// The provider whose messages come to one address for everybody.
const COMPOSIO: &str = "composio";

/// A request as it came in.
#[derive(Debug)]
pub struct Request<'a> {
    pub method: &'a str,
    pub query: &'a [(String, String)],
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    /// Stored, or of no interest: acknowledged either way.
    Accepted(Option<&'static str>),
    /// A handshake's answer.
    Answer(Answer),
    /// Not what it claims to be.
    Refused,
    /// Nothing can be proven here: the subscription has no secret.
    NoSecret,
    /// An event, but events are sent with POST.
    NotPosted,
    /// There is no such address.
    Unknown,
    /// The body cannot be read.
    NotJson,
    /// Too many bad requests came to this address.
    Throttled,
}

/// Counts refused requests by address.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<HashMap<String, (Instant, u32)>>);

impl Throttle {
    fn is_closed(&self, address: &str) -> bool {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get(address).is_some_and(|(since, count)| *count >= MAX_REFUSED && since.elapsed() < Duration::from_mins(1))
    }

    fn refuse(&self, address: &str) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= MAX_ADDRESSES {
            refused.clear();
        }
        let entry = refused.entry(address.to_owned()).or_insert((Instant::now(), 0));
        if entry.0.elapsed() >= Duration::from_mins(1) {
            *entry = (Instant::now(), 0);
        }
        entry.1 += 1;
    }
}

impl Triggers {
    /// A request to the address of one subscription.
    pub async fn receive(&self, provider: &str, integration: &str, token: &str, request: &Request<'_>) -> Result<Received, TriggerError> {
        if self.0.throttle.is_closed(token) {
            return Ok(Received::Throttled);
        }
        let row = rows::subscription_by_token(&self.db, token).await?;
        let Some(row) = row.filter(|row| row.provider == provider && row.integration == integration) else { return Ok(Received::Unknown) };
        let secret = self.secret(&row)?;
        let url = self.address(&row);
        let incoming = Incoming { method: request.method, url: &url, query: request.query, headers: request.headers, body: request.body };
        let now = self.clock.now().seconds();
        let judged = match self.sources.get(provider) {
            _ if integration == WEBHOOK => plain::judge(&row, &incoming, secret.as_deref(), now),
            Some(source) => source.judge(integration, &incoming, secret.as_deref(), now),
            None => return Ok(Received::Unknown),
        };
        match judged {
            Ok(Judged::Handshake { answer, secret }) => {
                if let Some(secret) = secret {
                    let sealed = self.seal_secret(&row, &secret);
                    let sql = "update trigger_subscriptions set secret = $3, reason = null where project_id = $1 and id = $2";
                    self.db.execute(sql, store::args![row.project, row.id, sealed]).await?;
                }
                Ok(Received::Answer(answer))
            }
            Ok(Judged::Event { .. }) if request.method != "POST" => Ok(Received::NotPosted),
            Ok(Judged::Event { keys, .. }) if !keys.contains(&row.event_key) => {
                Ok(Received::Accepted(Some("This subscription does not watch this event.")))
            }
            Ok(Judged::Event { verified, id, payload, .. }) => {
                let event = EventRow {
                    headers: shown(request.headers, secret.as_deref()),
                    body: request.body.to_vec(),
                    attributes: payload,
                    ..EventRow::of(&row, id, self.clock.now())
                };
                self.take(&row, event, verified.as_ref()).await
            }
            Err(Refusal::NotJson) => Ok(Received::NotJson),
            Err(Refusal::NoSecret) => {
                tracing::warn!(subscription = %row.id, "an event was refused: the subscription has no secret to check it with");
                let sql = "update trigger_subscriptions set reason = $3 where project_id = $1 and id = $2 and deleted_at is null";
                self.db.execute(sql, store::args![row.project, row.id, NO_SECRET]).await?;
                self.0.throttle.refuse(token);
                Ok(Received::NoSecret)
            }
            Err(refusal) => {
                tracing::info!(subscription = %row.id, %refusal, "a request was refused");
                self.0.throttle.refuse(token);
                Ok(Received::Refused)
            }
        }
    }

    /// A message from Composio, which has one address for everybody. Whoever knows it can send nonsense, so nonsense must not keep events out: it
    /// is refused by its signature alone.
    pub async fn receive_composio(&self, request: &Request<'_>) -> Result<Received, TriggerError> {
        let incoming = Incoming { method: request.method, url: "", query: request.query, headers: request.headers, body: request.body };
        let verified = match self.prove_composio(&incoming).await? {
            Ok(verified) => verified,
            Err(refusal) => {
                tracing::info!(%refusal, "a request from Composio was refused");
                return Ok(Received::Refused);
            }
        };
        if rows::is_seen_by_hub(&self.db, COMPOSIO, &verified.signature).await? {
            return Ok(Received::Refused);
        }
        let outcome = self.take_composio(request, &verified).await?;
        // Only now: a request that could not be stored may come again as it is.
        let is_first = rows::seen_by_hub(&self.db, COMPOSIO, &verified.signature, self.clock.now()).await?;
        Ok(if is_first { outcome } else { Received::Refused })
    }

    /// A message that Composio did send.
    async fn take_composio(&self, request: &Request<'_>, verified: &Verified) -> Result<Received, TriggerError> {
        if request.body.is_empty() {
            return Ok(Received::Accepted(Some("No trigger_id/id to route")));
        }
        let Ok(body) = serde_json::from_slice::<Value>(request.body) else { return Ok(Received::NotJson) };
        let envelope = read_envelope(request.headers, &body);
        match (&envelope.kind, &envelope.account_id, &envelope.trigger_id) {
            (Kind::AccountExpired, Some(account), _) => {
                self.connections.lost(COMPOSIO, account, "Composio says that the account has expired. Connect it again.").await?;
                return Ok(Received::Accepted(None));
            }
            (Kind::TriggerDisabled, _, Some(trigger)) => {
                let why = "Composio switched this trigger off. Mend the connection, then refresh the subscription.";
                self.trigger_disabled(COMPOSIO, trigger, why).await?;
                return Ok(Received::Accepted(None));
            }
            _ => {}
        }
        let (Kind::Trigger, Some(trigger), Some(event_id)) = (&envelope.kind, &envelope.trigger_id, &envelope.event_id) else {
            return Ok(Received::Accepted(Some("No trigger_id/id to route")));
        };
        let mut outcome = Received::Accepted(None);
        for row in rows::subscriptions_by_trigger(&self.db, COMPOSIO, trigger).await? {
            let mut event = EventRow {
                headers: shown(request.headers, None),
                body: request.body.to_vec(),
                attributes: envelope.attributes.clone(),
                ..EventRow::of(&row, event_id.clone(), self.clock.now())
            };
            if let Some(slug) = &envelope.trigger_slug {
                event.event_type.clone_from(slug);
            }
            if let Received::Refused = self.take(&row, event, Some(verified)).await? {
                outcome = Received::Refused;
            }
        }
        Ok(outcome)
    }

    /// Proves a message from Composio with any of the secrets that it may sign with.
    async fn prove_composio(&self, incoming: &Incoming<'_>) -> Result<Result<Verified, Refusal>, TriggerError> {
        let now = self.clock.now().seconds();
        let prove = |secrets: &[String]| {
            let mut refusal = Refusal::NoSecret;
            for secret in self.composio_secret.iter().chain(secrets) {
                match super::composio(secret.as_bytes(), incoming, now, self.settings.composio_window) {
                    Ok(verified) => return Ok(verified),
                    Err(why) => refusal = why,
                }
            }
            Err(refusal)
        };
        let proven = prove(&self.hub_secrets(COMPOSIO).await?);
        if !matches!(proven, Err(Refusal::Mismatch | Refusal::NoSecret)) {
            return Ok(proven);
        }
        Ok(self.hub_secrets_again(COMPOSIO).await?.map_or(proven, |secrets| prove(&secrets)))
    }

    async fn take(&self, row: &Subscription, event: EventRow, verified: Option<&Verified>) -> Result<Received, TriggerError> {
        let delivery = fires(row).then(|| delivery_of(row, &event));
        let signature = verified.filter(|verified| verified.timestamp.is_some()).map(|verified| verified.signature.clone());
        let is_wanted = delivery.is_some();
        match self.0.inbox.arrive(Arrival { event, signature, delivery }).await.ok_or(TriggerError::Busy)?? {
            Taken::New => {
                self.0.wake.notify_one();
                self.0.arrived.notify_waiters();
                Ok(Received::Accepted((!is_wanted).then_some("The subscription is paused; the event is kept and starts nothing.")))
            }
            Taken::Again => Ok(Received::Accepted(Some("This event is here already."))),
            Taken::Replay => Ok(Received::Refused),
        }
    }
}

/// The delivery that an event makes.
pub(crate) fn delivery_of(row: &Subscription, event: &EventRow) -> NewDelivery {
    NewDelivery {
        id: DeliveryId::new(),
        project: row.project,
        parent: Parent::Subscription(row.id),
        event: Some(event.id),
        event_id: event.event_id.clone(),
        event_key: row.event_key.clone(),
        is_ordered: row.data.get("ordered") == Some(&Value::Bool(true)),
        due_at: event.received_at,
        created_at: event.received_at,
    }
}

/// The headers as they are kept: without credentials.
fn shown(headers: &HeaderMap, secret: Option<&str>) -> Value {
    let keep = |name: &str, value: &str| !PRIVATE.contains(&name) && secret.is_none_or(|secret| !value.contains(secret));
    let mut kept = Map::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes()).replace('\0', "");
        if keep(name.as_str(), &value) {
            kept.insert(name.to_string(), json!(value));
        }
    }
    Value::Object(kept)
}
