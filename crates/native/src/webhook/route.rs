//! Which events of an integration a request is, and by which id a retry of it is known.

use std::collections::BTreeMap;

use http::HeaderMap;
use kernel::hex;
use kernel::json::plain_text;
use serde_json::Value;
use sha2::{Digest, Sha256};
use triggers::ingress::proof::header;

use crate::manifest::{Source, Webhook};

const MAX_ID: usize = 200;

/// The kind of event that a request says it is.
pub(super) fn kind(source: Option<&Source>, headers: &HeaderMap, body: &Value) -> Option<String> {
    source.and_then(|source| read(source, headers, body))
}

/// Whether a request of this kind is that event.
pub(super) fn is_event(webhook: &Webhook, kind: Option<&str>, body: &Value) -> bool {
    webhook.event.as_deref().is_none_or(|event| kind == Some(event)) && holds(&webhook.matching, body)
}

/// The id that this request has in common with its retries: the sender's, or else a hash of the body.
pub(super) fn delivery_id(source: Option<&Source>, headers: &HeaderMap, raw: &[u8], body: &Value) -> String {
    source.and_then(|source| read(source, headers, body)).map_or_else(|| hash(raw), stored_id)
}

/// An id as it is kept: one that is too long or holds something odd is hashed.
pub(crate) fn stored_id(id: String) -> String {
    if id.len() <= MAX_ID && !id.contains(char::is_control) { id } else { hash(id.as_bytes()) }
}

/// Whether every pointer holds its value, or one of its values; null stands for nothing being there.
pub(super) fn holds(conditions: &BTreeMap<String, Value>, body: &Value) -> bool {
    conditions.iter().all(|(pointer, wanted)| {
        let found = body.pointer(pointer).unwrap_or(&Value::Null);
        match wanted {
            Value::Array(any) => any.contains(found),
            one => one == found,
        }
    })
}

fn read(source: &Source, headers: &HeaderMap, body: &Value) -> Option<String> {
    match source {
        Source::Header(name) => header(headers, name).ok().map(str::to_owned),
        Source::Pointer(pointer) => body.pointer(pointer).and_then(plain_text),
    }
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}
