//! Requests that only want an answer, to prove that the address is ours.

use hmac::Hmac;
use kernel::hex;
use kernel::json::plain_text;
use serde_json::Value;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use triggers::ingress::proof::{header, mac};
use triggers::{Answer, Incoming, Refusal, Verified};

use super::route::holds;
use crate::manifest::{Challenge, Echo, EchoSource};

/// Longer values are no challenge but an attempt to have us repeat something.
const MAX_VALUE: usize = 4096;

/// The answer, if the request is a challenge and may be answered after what `verify` said about it, and the secret that it brought.
pub(super) fn answer(
    challenge: &Challenge,
    incoming: &Incoming<'_>,
    body: &Value,
    secret: &[u8],
    verdict: &Result<Option<Verified>, Refusal>,
) -> Option<(Answer, Option<String>)> {
    let value = echoed(&challenge.reply, incoming, body).filter(|value| !value.is_empty() && value.len() <= MAX_VALUE)?;
    if !holds(&challenge.matching, body) || !may_answer(challenge, verdict) || !knows_token(challenge, incoming, secret) {
        return None;
    }
    let reply = match (&challenge.body, &challenge.reply) {
        (Some(template), _) => Answer::Json(fill(template, &value, secret, matches!(verdict, Ok(Some(_))))?),
        (None, Echo::Outside(EchoSource::Header(name))) => Answer::Header { name: name.clone(), value: value.clone() },
        (None, _) => Answer::Text(value.clone()),
    };
    Some((reply, challenge.secret.then_some(value)))
}

/// Many challenges come unsigned or before the secret is known; a wrong signature is refused all the same.
/// A secret is only taken while there is none, or anybody could replace it.
fn may_answer(challenge: &Challenge, verdict: &Result<Option<Verified>, Refusal>) -> bool {
    match verdict {
        Err(Refusal::NoSecret) => true,
        Ok(_) | Err(Refusal::Missing(_)) => !challenge.secret,
        Err(_) => false,
    }
}

fn echoed(echo: &Echo, incoming: &Incoming<'_>, body: &Value) -> Option<String> {
    match echo {
        Echo::Pointer(pointer) => body.pointer(pointer).and_then(plain_text),
        Echo::Outside(EchoSource::Header(name)) => header(incoming.headers, name).ok().map(str::to_owned),
        Echo::Outside(EchoSource::Query(name)) => parameter(incoming, name).map(str::to_owned),
    }
}

fn knows_token(challenge: &Challenge, incoming: &Incoming<'_>, secret: &[u8]) -> bool {
    let Some(name) = &challenge.token else { return true };
    !secret.is_empty() && parameter(incoming, name).is_some_and(|token| bool::from(token.as_bytes().ct_eq(secret)))
}

fn parameter<'a>(incoming: &Incoming<'a>, name: &str) -> Option<&'a str> {
    incoming.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// The template with `{value}` and `{hmac}` filled in. Only a proven sender may have a value of its choice signed:
/// the signature of a forged body is such a value.
fn fill(template: &Value, value: &str, secret: &[u8], proven: bool) -> Option<Value> {
    Some(match template {
        Value::String(text) if text == "{value}" => Value::from(value),
        Value::String(text) if text == "{hmac}" => {
            proven.then(|| Value::from(hex::encode(&mac::<Hmac<Sha256>>(secret, &[value.as_bytes()]))))?
        }
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, field)| Some((name.clone(), fill(field, value, secret, proven)?))).collect::<Option<_>>()?,
        ),
        Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, value, secret, proven)).collect::<Option<_>>()?),
        other => other.clone(),
    })
}
