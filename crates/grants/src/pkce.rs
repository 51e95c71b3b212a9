//! Proof that whoever redeems a code is who asked for it (RFC 7636), with S256 and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{GrantError, Refusal};

const METHOD: &str = "S256";
/// 32 bytes in base64.
const CHALLENGE: usize = 43;

/// A hash of the verifier that only the client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge(String);

impl Challenge {
    /// The challenge of an authorization request. Without a method it would be `plain`, which is refused.
    pub fn read(challenge: Option<&str>, method: Option<&str>) -> Result<Self, GrantError> {
        let wrong = |why: &str| Err(GrantError::refused(Refusal::InvalidRequest, why));
        if method.is_some_and(|method| method != METHOD) || (challenge.is_some() && method.is_none()) {
            return wrong("`code_challenge_method` must be `S256`.");
        }
        match challenge {
            None | Some("") => wrong("`code_challenge` is missing; PKCE with `S256` is required."),
            Some(text) if text.len() != CHALLENGE || URL_SAFE_NO_PAD.decode(text).is_err() => {
                wrong("`code_challenge` must be the SHA-256 of the verifier in base64url, which is 43 characters.")
            }
            Some(text) => Ok(Self(text.to_owned())),
        }
    }

    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the verifier that the challenge was made from.
    pub(crate) fn is_met_by(&self, verifier: Option<&str>) -> bool {
        let Some(verifier) = verifier else { return false };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(fits) {
            return false;
        }
        let made = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        made.as_bytes().ct_eq(self.0.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7636.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const MADE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn only_s256_is_taken() {
        assert!(Challenge::read(Some(MADE), Some("S256")).is_ok());
        for (challenge, method) in [
            (None, None),
            (None, Some("S256")),
            (Some(""), Some("S256")),
            (Some(MADE), None),
            (Some(VERIFIER), Some("plain")),
            (Some(MADE), Some("s256")),
            (Some(&MADE[1..]), Some("S256")),
            (Some("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw+cM"), Some("S256")),
            (Some(&*"a".repeat(5000)), Some("S256")),
        ] {
            let refused = Challenge::read(challenge, method);
            assert!(matches!(refused, Err(GrantError::Refused(Refusal::InvalidRequest, _))), "{challenge:?} {method:?}");
        }
    }

    #[test]
    fn only_its_own_verifier_meets_a_challenge() {
        let challenge = Challenge::read(Some(MADE), Some("S256")).unwrap();
        assert!(challenge.is_met_by(Some(VERIFIER)));
        let long = VERIFIER.repeat(3);
        for verifier in
            [None, Some(""), Some(MADE), Some(&VERIFIER[1..]), Some(&*long), Some("dBjftJeZ4CVP mB92K27uhbUJU1p1r_wW1gFWFOEjXk")]
        {
            assert!(!challenge.is_met_by(verifier), "{verifier:?}");
        }
    }
}
