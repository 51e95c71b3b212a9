//! What every scheme of proof needs.

use hmac::{KeyInit, Mac};
use http::HeaderMap;
use subtle::ConstantTimeEq;

use crate::Refusal;

/// The text of a header, trimmed; an empty one is missing.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Refusal> {
    let value = headers.get(name).ok_or_else(|| Refusal::Missing(name.to_owned()))?;
    let text = value.to_str().map_err(|_| Refusal::Malformed(name.to_owned()))?.trim();
    if text.is_empty() { Err(Refusal::Missing(name.to_owned())) } else { Ok(text) }
}

/// The authentication code of the content, which comes in pieces.
pub fn mac<M: Mac + KeyInit>(key: &[u8], content: &[&[u8]]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    for piece in content {
        mac.update(piece);
    }
    mac.finalize().into_bytes().to_vec()
}

/// Finds the expected signature without telling by the time how much of a wrong one was right.
pub fn among<'a>(expected: &[u8], given: &'a [Vec<u8>]) -> Option<&'a [u8]> {
    given.iter().map(Vec::as_slice).find(|signature| bool::from(expected.ct_eq(signature)))
}
