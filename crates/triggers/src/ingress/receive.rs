//! Taking requests in: who is it for, is it real, is it new. Only what is stored is acknowledged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hmac::Hmac;
use http::HeaderMap;
use kernel::{DeliveryId, hex};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::composio::{Kind, read_envelope};
use super::proof::{among, header, mac};
use crate::inbox::{Arrival, Taken};
use crate::model::{EventRow, Parent, Subscription, WEBHOOK, WEBHOOK_EVENT};
use crate::port::{Answer, Incoming, Judged, Refusal, Verified};
use crate::store::{self as rows, NewDelivery};
use crate::subscriptions::fires;
use crate::target::read_event;
use crate::{TriggerError, Triggers};

/// Refused requests of one address in a minute before the rest are not even looked at.
const MAX_REFUSED: u32 = 120;
const MAX_ADDRESSES: usize = 10_000;
/// Headers that may carry a credential of the sender; they are never stored.
const PRIVATE: [&str; 5] = ["authorization", "cookie", "proxy-authorization", "x-webhook-token", "x-gitlab-token"];
/// The provider whose messages come to one address for everybody.
const COMPOSIO: &str = "composio";
const SCHEMES: [&str; 3] = ["token", "hmac_sha256", "standard_webhooks"];

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
            _ if integration == WEBHOOK => plain(&row, &incoming, secret.as_deref(), now),
            Some(source) => source.judge(integration, &incoming, secret.as_deref(), now),
            None => return Ok(Received::Unknown),
        };
        match judged {
            Ok(Judged::Handshake { answer, secret }) => {
                if let Some(secret) = secret {
                    let sealed = self.seal_secret(&row, &secret);
                    let sql = "update trigger_subscriptions set secret = $3 where project_id = $1 and id = $2";
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
            if let Received::Refused = self.take(&row, event, Some(&verified)).await? {
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

/// A plain inbound webhook: any sender, proven by a secret where its owner gave one.
fn plain(row: &Subscription, incoming: &Incoming<'_>, secret: Option<&str>, now: i64) -> Result<Judged, Refusal> {
    let config = read_event(&row.data).map(|(_, config)| config).unwrap_or_default();
    let verified = match secret {
        None => None,
        Some(secret) => Some(match scheme(&config, secret) {
            "standard_webhooks" => super::standard_webhooks(secret.as_bytes(), incoming, now)?,
            "hmac_sha256" => hmac_sha256(secret, incoming)?,
            _ => bearer(secret, incoming)?,
        }),
    };
    let sent = ["webhook-id", "x-webhook-id", "idempotency-key", "x-request-id"];
    let sent = sent.iter().find_map(|name| header(incoming.headers, name).ok());
    let id = verified.as_ref().and_then(|verified| verified.id.clone()).or_else(|| sent.map(str::to_owned));
    let id = id.filter(|id| id.len() <= 200 && !id.contains(char::is_control));
    let id = id.unwrap_or_else(|| hex::encode(&Sha256::digest(incoming.body)));
    let payload = serde_json::from_slice(incoming.body).unwrap_or_else(|_| json!(String::from_utf8_lossy(incoming.body)));
    let payload = match payload {
        Value::Object(_) => payload,
        other => json!({"body": other}),
    };
    Ok(Judged::Event { verified, keys: vec![WEBHOOK_EVENT.to_owned()], id, payload })
}

fn scheme<'a>(config: &'a Map<String, Value>, secret: &str) -> &'a str {
    match config.get("scheme").and_then(Value::as_str) {
        Some(scheme) => scheme,
        None if secret.starts_with("whsec_") => "standard_webhooks",
        None => "token",
    }
}

/// Checks what a plain webhook says about its sender.
pub(crate) fn check_scheme(config: &Map<String, Value>) -> Result<(), TriggerError> {
    if let Some(unknown) = config.keys().find(|key| *key != "scheme") {
        return Err(TriggerError::Invalid(format!("`data.trigger_config.{unknown}` is not known; there are `scheme` and `secret`")));
    }
    match config.get("scheme") {
        None => Ok(()),
        Some(Value::String(scheme)) if SCHEMES.contains(&scheme.as_str()) => Ok(()),
        Some(_) => Err(TriggerError::Invalid(format!("`data.trigger_config.scheme` must be one of: {}", SCHEMES.join(", ")))),
    }
}

/// `sha256=<hex>` over the body, as many senders write it.
fn hmac_sha256(secret: &str, incoming: &Incoming<'_>) -> Result<Verified, Refusal> {
    let names = ["x-hub-signature-256", "x-signature-256", "x-webhook-signature"];
    let given = names.iter().find_map(|name| header(incoming.headers, name).ok()).ok_or_else(|| Refusal::Missing(names[0].to_owned()))?;
    let given = hex::decode(given.strip_prefix("sha256=").unwrap_or(given)).ok_or_else(|| Refusal::Malformed(names[0].to_owned()))?;
    let expected = mac::<Hmac<Sha256>>(secret.as_bytes(), &[incoming.body]);
    let matched = [given];
    let matched = among(&expected, &matched).ok_or(Refusal::Mismatch)?;
    Ok(Verified { timestamp: None, signature: hex::encode(matched), id: None })
}

/// The secret itself, as `X-Webhook-Token` or `Authorization: Bearer`.
fn bearer(secret: &str, incoming: &Incoming<'_>) -> Result<Verified, Refusal> {
    let given = header(incoming.headers, "x-webhook-token").or_else(|_| header(incoming.headers, "authorization"))?;
    let given = given.strip_prefix("Bearer ").unwrap_or(given);
    if !bool::from(given.as_bytes().ct_eq(secret.as_bytes())) {
        return Err(Refusal::Mismatch);
    }
    Ok(Verified { timestamp: None, signature: hex::encode(&mac::<Hmac<Sha256>>(secret.as_bytes(), &[incoming.body])), id: None })
}
