//! Posts that are signed as Standard Webhooks say: an id, a time, and an HMAC over both and the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use sha2::Sha256;
use url::Url;

use crate::Request;

const PREFIX: &str = "whsec_";

/// A secret as its receiver is shown it.
pub fn secret(bytes: &[u8; 24]) -> String {
    format!("{PREFIX}{}", STANDARD.encode(bytes))
}

/// A signed post. The same message has the same id whenever it is sent, so that its receiver knows a repetition.
pub fn post(url: Url, secret: &str, id: &str, seconds: i64, body: String) -> Request {
    let key = STANDARD.decode(secret.strip_prefix(PREFIX).unwrap_or(secret)).unwrap_or_default();
    let signature = signature(&key, id, seconds, &body);
    signed(url, &signature, id, seconds, body)
}

/// The same, signed by each of the secrets. Their texts are the keys as they are, prefix and all.
pub fn post_by_text(url: Url, secrets: &[&str], id: &str, seconds: i64, body: String) -> Request {
    let signatures: Vec<String> = secrets.iter().map(|secret| signature(secret.as_bytes(), id, seconds, &body)).collect();
    signed(url, &signatures.join(" "), id, seconds, body)
}

fn signed(url: Url, signature: &str, id: &str, seconds: i64, body: String) -> Request {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [("webhook-id", id), ("webhook-timestamp", &seconds.to_string()), ("webhook-signature", signature)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    let mut request = Request::new(Method::POST, url).body(body);
    request.headers = headers;
    request
}

fn signature(key: &[u8], id: &str, seconds: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        // The example of the specification.
        let body = r#"{"test": 2432232314}"#;
        let url: Url = "https://example.com/".parse().unwrap();
        let (secret, id) = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek");
        let request = post(url.clone(), secret, id, 1_614_265_330, body.to_owned());
        assert_eq!(request.headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        // A secret whose text is the key signs otherwise, and each of several signs once.
        let request = post_by_text(url, &[secret, "old"], id, 1_614_265_330, body.to_owned());
        let both = request.headers["webhook-signature"].to_str().unwrap();
        assert_eq!(both.split(' ').filter(|one| one.starts_with("v1,")).count(), 2, "{both}");
        assert!(!both.contains("g0hM9SsE"), "{both}");
    }
}
