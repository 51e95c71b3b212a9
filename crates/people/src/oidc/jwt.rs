//! Signed tokens of others (JWS): RS256 and ES256, checked with the keys that their issuer publishes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::Value;

/// Why a token is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unproven {
    /// It is no token, or signed in a way that is not taken here.
    Malformed,
    /// No key of the issuer has signed it; there may be newer ones.
    NoKey,
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn field(key: &Value, name: &str) -> Option<Vec<u8>> {
    decode(key[name].as_str()?)
}

/// The claims of a token that one of these keys has signed.
pub(super) fn claims(token: &str, keys: &[Value]) -> Result<Value, Unproven> {
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(Unproven::Malformed);
    };
    let parsed = |part: &str| decode(part).and_then(|text| serde_json::from_slice::<Value>(&text).ok()).filter(Value::is_object);
    let (Some(header), Some(signature)) = (parsed(head), decode(signature)) else { return Err(Unproven::Malformed) };
    let Some(alg @ ("RS256" | "ES256")) = header["alg"].as_str() else { return Err(Unproven::Malformed) };
    // An extension that must be understood is one that we do not understand.
    if !header["crit"].is_null() {
        return Err(Unproven::Malformed);
    }
    let signed = &token.as_bytes()[..head.len() + 1 + body.len()];
    let may_fit = |key: &&Value| {
        let named = header["kid"].is_null() || key["kid"].is_null() || key["kid"] == header["kid"];
        let meant = (key["use"].is_null() || key["use"] == "sig") && (key["alg"].is_null() || key["alg"] == alg);
        named && meant
    };
    if !keys.iter().filter(may_fit).any(|key| has_signed(key, alg, signed, &signature)) {
        return Err(Unproven::NoKey);
    }
    parsed(body).ok_or(Unproven::Malformed)
}

fn has_signed(key: &Value, alg: &str, signed: &[u8], signature: &[u8]) -> bool {
    let checked = match (alg, key["kty"].as_str()) {
        ("RS256", Some("RSA")) => {
            let (Some(n), Some(e)) = (field(key, "n"), field(key, "e")) else { return false };
            RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
        }
        ("ES256", Some("EC")) if key["crv"] == "P-256" => {
            let (Some(x), Some(y)) = (field(key, "x"), field(key, "y")) else { return false };
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, [&[4][..], &x, &y].concat()).verify(signed, signature)
        }
        _ => return false,
    };
    checked.is_ok()
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use serde_json::json;

    use super::*;

    fn pair() -> (EcdsaKeyPair, Value) {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).unwrap();
        let point = pair.public_key().as_ref().to_vec();
        let key = json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..])});
        (pair, key)
    }

    fn token(pair: &EcdsaKeyPair, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }

    #[test]
    fn only_what_the_issuer_signed_is_believed() {
        let (pair, key) = pair();
        let (said, header) = (json!({"sub": "ada"}), json!({"alg": "ES256", "kid": "k"}));
        let good = token(&pair, &header, &said);
        let keys = [json!({"kty": "RSA", "kid": "other"}), key.clone()];
        assert_eq!(claims(&good, &keys), Ok(said.clone()));
        assert_eq!(claims(&good, &[]), Err(Unproven::NoKey), "its keys may be newer than those we have");
        let (other, _) = self::pair();
        assert_eq!(claims(&token(&other, &header, &said), &keys), Err(Unproven::NoKey));
        assert_eq!(claims(&token(&pair, &json!({"alg": "ES256", "kid": "l"}), &said), &keys), Err(Unproven::NoKey));

        let body = URL_SAFE_NO_PAD.encode(json!({"sub": "eve"}).to_string());
        let [head, _, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(claims(&format!("{head}.{body}.{signature}"), &keys), Err(Unproven::NoKey), "another body");
        let none = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
        for odd in [format!("{none}.{body}."), format!("{good}.x"), String::new(), "a.b.c".to_owned()] {
            assert_eq!(claims(&odd, &keys), Err(Unproven::Malformed), "{odd}");
        }
        // A public key must not serve as a shared secret.
        for alg in ["HS256", "RS512", "none"] {
            assert_eq!(claims(&token(&pair, &json!({"alg": alg, "kid": "k"}), &said), &keys), Err(Unproven::Malformed), "{alg}");
        }
        let with_crit = token(&pair, &json!({"alg": "ES256", "crit": ["b64"], "b64": false}), &said);
        assert_eq!(claims(&with_crit, &keys), Err(Unproven::Malformed));
        let encryption = json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": key["x"], "y": key["y"], "use": "enc"});
        assert_eq!(claims(&good, &[encryption]), Err(Unproven::NoKey));
    }
}
