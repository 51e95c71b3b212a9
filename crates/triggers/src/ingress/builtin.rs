//! Schemes that no manifest describes.

use hmac::Hmac;
use kernel::hex;
use sha2::Sha256;

use super::codec::from_base64;
use super::proof::{among, header, mac};
use super::timestamp::{require_fresh, seconds};
use crate::{Incoming, Refusal, Verified};

/// The replay window of the specification.
const WINDOW: u32 = 300;
/// A sender may list a signature per key while it changes keys; nobody has this many.
const MAX_SIGNATURES: usize = 16;

/// Proves a request signed by the Standard Webhooks specification, under its own header names or those of Svix.
pub fn standard_webhooks(secret: &[u8], incoming: &Incoming<'_>, now: i64) -> Result<Verified, Refusal> {
    let text = std::str::from_utf8(secret).map_err(|_| Refusal::BadSecret)?.trim();
    let key = from_base64(text.strip_prefix("whsec_").unwrap_or(text)).ok_or(Refusal::BadSecret)?;
    let family = if incoming.headers.contains_key("svix-signature") { "svix" } else { "webhook" };
    let decode = |text: &str| text.strip_prefix("v1,").and_then(from_base64);
    let signatures = header(incoming.headers, &format!("{family}-signature"))?;
    verify(family, &key, signatures.split(' ').filter_map(decode), incoming, now, WINDOW)
}

/// Proves a request that is signed over its id, its time and its body, each but the body in a header of the family. The caller says which
/// signatures there are, and how old the request may be.
pub fn verify(
    family: &str,
    key: &[u8],
    signatures: impl Iterator<Item = Vec<u8>>,
    incoming: &Incoming<'_>,
    now: i64,
    window: u32,
) -> Result<Verified, Refusal> {
    if key.is_empty() {
        return Err(Refusal::NoSecret);
    }
    let dated = format!("{family}-timestamp");
    let (id, time) = (header(incoming.headers, &format!("{family}-id"))?, header(incoming.headers, &dated)?);
    let timestamp = seconds(time).ok_or(Refusal::Malformed(dated))?;
    require_fresh(timestamp, now, window)?;
    let expected = mac::<Hmac<Sha256>>(key, &[id.as_bytes(), b".", time.as_bytes(), b".", incoming.body]);
    let given: Vec<_> = signatures.take(MAX_SIGNATURES).collect();
    let matched = among(&expected, &given).ok_or(Refusal::Mismatch)?;
    Ok(Verified { timestamp: Some(timestamp), signature: hex::encode(matched), id: Some(id.to_owned()) })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let one = |(name, value): &(&str, &str)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        pairs.iter().map(one).collect()
    }

    fn post<'a>(headers: &'a HeaderMap, body: &'a [u8]) -> Incoming<'a> {
        Incoming { method: "POST", url: "https://toolyard.test/hooks/1", query: &[], headers, body }
    }

    #[test]
    fn standard_webhooks_of_both_families() {
        let (secret, body) = (b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", br#"{"test": 2432232314}"#);
        let right = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let (id, time) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330);
        for family in ["webhook", "svix"] {
            for (signature, believed) in [
                (right.to_owned(), true),
                (format!("v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v2,xyz {right}"), true),
                (right.replace("v1,", "v1a,"), false),
                (right.replace("v1,", ""), false),
                (right.to_lowercase(), false),
            ] {
                let names = ["id", "timestamp", "signature"].map(|name| format!("{family}-{name}"));
                let all = headers(&[(&names[0], id), (&names[1], "1614265330"), (&names[2], &signature)]);
                let verified = standard_webhooks(secret, &post(&all, body), time + 300);
                assert_eq!(verified.is_ok(), believed, "{family} {signature}");
                assert!(verified.is_err() || verified.unwrap().id.as_deref() == Some(id));
                assert_eq!(standard_webhooks(secret, &post(&all, body), time + 301), Err(Refusal::Stale));
                for name in &names {
                    let mut fewer = all.clone();
                    fewer.remove(name);
                    assert!(standard_webhooks(secret, &post(&fewer, body), time).is_err(), "{name}");
                }
            }
        }
        let empty = headers(&[("webhook-id", id), ("webhook-timestamp", "1614265330"), ("webhook-signature", right)]);
        assert_eq!(standard_webhooks(b"whsec_", &post(&empty, body), time), Err(Refusal::NoSecret));
        assert_eq!(standard_webhooks(b"whsec_!", &post(&empty, body), time), Err(Refusal::BadSecret));
    }

    #[test]
    fn hostile_headers_are_refused_quietly() {
        let many = "v1,".repeat(100_000);
        for value in ["", " ", "v1,", "v1,é", "é", "=,;=", &"a".repeat(1_000_001), &many, "v1,\u{1f600}"] {
            let headers = headers(&[("webhook-id", "a"), ("webhook-timestamp", "1700000000"), ("webhook-signature", value)]);
            assert!(standard_webhooks(b"c2VjcmV0", &post(&headers, b"\xff"), NOW).is_err());
            assert!(standard_webhooks(b"\xff", &post(&headers, b"\xff"), NOW).is_err());
        }
    }
}
