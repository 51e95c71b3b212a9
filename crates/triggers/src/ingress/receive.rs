//! Taking requests in: who is it for, is it real, is it new. Only what is stored is acknowledged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use kernel::json::weigh;
use kernel::{Budget, DeliveryId};
use serde_json::{Map, Value, json};
use store::StoreError;
use work::WorkError;

use super::plain;
use crate::inbox::{Arrival, Taken};
use crate::model::{EventRow, Parent, Subscription, WEBHOOK};
use crate::port::{Answer, EventSource, Hub, HubMessage, Incoming, Judged, Refusal, Verified};
use crate::store::{self as rows, NewDelivery};
use crate::subscriptions::fires;
use crate::{TriggerError, Triggers};

/// Refused requests of one address in a minute before the rest are not even looked at.
const MAX_REFUSED: u32 = 120;
const MAX_ADDRESSES: usize = 10_000;
/// For how long a message of a hub is refused if it comes again: as long as its signature may be old.
const SEEN: Duration = Duration::from_mins(5);
/// Headers that are kept with an event. Others may carry a credential of the sender under a name that nobody here knows.
const KEPT: [&str; 14] = [
    "accept",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "idempotency-key",
    "traceparent",
    "user-agent",
    "webhook-id",
    "webhook-timestamp",
    "svix-id",
    "svix-timestamp",
    "x-correlation-id",
    "x-forwarded-for",
];
/// How the names end by which services say what an event is and which one.
const KEPT_ENDS: [&str; 13] = [
    "-api-version",
    "-channel-id",
    "-delivery",
    "-delivery-id",
    "-event",
    "-event-id",
    "-event-key",
    "-event-type",
    "-hook-id",
    "-request-id",
    "-resource-state",
    "-timestamp",
    "-topic",
];
/// Why a subscription takes no events.
const NO_SECRET: &str = "Events are refused: there is no secret to check them with. Save the subscription again with `data.secret`.";

