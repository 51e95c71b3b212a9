//! A plain inbound webhook: any sender, proven by a secret where its owner gave one.

use hmac::Hmac;
use http::{HeaderMap, HeaderName};
use kernel::json::plain_text;
use kernel::{Budget, hex};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::codec::from_base64;
use super::proof::{among, header, mac};
use crate::TriggerError;
use crate::mapping::Path;
use crate::model::{Subscription, WEBHOOK_EVENT};
use crate::port::{Incoming, Judged, Refusal, Verified};
use crate::target::read_event;

const FIELDS: [&str; 5] = ["scheme", "secret", "id_header", "id_path", "id_digest"];
/// How senders of a plain webhook can prove themselves.
pub const SCHEMES: [&str; 3] = ["token", "hmac_sha256", "standard_webhooks"];
/// Headers by which senders name one event. Ids of requests are not among them: proxies repeat those.
const ID_HEADERS: [&str; 4] = ["webhook-id", "svix-id", "x-github-delivery", "idempotency-key"];
/// A longer id is kept as its digest.
const MAX_ID: usize = 200;

/// About how often a plain webhook looks at a body, by the path of its ids.
pub(crate) fn looks(row: &Subscription) -> usize {
    let path = read_event(&row.data).ok().and_then(|(_, config)| Path::parse(config.get("id_path")?.as_str()?).ok());
    path.map_or(1, |path| 1 + path.looks())
}

/// Proves a request and reads the event in it.
pub(crate) fn judge(row: &Subscription, incoming: &Incoming<'_>, secret: Option<&str>, now: i64) -> Result<Judged, Refusal> {
    let config = read_event(&row.data).map(|(_, config)| config).unwrap_or_default();
    let verified = prove(&config, incoming, secret, now)?;
    let body = serde_json::from_slice(incoming.body).unwrap_or_else(|_| json!(String::from_utf8_lossy(incoming.body)));
    let id = event_id(&config, verified.as_ref(), incoming, &body);
    let payload = match body {
        Value::Object(_) => body,
        other => json!({"body": other}),
    };
    Ok(Judged::Event { verified, keys: vec![WEBHOOK_EVENT.to_owned()], id, payload })
}

fn prove(config: &Map<String, Value>, incoming: &Incoming<'_>, secret: Option<&str>, now: i64) -> Result<Option<Verified>, Refusal> {
    match (scheme(config, secret), secret) {
        (None, _) => Ok(None),
        // Such rows were saved by versions that did not ask for a secret.
        (Some(_), None) => Err(Refusal::NoSecret),
        (Some("standard_webhooks"), Some(secret)) => super::standard_webhooks(secret.as_bytes(), incoming, now).map(Some),
        (Some("hmac_sha256"), Some(secret)) => hmac_sha256(secret, incoming).map(Some),
        (Some(_), Some(secret)) => bearer(secret, incoming).map(Some),
    }
}

/// How senders prove themselves; none where they need not.
fn scheme<'a>(config: &'a Map<String, Value>, secret: Option<&str>) -> Option<&'a str> {
    match (config.get("scheme").and_then(Value::as_str), secret) {
        (Some(scheme), _) => Some(scheme),
        (None, Some(secret)) if secret.starts_with("whsec_") => Some("standard_webhooks"),
        (None, Some(_)) => Some("token"),
        (None, None) => None,
    }
}

/// Checks what a plain webhook says about its sender and the ids of its events.
pub(crate) fn check(config: &Map<String, Value>, secret: Option<&str>) -> Result<(), TriggerError> {
    let invalid = |name: &str, why: &str| Err(TriggerError::Invalid(format!("`data.trigger_config.{name}` {why}")));
    if let Some(unknown) = config.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        let hint = kernel::suggest::did_you_mean(unknown, FIELDS);
        return invalid(unknown, &format!("is not known; there are: {}.{hint}", FIELDS.join(", ")));
    }
    match config.get("scheme") {
        None => {}
        Some(Value::String(name)) if SCHEMES.contains(&name.as_str()) => {}
        Some(_) => return invalid("scheme", &format!("must be one of: {}", SCHEMES.join(", "))),
    }
    match (scheme(config, secret), secret) {
        (Some(name), None) => {
            return invalid("scheme", &format!("is `{name}`, which needs `data.secret`: what the sender proves itself with"));
        }
        (Some("standard_webhooks"), Some(secret)) if key_of(secret).is_none() => {
            return Err(TriggerError::Invalid("`data.secret` must be Base64 after `whsec_`, as `standard_webhooks` has it".to_owned()));
        }
        _ => {}
    }
    match config.get("id_header") {
        None => {}
        Some(Value::String(name)) if name.parse::<HeaderName>().is_ok() => {}
        Some(_) => return invalid("id_header", "must be the name of a header"),
    }
    match config.get("id_path") {
        None => {}
        Some(Value::String(path)) => {
            if let Err(reason) = Path::parse(path) {
                return invalid("id_path", &format!("is not a JSONPath of the body, such as `$.order.id`: {reason}"));
            }
        }
        Some(_) => return invalid("id_path", "must be a JSONPath of the body, such as `$.order.id`"),
    }
    match config.get("id_digest") {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(_) => invalid("id_digest", "must be true or false"),
    }
}

fn key_of(secret: &str) -> Option<Vec<u8>> {
    from_base64(secret.trim().strip_prefix("whsec_").unwrap_or(secret.trim())).filter(|key| !key.is_empty())
}

/// The id that an event has in common with its retries. Without one each request is an event of its own, unless the owner said that equal
/// bodies are one.
fn event_id(config: &Map<String, Value>, verified: Option<&Verified>, incoming: &Incoming<'_>, body: &Value) -> String {
    let configured = || {
        let named = config.get("id_header").and_then(Value::as_str).and_then(|name| said(incoming.headers, name));
        named.or_else(|| {
            let path = Path::parse(config.get("id_path")?.as_str()?).ok()?;
            plain_text(path.select(body, &Budget::default()).ok()?.first()?)
        })
    };
    let signed = || verified.and_then(|verified| verified.id.clone());
    let usual = || ID_HEADERS.iter().find_map(|name| said(incoming.headers, name));
    match configured().or_else(signed).or_else(usual) {
        Some(id) if id.len() <= MAX_ID && !id.contains(char::is_control) => id,
        Some(id) => hex::encode(&Sha256::digest(id)),
        None if config.get("id_digest") == Some(&Value::Bool(true)) => hex::encode(&Sha256::digest(incoming.body)),
        None => Uuid::now_v7().to_string(),
    }
}

fn said(headers: &HeaderMap, name: &str) -> Option<String> {
    header(headers, name).ok().map(str::to_owned)
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
