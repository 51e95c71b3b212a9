//! What a provider says of a person, and what an ID token must say before any of it is believed.

use kernel::Timestamp;
use serde_json::Value;

/// How far the clocks of two machines may be apart.
const SKEW: i64 = 60;

/// Somebody as a provider knows them.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) subject: String,
    pub(super) email: Option<String>,
    pub(super) is_email_verified: bool,
    pub(super) name: Option<String>,
    pub(super) groups: Vec<String>,
}

/// What an ID token is held against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: Timestamp,
}

/// Checks the claims of an ID token whose signature is right; what is wrong with them, if something is.
pub(super) fn check(claims: &Value, expected: Expected<'_>) -> Result<(), &'static str> {
    let audience = &claims["aud"];
    let several = audience.as_array().map_or(&[][..], Vec::as_slice);
    let is_for_us = audience == expected.client || several.iter().any(|one| one == expected.client);
    let others = several.len() > 1;
    let now = expected.now.seconds();
    let time = |name: &str| claims[name].as_i64();
    if claims["iss"] != expected.issuer {
        return Err("the token is of another issuer");
    }
    if !is_for_us {
        return Err("the token is for another client");
    }
    if (others || !claims["azp"].is_null()) && claims["azp"] != expected.client {
        return Err("the token was asked for by another client");
    }
    if time("exp").is_none_or(|exp| exp.saturating_add(SKEW) <= now) {
        return Err("the token expired, or the clock of this server is wrong");
    }
    if time("iat").is_none_or(|iat| iat > now.saturating_add(SKEW)) {
        return Err("the token is of the future, or the clock of this server is wrong");
    }
    if time("nbf").is_some_and(|nbf| nbf > now.saturating_add(SKEW)) {
        return Err("the token is not valid yet, or the clock of this server is wrong");
    }
    if claims["nonce"] != expected.nonce {
        return Err("the token answers another sign-in");
    }
    if claims["sub"].as_str().is_none_or(|sub| sub.is_empty() || sub.len() > 255) {
        return Err("the token names nobody");
    }
    Ok(())
}

impl Person {
    /// Reads what was said in the ID token, and where that is silent, at the userinfo endpoint.
    pub(super) fn read(token: &Value, userinfo: &Value, groups_claim: &str) -> Self {
        let said = |name: &str| if token[name].is_null() { &userinfo[name] } else { &token[name] };
        let text = |name: &str| said(name).as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let groups = said(groups_claim);
        let listed = groups.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        // The address and the word that it is verified come from the same place.
        let from = if token["email"].is_null() { userinfo } else { token };
        Self {
            subject: text("sub").unwrap_or_default(),
            email: text("email"),
            is_email_verified: from["email_verified"] == true || from["email_verified"] == "true",
            name: text("name").or_else(|| text("preferred_username")),
            groups: groups.as_str().map(str::to_owned).into_iter().chain(listed).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_claim_that_is_wrong_is_named() {
        let good = json!({"iss": "https://id.example", "aud": "us", "exp": 1000, "iat": 900, "nonce": "n", "sub": "ada"});
        let expected = Expected { issuer: "https://id.example", client: "us", nonce: "n", now: Timestamp::from_micros(950_000_000) };
        check(&good, expected).unwrap();
        let with = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            check(&claims, expected)
        };
        for (name, value) in [
            ("iss", json!("https://id.example/")),
            ("iss", json!(null)),
            ("aud", json!("them")),
            ("aud", json!(["them"])),
            ("aud", json!(["us", "them"])),
            ("azp", json!("them")),
            ("exp", json!(889)),
            ("exp", json!(null)),
            ("exp", json!("1000")),
            ("iat", json!(1011)),
            ("nbf", json!(1011)),
            ("nonce", json!("m")),
            ("nonce", json!(null)),
            ("sub", json!("")),
            ("sub", json!(7)),
        ] {
            assert!(with(name, value.clone()).is_err(), "{name} = {value}");
        }
        with("aud", json!(["us"])).unwrap();
        let mut several = good.clone();
        (several["aud"], several["azp"]) = (json!(["us", "them"]), json!("us"));
        check(&several, expected).unwrap();
    }

    #[test]
    fn an_unverified_address_of_the_token_is_not_verified_by_another_place() {
        let person = Person::read(
            &json!({"sub": "a", "email": "x@y.z"}),
            &json!({"email": "o@y.z", "email_verified": true, "groups": "eng"}),
            "groups",
        );
        assert_eq!((person.email.as_deref(), person.is_email_verified, person.groups), (Some("x@y.z"), false, vec!["eng".to_owned()]));
    }
}
