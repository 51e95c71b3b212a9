//! Reads what a provider sends: whether it is genuine, whether it only asks for an answer, and which events it is. Pure.

mod challenge;
mod route;
mod signed;
#[cfg(test)]
mod tests;
mod verify;

use serde_json::Value;
use triggers::{Incoming, Judged, Refusal};

pub(super) use route::stored_id;
pub(super) use verify::check;

use super::manifest::{Webhook, Webhooks};

/// Judges a request by what the manifest says of its provider. Without a `signature` there, knowing the address is all the proof there is.
pub(super) fn judge<'a>(
    webhooks: &Webhooks,
    events: impl Iterator<Item = (&'a str, &'a Webhook)>,
    incoming: &Incoming<'_>,
    secret: Option<&str>,
    now: i64,
) -> Result<Judged, Refusal> {
    let secret = secret.unwrap_or_default().as_bytes();
    let verdict = match &webhooks.signature {
        Some(signature) => verify::verify(signature, webhooks.id.as_ref(), secret, incoming, now).map(Some),
        None => Ok(None),
    };
    let parse = || serde_json::from_slice::<Value>(incoming.body);
    if let Some(challenge) = &webhooks.challenge {
        let body = parse().unwrap_or(Value::Null);
        if let Some((answer, secret)) = challenge::answer(challenge, incoming, &body, secret, &verdict) {
            return Ok(Judged::Handshake { answer, secret });
        }
    }
    let verified = verdict?;
    let payload = parse().map_err(|_| Refusal::NotJson)?;
    let kind = route::kind(webhooks.event.as_ref(), incoming.headers, &payload);
    let keys = events.filter(|(_, webhook)| route::is_event(webhook, kind.as_deref(), &payload)).map(|(key, _)| key.to_owned()).collect();
    let id = route::delivery_id(webhooks.id.as_ref(), incoming.headers, incoming.body, &payload);
    Ok(Judged::Event { verified, keys, id, payload })
}
