//! That a message is from Composio.

use kernel::hex;
use triggers::ingress::codec::from_base64;
use triggers::ingress::proof::header;
use triggers::ingress::verify;
use triggers::{Incoming, Refusal, Verified};

/// How old a signed message may be, in seconds.
const WINDOW: u32 = 300;

/// Proves a message with any of the secrets that Composio may sign with.
pub(crate) fn prove<'a>(secrets: impl Iterator<Item = &'a str>, incoming: &Incoming<'_>, now: i64) -> Result<Verified, Refusal> {
    let mut refusal = Refusal::NoSecret;
    for secret in secrets {
        match prove_with(secret.as_bytes(), incoming, now, WINDOW) {
            Ok(verified) => return Ok(verified),
            Err(why) => refusal = why,
        }
    }
    Err(refusal)
}

/// Composio signs like Standard Webhooks, but with the secret's own bytes, and writes hex or Base64.
fn prove_with(secret: &[u8], incoming: &Incoming<'_>, now: i64, window: u32) -> Result<Verified, Refusal> {
    let named = if incoming.headers.contains_key("webhook-signature") { "webhook-signature" } else { "x-composio-signature" };
    let signatures = header(incoming.headers, named)?;
    // A version such as `v1` stands between the same commas; it is no signature and decodes to none.
    verify("webhook", secret, signatures.split([' ', ',']).filter_map(any_digest), incoming, now, window)
}

/// The 32 bytes that a text of hex or Base64 stands for.
fn any_digest(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let decoded = if text.len() == 64 { hex::decode(text) } else { from_base64(text) };
    decoded.filter(|bytes| bytes.len() == 32)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    const NOW: i64 = 1_700_000_000;
    const BODY: &[u8] = br#"{"ok":true}"#;

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
    fn composio_writes_hex_or_base64_and_never_decodes_its_secret() {
        let (hex, base64) =
            ("1daea5f70572366396a95edb5454862ea79572621b76e004de2beb4fbdb94dea", "Ha6l9wVyNmOWqV7bVFSGLqeVcmIbduAE3ivrT725Teo=");
        let expected = Verified { timestamp: Some(NOW), signature: hex.to_owned(), id: Some("msg_1".to_owned()) };
        let zeros = "0".repeat(64);
        for (name, signature, believed) in [
            ("webhook-signature", hex.to_owned(), true),
            ("webhook-signature", format!("v1,{hex}"), true),
            ("webhook-signature", format!("v1,{base64}"), true),
            ("webhook-signature", format!("v1,{zeros} v1,{base64}"), true),
            ("x-composio-signature", format!("v1,{hex}"), true),
            ("x-composio-signature", base64.to_owned(), true),
            ("webhook-signature", format!("v1,{zeros}"), false),
            ("webhook-signature", "v1,".to_owned(), false),
            ("webhook-signature", "v1,é".to_owned(), false),
        ] {
            let headers = headers(&[("webhook-id", "msg_1"), ("webhook-timestamp", "1700000000"), (name, &signature)]);
            let verified = prove_with(b"whsec_not-decoded", &post(&headers, BODY), NOW, 300);
            assert_eq!(verified.ok(), believed.then(|| expected.clone()), "{signature}");
            assert!(prove_with(b"whsec_other", &post(&headers, BODY), NOW, 300).is_err());
            assert!(prove_with(b"", &post(&headers, BODY), NOW, 300).is_err());
        }
        let all = headers(&[("webhook-id", "msg_1"), ("webhook-timestamp", "1700000000"), ("webhook-signature", hex)]);
        assert_eq!(prove_with(b"whsec_not-decoded", &post(&all, BODY), NOW + 61, 60), Err(Refusal::Stale));
        assert!(prove_with(b"whsec_not-decoded", &post(&all, BODY), NOW + 500, 600).is_ok());
    }

    #[test]
    fn hostile_headers_are_refused_quietly() {
        let many = "v1,".repeat(100_000);
        for value in ["", " ", "v1,", "v1,é", "é", "=,;=", &"a".repeat(1_000_001), &many, "v1,\u{1f600}"] {
            let headers = headers(&[("webhook-id", "a"), ("webhook-timestamp", "1700000000"), ("webhook-signature", value)]);
            assert!(prove_with(b"secret", &post(&headers, b"\xff"), NOW, u32::MAX).is_err());
        }
    }
}
