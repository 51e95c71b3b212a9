//! Signed tokens: a small text that only this deployment can have made.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Signs texts for one purpose.
#[derive(Clone)]
pub struct Signer([u8; 32]);

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// `payload.signature`, both URL-safe.
    pub fn sign(&self, payload: &[u8]) -> String {
        let body = URL_SAFE_NO_PAD.encode(payload);
        let signature = URL_SAFE_NO_PAD.encode(self.mac(body.as_bytes()).finalize().into_bytes());
        format!("{body}.{signature}")
    }

    /// The payload, if the signature is ours.
    pub fn verify(&self, token: &str) -> Option<Vec<u8>> {
        let (body, signature) = token.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.mac(body.as_bytes()).verify_slice(&signature).ok()?;
        URL_SAFE_NO_PAD.decode(body).ok()
    }

    fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(text);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_tokens_verify() {
        let signer = Signer::new([7; 32]);
        let token = signer.sign(b"hello");
        assert_eq!(signer.verify(&token).unwrap(), b"hello");
        assert!(Signer::new([8; 32]).verify(&token).is_none());
        assert!(signer.verify(&token.replace('.', "x.")).is_none());
        assert!(signer.verify("").is_none());
    }
}
