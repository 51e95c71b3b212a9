//! Whether a request was signed by its provider, by the scheme that the manifest names.

use std::borrow::Cow;

use hmac::Hmac;
use http::HeaderMap;
use kernel::hex;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use triggers::ingress::codec::from_base64;
use triggers::ingress::proof::{among, header, mac};
use triggers::ingress::timestamp::{require_fresh, seconds};
use triggers::{Incoming, Refusal, Verified};

use super::signed::{Fields, Part, content, parts};
use crate::manifest::{Algorithm, KeyEncoding, Pairs, Signature, SignatureEncoding, Source};

const TOLERANCE: u32 = 300;
const WHOLE_BODY: &str = "{body}";

/// A sender may list a signature per key while it changes keys; nobody has this many.
const MAX_SIGNATURES: usize = 16;

/// Proves that a request comes from whoever holds the secret; `id` is where the manifest says the sender's id stands.
pub(crate) fn verify(
    signature: &Signature,
    id: Option<&Source>,
    secret: &[u8],
    incoming: &Incoming<'_>,
    now: i64,
) -> Result<Verified, Refusal> {
    let key = key(signature, secret)?;
    let id = id.and_then(|source| sender_id(source, incoming.headers));
    match signature.algorithm {
        Algorithm::Token | Algorithm::Basic => verify_token(signature, &key, id, incoming),
        Algorithm::HmacSha256 | Algorithm::HmacSha1 | Algorithm::Ed25519 => verify_signed(signature, &key, id, incoming, now),
    }
}

/// What is wrong with a scheme before any request comes in.
pub(crate) fn check(signature: &Signature, id: Option<&Source>) -> Result<(), String> {
    let require = |holds: bool, message: &str| if holds { Ok(()) } else { Err(message.to_owned()) };
    require(signature.header.is_some() != signature.pointer.is_some(), "needs either `header` or `pointer`")?;
    require(signature.pointer.is_none() || signature.algorithm == Algorithm::Token, "only a token may stand at a `pointer`")?;
    let signed = parts(signature.signed.as_deref().unwrap_or(WHOLE_BODY))?;
    let dated = signature.timestamp.is_some() || signature.pairs.is_some();
    require(!signed.contains(&Part::Timestamp) || dated, "`signed` holds a timestamp, but nothing says where it stands")?;
    require(!dated || signed.contains(&Part::Timestamp), "the timestamp is not part of `signed`, so it proves nothing")?;
    require(!signed.contains(&Part::Id) || matches!(id, Some(Source::Header(_))), "`signed` holds an id, but `id` names no header")
}

fn verify_signed(signature: &Signature, key: &[u8], id: Option<&str>, incoming: &Incoming<'_>, now: i64) -> Result<Verified, Refusal> {
    let marks = Marks::read(signature, incoming.headers)?;
    let timestamp = marks.timestamp.map(|text| seconds(text).ok_or_else(|| Refusal::Malformed("timestamp".to_owned()))).transpose()?;
    if let Some(timestamp) = timestamp {
        require_fresh(timestamp, now, signature.tolerance.unwrap_or(TOLERANCE))?;
    }
    let fields = Fields { incoming, timestamp: marks.timestamp, id };
    let content = content(signature.signed.as_deref().unwrap_or(WHOLE_BODY), &fields)?;
    let given: Vec<_> = marks.signatures.iter().filter_map(|text| decode(signature.encoding, text)).collect();
    if given.is_empty() {
        return Err(Refusal::Malformed(header_name(signature)?.to_owned()));
    }
    let matched = matching(signature.algorithm, key, &content, &given).ok_or(Refusal::Mismatch)?;
    Ok(Verified { timestamp, signature: hex::encode(matched), id: id.map(str::to_owned) })
}

fn verify_token(signature: &Signature, secret: &[u8], id: Option<&str>, incoming: &Incoming<'_>) -> Result<Verified, Refusal> {
    let given = match &signature.pointer {
        Some(pointer) => token_in_body(pointer, incoming.body)?,
        None => token_in_header(signature, incoming.headers)?,
    };
    // Digests have one length, so the comparison does not tell how long the secret is.
    if !bool::from(Sha256::digest(given).as_slice().ct_eq(Sha256::digest(secret).as_slice())) {
        return Err(Refusal::Mismatch);
    }
    // The token itself is the secret and must not be remembered.
    let digest = mac::<Hmac<Sha256>>(secret, &[incoming.body]);
    Ok(Verified { timestamp: None, signature: hex::encode(&digest), id: id.map(str::to_owned) })
}

fn token_in_header(signature: &Signature, headers: &HeaderMap) -> Result<Vec<u8>, Refusal> {
    let name = header_name(signature)?;
    let value = headers.get(name).ok_or_else(|| Refusal::Missing(name.to_owned()))?.as_bytes();
    let token = if signature.algorithm == Algorithm::Basic {
        password(value)
    } else {
        value.strip_prefix(signature.prefix.as_deref().unwrap_or_default().as_bytes()).map(<[u8]>::to_vec)
    };
    token.ok_or_else(|| Refusal::Malformed(name.to_owned()))
}

