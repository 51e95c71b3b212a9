//! What callers send as a credential, `state.val`, and what becomes of it: fields of a scheme.

use std::collections::BTreeMap;

use catalog::auth::AuthScheme;
use kernel::suggest;
use serde_json::{Map, Value};

use crate::auth_configs::scalar;
use crate::{Refusal, schemes};

/// What SDKs send beside a credential; it says nothing here.
const BOOKKEEPING: [&str; 24] = [
    "status",
    "long_redirect_url",
    "state_prefix",
    "redirectUrl",
    "redirect_url",
    "redirectUri",
    "redirect_uri",
    "callback_url",
    "callbackUrl",
    "finalRedirectUri",
    "composio_link_redirect_url",
    "auth_uri",
    "authUri",
    "code_verifier",
    "webhook_signature",
    "token_type",
    "expires_in",
    "id_token",
    "scope",
    "error",
    "error_description",
    "expired_at",
    "display_name",
    "extra_token_data",
];
/// Names that stand for the only secret of a scheme.
const ONLY_SECRET: [&str; 6] = ["api_key", "generic_api_key", "generic_token", "bearer_token", "generic_secret", "token"];
const TOKENS: [&str; 2] = ["access_token", "refresh_token"];

/// The fields that values mean; nothing for one that shall be taken away.
pub(super) fn fields(scheme: &AuthScheme, values: &Map<String, Value>) -> Result<BTreeMap<String, Option<String>>, Refusal> {
    let known: Vec<(String, bool)> = scheme.fields().into_iter().map(|(name, field)| (name, field.secret)).collect();
    let mut secrets = known.iter().filter(|(_, is_secret)| *is_secret).map(|(name, _)| name);
    let only = secrets.next().filter(|_| secrets.next().is_none());
    let mut fields = BTreeMap::new();
    for (name, value) in values {
        let is_own = known.iter().any(|(known, _)| known == name);
        let field = if is_own || (scheme.name() == "oauth2" && TOKENS.contains(&name.as_str())) {
            name.clone()
        } else if let Some(only) = only.filter(|_| ONLY_SECRET.contains(&name.as_str())) {
            only.clone()
        } else if BOOKKEEPING.contains(&name.as_str()) {
            continue;
        } else {
            let shown: String = name.chars().filter(|letter| !letter.is_control()).take(40).collect();
            let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            let nearest = suggest::did_you_mean(&shown, names.iter().copied());
            let message = format!("`{shown}` is no field of {}; there is `{}`.{nearest}", schemes::word(scheme), names.join("`, `"));
            return Err(Refusal::bad_request(message));
        };
        // Of a name and what it stands for, the one that says something wins.
        let text = scalar(name, value)?;
        if text.is_some() || !fields.contains_key(&field) {
            fields.insert(field, text);
        }
    }
    Ok(fields)
}

/// Whether nobody has to be asked for anything more.
pub(super) fn is_complete(scheme: &AuthScheme, given: &BTreeMap<String, String>) -> bool {
    if scheme.name() == "oauth2" {
        return given.contains_key(TOKENS[0]);
    }
    scheme.fields().into_iter().all(|(name, field)| field.optional || field.default.is_some() || given.contains_key(&name))
}

/// Whether the caller says that the account works with what they sent.
pub(super) fn claims_active(values: &Map<String, Value>) -> bool {
    values.get("status").and_then(Value::as_str) == Some("ACTIVE")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scheme(value: Value) -> AuthScheme {
        serde_json::from_value(value).unwrap()
    }

    fn read(scheme: &AuthScheme, values: &Value) -> Result<BTreeMap<String, Option<String>>, String> {
        fields(scheme, values.as_object().unwrap()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn a_key_goes_by_the_name_of_its_field() {
        let own = scheme(json!({"scheme": "api_key", "fields": {"token": {}, "base": {"secret": false}}}));
        for name in ["api_key", "generic_api_key", "token"] {
            let given = read(&own, &json!({"status": "ACTIVE", name: "k", "base": "b"})).unwrap();
            assert_eq!(
                given,
                BTreeMap::from([("base".to_owned(), Some("b".to_owned())), ("token".to_owned(), Some("k".to_owned()))]),
                "{name}"
            );
        }
        let both = read(&own, &json!({"api_key": null, "token": "k"})).unwrap();
        assert_eq!(both["token"].as_deref(), Some("k"));
        let two = scheme(json!({"scheme": "api_key", "fields": {"key": {}, "secret": {}}}));
        assert!(read(&two, &json!({"api_key": "k"})).unwrap_err().contains("`key`, `secret`"), "it could be either");
    }

    #[test]
    fn what_is_no_field_is_refused() {
        let bearer = scheme(json!({"scheme": "bearer"}));
        assert!(read(&bearer, &json!({"tokn": "x"})).unwrap_err().ends_with("Did you mean `token`?"));
        assert!(read(&bearer, &json!({"access_token": "x"})).is_err(), "of OAuth only");
        assert!(read(&bearer, &json!({"token": {"a": 1}})).is_err());
        assert_eq!(read(&bearer, &json!({"status": "INITIALIZING", "long_redirect_url": true})).unwrap(), BTreeMap::new());
    }

    #[test]
    fn it_is_known_what_is_missing() {
        let basic = scheme(json!({"scheme": "basic", "fields": {"site": {"secret": false, "default": "x"}}}));
        let given = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "v".to_owned())).collect::<BTreeMap<_, _>>();
        assert!(is_complete(&basic, &given(&["username", "password"])));
        assert!(!is_complete(&basic, &given(&["username", "site"])));
        let oauth = scheme(json!({"scheme": "oauth2", "authorize_url": "https://a", "token_url": "https://b"}));
        assert!(is_complete(&oauth, &given(&["access_token"])) && !is_complete(&oauth, &given(&[])));
    }
}