/// A message that names no trigger, or no event.
const NOT_ROUTED: &str = "No trigger_id/id to route";

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
    #[kernel::boxed]
    pub async fn receive(&self, provider: &str, integration: &str, token: &str, request: &Request<'_>) -> Result<Received, TriggerError> {
        if self.0.throttle.is_closed(token) {
            return Ok(Received::Throttled);
        }
        let find = || async { Ok::<_, StoreError>(rows::subscription_by_token(&self.0.db, token).await?.map(Arc::new)) };
        let row = self.0.watched.or_find(token.to_owned(), find).await?;
        let Some(row) = row.filter(|row| row.provider == provider && row.integration == integration) else { return Ok(Received::Unknown) };
        let (project, secret) = (row.project, self.secret(&row)?);
        let url = self.address(&row);
        let incoming = Incoming { method: request.method, url: &url, query: request.query, headers: request.headers, body: request.body };
        let now = self.0.clock.now().seconds();
        let source = self.0.sources.get(provider);
        if source.is_none() && integration != WEBHOOK {
            return Ok(Received::Unknown);
        }
        let looks = if integration == WEBHOOK { plain::looks(&row) } else { 1 };
        let size = request.body.len().saturating_mul(looks);
        let judged = if size <= work::SMALL {
            judge(source, &row, &incoming, secret.as_deref(), now)
        } else {
            let (source, row, secret, url) = (source.cloned(), row.clone(), secret.clone(), url.clone());
            let (method, query) = (request.method.to_owned(), request.query.to_vec());
            let (headers, body) = (request.headers.clone(), request.body.to_vec());
            let work = move |budget: &Budget| {
                budget.hold(weigh(&body)).map_err(WorkError::from)?;
                let incoming = Incoming { method: &method, url: &url, query: &query, headers: &headers, body: &body };
                Ok::<_, TriggerError>(judge(source.as_ref(), &row, &incoming, secret.as_deref(), now))
            };
            self.0.workers.run(project, size, work).await?
        };
        match judged {
            Ok(Judged::Handshake { answer, secret }) => {
                if let Some(secret) = secret {
                    let sealed = self.seal_secret(&row, &secret);
                    let sql = "update trigger_subscriptions set secret = $3, reason = null where project_id = $1 and id = $2";
                    self.0.db.execute(sql, store::args![row.project, row.id, sealed]).await?;
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
                    ..EventRow::of(&row, id, self.0.clock.now())
                };
                self.store_event(&row, event, verified.as_ref()).await
            }
            Err(Refusal::NotJson) => Ok(Received::NotJson),
            Err(Refusal::NoSecret) => {
                tracing::warn!(subscription = %row.id, "an event was refused: the subscription has no secret to check it with");
                let sql = "update trigger_subscriptions set reason = $3 where project_id = $1 and id = $2 and deleted_at is null";
                self.0.db.execute(sql, store::args![row.project, row.id, NO_SECRET]).await?;
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

    /// A message to the one address of a provider. Whoever knows it can send nonsense, so nonsense must not keep events out: it is refused by
    /// its signature alone.
    #[kernel::boxed]
    pub async fn receive_from_hub(&self, provider: &'static str, request: &Request<'_>) -> Result<Received, TriggerError> {
        let Some(hub) = self.0.sources.get(provider).and_then(|source| source.hub()) else { return Ok(Received::Refused) };
        let incoming = Incoming { method: request.method, url: "", query: request.query, headers: request.headers, body: request.body };
        let verified = match self.prove(provider, hub, &incoming).await? {
            Ok(verified) => verified,
            Err(refusal) => {
                tracing::info!(provider, %refusal, "a message was refused");
                return Ok(Received::Refused);
            }
        };
        // The message's own id, so that one which is signed anew is known too.
        let message = verified.id.as_deref().unwrap_or(&verified.signature);
        let now = self.0.clock.now();
        if rows::is_seen_by_hub(&self.0.db, provider, message, now.minus(SEEN)).await? {
            return Ok(Received::Refused);
        }
        let outcome = self.take_message(provider, hub, request, &verified).await?;
        // Only now: a request that could not be stored may come again as it is.
        let is_first = rows::seen_by_hub(&self.0.db, provider, message, now, now.minus(SEEN)).await?;
        Ok(if is_first { outcome } else { Received::Refused })
    }

    /// A message that the provider did send.
    async fn take_message(
        &self,
        provider: &str,
        hub: &dyn Hub,
        request: &Request<'_>,
        verified: &Verified,
    ) -> Result<Received, TriggerError> {
        if request.body.is_empty() {
            return Ok(Received::Accepted(Some(NOT_ROUTED)));
        }
        let Ok(body) = serde_json::from_slice::<Value>(request.body) else { return Ok(Received::NotJson) };
        let (trigger, id, kind, payload) = match hub.read(request.headers, &body) {
            HubMessage::Event { trigger, id, kind, payload } => (trigger, id, kind, payload),
            HubMessage::AccountLost { account, why } => {
                self.0.connections.lost(provider, &account, &why).await?;
                return Ok(Received::Accepted(None));
            }
            HubMessage::TriggerDisabled { trigger, why } => {
                self.trigger_disabled(provider, &trigger, &why).await?;
                return Ok(Received::Accepted(None));
            }
            HubMessage::Other => return Ok(Received::Accepted(Some(NOT_ROUTED))),
        };
        let mut outcome = Received::Accepted(None);
        for row in rows::subscriptions_by_trigger(&self.0.db, provider, &trigger).await? {
            let mut event = EventRow {
                headers: shown(request.headers, None),
                body: request.body.to_vec(),
                attributes: payload.clone(),
                ..EventRow::of(&row, id.clone(), self.0.clock.now())
            };
            if let Some(kind) = &kind {
                event.event_type.clone_from(kind);
            }
            if let Received::Refused = self.store_event(&row, event, Some(verified)).await? {
                outcome = Received::Refused;
            }
        }
        Ok(outcome)
    }

    /// Proves a message with any of the secrets that the provider may sign with.
    async fn prove(
        &self,
        provider: &'static str,
        hub: &dyn Hub,
        incoming: &Incoming<'_>,
    ) -> Result<Result<Verified, Refusal>, TriggerError> {
        let now = self.0.clock.now().seconds();
        let proven = hub.prove(&self.hub_secrets(provider).await?, incoming, now);
        if !matches!(proven, Err(Refusal::Mismatch | Refusal::NoSecret)) {
            return Ok(proven);
        }
        Ok(self.hub_secrets_again(provider).await?.map_or(proven, |secrets| hub.prove(&secrets, incoming, now)))
    }

    async fn store_event(&self, row: &Subscription, event: EventRow, verified: Option<&Verified>) -> Result<Received, TriggerError> {
        let delivery = fires(row).then(|| delivery_of(row, &event));
        let signature = verified.filter(|verified| verified.timestamp.is_some()).map(|verified| verified.signature.clone());
        let is_wanted = delivery.is_some();
        match self.0.inbox.arrive(Arrival { event: event.into(), signature, delivery }).await.ok_or(TriggerError::Busy)?? {
            Taken::New => {
                self.wake_all();
                self.0.arrived.notify_waiters();
                Ok(Received::Accepted((!is_wanted).then_some("The subscription is paused; the event is kept and starts nothing.")))
            }
            Taken::Again => Ok(Received::Accepted(Some("This event is here already."))),
            Taken::Replay => Ok(Received::Refused),
        }
    }
}

/// Proves a request to a subscription's address and reads the event in it.
fn judge(
    source: Option<&Arc<dyn EventSource>>,
    row: &Subscription,
    incoming: &Incoming<'_>,
    secret: Option<&str>,
    now: i64,
) -> Result<Judged, Refusal> {
    match source.filter(|_| row.integration != WEBHOOK) {
        Some(source) => source.judge(&row.integration, incoming, secret, now),
        None => plain::judge(row, incoming, secret, now),
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

/// The headers as they are kept: those that are known to hold no credential.
fn shown(headers: &HeaderMap, secret: Option<&str>) -> Value {
    let is_known = |name: &str| KEPT.contains(&name) || KEPT_ENDS.iter().any(|end| name.ends_with(end));
    let keep = |name: &str, value: &str| is_known(name) && secret.is_none_or(|secret| !value.contains(secret));
    let mut kept = Map::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes()).replace('\0', "");
        if keep(name.as_str(), &value) {
            kept.insert(name.to_string(), json!(value));
        }
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_headers_that_are_known_to_hold_no_credential_are_kept() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("x-github-event", "push"),
            ("x-shopify-topic", "orders/create"),
            ("x-request-id", "s3cr3t"),
            ("x-custom-auth", "token-of-the-sender"),
            ("x-api-key", "token-of-the-sender"),
            ("authorization", "Bearer x"),
            ("x-hub-signature-256", "sha256=00"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let kept = json!({"content-type": "application/json", "x-github-event": "push", "x-shopify-topic": "orders/create"});
        assert_eq!(shown(&headers, Some("s3cr3t")), kept);
    }
}