/// The password of an HTTP Basic credential; the user name says nothing.
fn password(credential: &[u8]) -> Option<Vec<u8>> {
    let (scheme, encoded) = std::str::from_utf8(credential).ok()?.split_once(' ')?;
    let decoded = from_base64(encoded.trim()).filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    Some(decoded[colon + 1..].to_vec())
}

fn token_in_body(pointer: &str, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let body: Value = serde_json::from_slice(body).map_err(|_| Refusal::Malformed("body".to_owned()))?;
    let token = body.pointer(pointer).and_then(Value::as_str).ok_or_else(|| Refusal::Missing(pointer.to_owned()))?;
    Ok(token.as_bytes().to_vec())
}

/// The signatures of a request and the time that stands beside them, as text.
struct Marks<'a> {
    timestamp: Option<&'a str>,
    signatures: Vec<&'a str>,
}

impl<'a> Marks<'a> {
    fn read(signature: &Signature, headers: &'a HeaderMap) -> Result<Self, Refusal> {
        let name = header_name(signature)?;
        let mut marks = match &signature.pairs {
            Some(pairs) => Self::paired(pairs, header(headers, name)?),
            None => Self { timestamp: None, signatures: listed(signature, name, headers)? },
        };
        marks.signatures.truncate(MAX_SIGNATURES);
        if let Some(timestamp) = &signature.timestamp {
            marks.timestamp = Some(header(headers, timestamp)?);
        }
        if signature.pairs.is_some() && marks.timestamp.is_none() {
            return Err(Refusal::Missing("timestamp".to_owned()));
        }
        Ok(marks)
    }

    /// `t=1,v1=abc,v1=def`
    fn paired(pairs: &Pairs, text: &'a str) -> Self {
        let all = || text.split([',', ';']).filter_map(|pair| pair.trim().split_once('='));
        Self {
            timestamp: all().find(|(name, _)| *name == pairs.timestamp).map(|(_, value)| value),
            signatures: all().filter(|(name, _)| *name == pairs.signature).map(|(_, value)| value).collect(),
        }
    }
}

/// The signatures in a header, with a space or comma between them; one that belongs to the prefix does not separate.
fn listed<'a>(signature: &Signature, name: &str, headers: &'a HeaderMap) -> Result<Vec<&'a str>, Refusal> {
    header(headers, name)?;
    let prefix = signature.prefix.as_deref().unwrap_or_default();
    let separates = |letter: char| [' ', ','].contains(&letter) && !prefix.contains(letter);
    let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    Ok(texts.flat_map(|text| text.split(separates)).filter_map(|piece| piece.trim().strip_prefix(prefix)).collect())
}

/// The first of the given signatures that is right.
fn matching<'a>(algorithm: Algorithm, key: &[u8], content: &[&[u8]], given: &'a [Vec<u8>]) -> Option<&'a [u8]> {
    if algorithm == Algorithm::Ed25519 {
        let (key, content) = (UnparsedPublicKey::new(&ED25519, key), content.concat());
        return given.iter().map(Vec::as_slice).find(|signature| key.verify(&content, signature).is_ok());
    }
    let expected = match algorithm {
        Algorithm::HmacSha1 => mac::<Hmac<Sha1>>(key, content),
        _ => mac::<Hmac<Sha256>>(key, content),
    };
    among(&expected, given)
}

fn decode(encoding: SignatureEncoding, text: &str) -> Option<Vec<u8>> {
    match encoding {
        SignatureEncoding::Hex => hex::decode(text),
        SignatureEncoding::Base64 => from_base64(text),
    }
}

fn header_name(signature: &Signature) -> Result<&str, Refusal> {
    signature.header.as_deref().ok_or_else(|| Refusal::Scheme("no `header` is named".to_owned()))
}

fn sender_id<'a>(source: &Source, headers: &'a HeaderMap) -> Option<&'a str> {
    match source {
        Source::Header(name) => header(headers, name).ok(),
        Source::Pointer(_) => None,
    }
}

/// The key that the secret stands for. An empty one would let anybody sign.
fn key<'a>(signature: &Signature, secret: &'a [u8]) -> Result<Cow<'a, [u8]>, Refusal> {
    let default = if signature.algorithm == Algorithm::Ed25519 { KeyEncoding::Hex } else { KeyEncoding::Text };
    let text = std::str::from_utf8(secret).map(str::trim).ok();
    let key = match signature.key.unwrap_or(default) {
        KeyEncoding::Text => Cow::Borrowed(secret),
        KeyEncoding::Hex => Cow::Owned(text.and_then(hex::decode).ok_or(Refusal::BadSecret)?),
        KeyEncoding::Base64 => {
            let text = text.map(|text| text.strip_prefix("whsec_").unwrap_or(text));
            Cow::Owned(text.and_then(from_base64).ok_or(Refusal::BadSecret)?)
        }
    };
    if key.is_empty() { Err(Refusal::NoSecret) } else { Ok(key) }
}
