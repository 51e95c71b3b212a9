//! Token requests and their replies, quirks included.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catalog::auth::{ClientAuth, Fields, TokenBody};
use catalog::fill::fill_address;
use egress::{Egress, EgressError, Request, Response};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use kernel::Scrubber;
use kernel::json::plain_text;
use serde_json::{Map, Value};
use url::Url;
use url::form_urlencoded;

use super::Client;

/// The most scopes that are kept of a reply, and the longest.
const MAX_SCOPES: usize = 200;
const MAX_SCOPE: usize = 200;
/// How long a token request may take; the lease on a refresh is longer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(15);
const MAX_REPLY: usize = 64 << 10;
/// What everybody may know of a token request.
const PUBLIC: [&str; 6] = ["grant_type", "redirect_uri", "scope", "client_id", "resource", "audience"];

/// How a reply is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenReplyShape<'a> {
    pub(crate) root: Option<&'a str>,
    pub(crate) lifetime: Option<u64>,
    pub(crate) keep: &'a BTreeMap<String, String>,
}

/// Tokens as they came.
#[derive(Clone)]
pub(crate) struct Tokens {
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    pub(crate) lifetime: Option<u64>,
    /// What was granted, where the reply says so.
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) kept: Vec<(String, String)>,
}

/// Why there are no tokens.
#[derive(Clone, Debug)]
pub(crate) enum TokenError {
    /// The grant is gone for good.
    Gone(String),
    /// The provider says no for another reason, such as a wrong client secret.
    Refused(String),
    /// The provider failed or has no time.
    Server(u16),
    Unreachable(EgressError),
    /// The reply makes no sense.
    Malformed,
}

/// One request for tokens.
pub(crate) struct TokenRequest<'a> {
    /// May hold `{connection.field}`.
    pub(crate) endpoint: &'a str,
    pub(crate) client: &'a Client,
    pub(crate) params: &'a [(&'a str, &'a str)],
    /// Further parameters of the manifest; they may hold `{connection.field}` too.
    pub(crate) extra: &'a BTreeMap<String, String>,
    pub(crate) reading: TokenReplyShape<'a>,
    pub(crate) fields: &'a Fields,
}

impl TokenRequest<'_> {
    /// Asks for tokens. What the provider repeats of a secret is left out of errors.
    pub(crate) async fn send(&self, egress: &Egress) -> Result<Tokens, TokenError> {
        let endpoint = fill_address(self.endpoint, self.fields).map_err(|error| TokenError::Refused(error.to_string()))?;
        let url: Url = endpoint.parse().map_err(|_| TokenError::Malformed)?;
        let extra: Vec<(&str, String)> = self.extra.iter().map(|(name, text)| (name.as_str(), self.fields.fill(text))).collect();
        let params: Vec<(&str, &str)> =
            self.params.iter().copied().chain(extra.iter().map(|(name, text)| (*name, text.as_str()))).collect();
        let response = egress.send(post(url, self.client, params.clone())).await.map_err(TokenError::Unreachable)?;
        read(&response, self.reading, &self.scrubber(&params))
    }

    /// What takes out of the provider's words all that it was sent and that is not public.
    fn scrubber(&self, params: &[(&str, &str)]) -> Scrubber {
        let sent = params.iter().filter(|(name, _)| !PUBLIC.contains(name)).map(|(_, value)| *value);
        let pair = basic_pair(self.client);
        let fields = self.fields.expose().map(|(_, value)| value);
        Scrubber::new(fields.chain(sent).chain([self.client.secret.as_str(), pair.as_str()]))
    }
}

/// A post as this client, in the way the provider wants it.
pub(crate) fn post<'a>(url: Url, client: &'a Client, mut pairs: Vec<(&'a str, &'a str)>) -> Request {
    let mut request = Request::new(Method::POST, url).timeout(TIMEOUT).max_response(MAX_REPLY);
    request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    match client.auth {
        ClientAuth::Body => {
            pairs.push(("client_id", &client.id));
            if !client.secret.is_empty() {
                pairs.push(("client_secret", &client.secret));
            }
        }
        ClientAuth::Basic => {
            let pair = STANDARD.encode(basic_pair(client));
            if let Ok(mut value) = HeaderValue::from_str(&format!("Basic {pair}")) {
                value.set_sensitive(true);
                request.headers.insert(AUTHORIZATION, value);
            }
        }
    }
    match client.body {
        TokenBody::Form => {
            request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
            request.body(form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
        }
        TokenBody::Json => {
            request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let map: Map<String, Value> = pairs.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
            request.body(Value::Object(map).to_string())
        }
    }
}

/// Id and secret as they are put together for a header.
fn basic_pair(client: &Client) -> String {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("{}:{}", encode(&client.id), encode(&client.secret))
}

fn read(response: &Response, reading: TokenReplyShape<'_>, scrubber: &Scrubber) -> Result<Tokens, TokenError> {
    let status = response.status.as_u16();
    let reply = parse(&response.body);
    if let Some(error) = reply.as_ref().and_then(|reply| refusal(reply, scrubber)) {
        return Err(error);
    }
    match (status, reply) {
        (200..=299, Some(reply)) => tokens(&reply, reading).ok_or(TokenError::Malformed),
        (200..=299, None) => Err(TokenError::Malformed),
        (408 | 429 | 500.., _) => Err(TokenError::Server(status)),
        _ => Err(TokenError::Refused(format!("the token endpoint answered {status}"))),
    }
}

/// JSON, or the form encoding that some providers still answer with.
fn parse(body: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice::<Value>(body) {
        return value.is_object().then_some(value);
    }
    let text = std::str::from_utf8(body).ok()?;
    let pairs: Map<String, Value> =
        form_urlencoded::parse(text.trim().as_bytes()).map(|(k, v)| (k.into_owned(), Value::from(v.into_owned()))).collect();
    (pairs.contains_key("access_token") || pairs.contains_key("error")).then_some(Value::Object(pairs))
}

fn refusal(reply: &Value, scrubber: &Scrubber) -> Option<TokenError> {
    let error = reply.get("error").filter(|error| !error.is_null() && *error != false)?;
    let code = error.as_str().or_else(|| error.get("message").and_then(Value::as_str)).unwrap_or("refused");
    let description = reply.get("error_description").or_else(|| reply.get("message")).and_then(Value::as_str).unwrap_or_default();
    let text: String = if description.is_empty() { code.to_owned() } else { format!("{code}: {description}") };
    let text = scrubber.text(&text).chars().filter(|c| !c.is_control()).take(300).collect();
    let gone = matches!(
        code,
        "invalid_grant" | "bad_refresh_token" | "invalid_refresh_token" | "token_revoked" | "token_expired" | "expired_token"
    );
    Some(if gone { TokenError::Gone(text) } else { TokenError::Refused(text) })
}

fn tokens(reply: &Value, reading: TokenReplyShape<'_>) -> Option<Tokens> {
    let root = reading.root.map_or(Some(reply), |pointer| reply.pointer(pointer))?;
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let seconds = |value: &Value| {
        value
            .as_u64()
            .or_else(|| value.as_str()?.parse().ok())
            .or_else(|| Some(Duration::try_from_secs_f64(value.as_f64()?).ok()?.as_secs()))
    };
    let lifetime = root.get("expires_in").or_else(|| reply.get("expires_in")).and_then(seconds).filter(|lifetime| *lifetime > 0);
    let kept = reading.keep.iter().filter_map(|(name, pointer)| Some((name.clone(), plain_text(reply.pointer(pointer)?)?))).collect();
    let access_token = text(root, "access_token")?;
    let refresh_token = text(root, "refresh_token").or_else(|| text(reply, "refresh_token"));
    let mut scopes = root.get("scope").or_else(|| reply.get("scope")).and_then(granted);
    if let Some(scopes) = &mut scopes {
        // They are shown, so nothing that is a secret may stand among them.
        scopes.retain(|scope| !scope.contains(&access_token) && !refresh_token.as_ref().is_some_and(|token| scope.contains(token)));
    }
    Some(Tokens { access_token, refresh_token, lifetime: lifetime.or(reading.lifetime), scopes, kept })
}

/// The scopes that a reply names: a text with spaces or, at some providers, commas between them, or a list.
fn granted(scope: &Value) -> Option<Vec<String>> {
    let named: Vec<&str> = match scope {
        Value::String(text) => text.split([' ', ',']).collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let is_shown = |scope: &&str| !scope.is_empty() && scope.len() <= MAX_SCOPE && !scope.contains(char::is_control);
    let scopes: Vec<String> = named.into_iter().map(str::trim).filter(is_shown).take(MAX_SCOPES).map(str::to_owned).collect();
    // An empty text says nothing, as if it were left out.
    (!scopes.is_empty()).then_some(scopes)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn reply(status: u16, body: &str, reading: TokenReplyShape<'_>) -> Result<Tokens, TokenError> {
        let response = Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: body.to_owned().into(),
            truncated: false,
            url: "https://example.com/token".parse().unwrap(),
        };
        read(&response, reading, &Scrubber::new(["s3cr3t-code"]))
    }

    #[test]
    fn what_was_sent_is_taken_out_before_the_words_are_cut() {
        let none = BTreeMap::new();
        let plain = TokenReplyShape { root: None, lifetime: None, keep: &none };
        let words = format!("{} code=s3cr3t-code and more", "x".repeat(270));
        let body = serde_json::json!({"error": "invalid_request", "error_description": words}).to_string();
        let Err(TokenError::Refused(reason)) = reply(400, &body, plain) else { panic!("not refused") };
        assert!(!reason.contains("s3cr") && reason.contains("code="), "{reason}");
    }

    #[test]
    fn replies_are_read_with_their_quirks() {
        let none = BTreeMap::new();
        let plain = TokenReplyShape { root: None, lifetime: Some(7200), keep: &none };
        let tokens = reply(200, r#"{"access_token": "a", "expires_in": "60", "refresh_token": "r"}"#, plain).unwrap();
        assert_eq!((tokens.access_token.as_str(), tokens.refresh_token.as_deref(), tokens.lifetime), ("a", Some("r"), Some(60)));
        assert_eq!(reply(200, r#"{"access_token": "a", "expires_in": 59.5}"#, plain).unwrap().lifetime, Some(59));
        let tokens = reply(200, "access_token=a&scope=repo&token_type=bearer", plain).unwrap();
        assert_eq!((tokens.access_token.as_str(), tokens.lifetime), ("a", Some(7200)));
        assert_eq!(tokens.scopes.unwrap(), ["repo"]);
        let keep = BTreeMap::from([("team".to_owned(), "/team/id".to_owned())]);
        let nested = TokenReplyShape { root: Some("/authed_user"), lifetime: None, keep: &keep };
        let tokens = reply(200, r#"{"ok": true, "team": {"id": "T1"}, "authed_user": {"access_token": "u"}}"#, nested).unwrap();
        assert_eq!((tokens.access_token.as_str(), tokens.kept), ("u", vec![("team".to_owned(), "T1".to_owned())]));
    }

    #[test]
    fn granted_scopes_are_read_in_every_form_and_hold_no_token() {
        let none = BTreeMap::new();
        let plain = TokenReplyShape { root: None, lifetime: None, keep: &none };
        for (scope, read) in [
            (r#""repo  read:user""#, Some(vec!["repo", "read:user"])),
            (r#""repo,gist""#, Some(vec!["repo", "gist"])),
            (r#"["repo", "gist", 1]"#, Some(vec!["repo", "gist"])),
            (r#""repo t0ken-1 x-refr3sh-1""#, Some(vec!["repo"])),
            (r#""""#, None),
            ("null", None),
            ("7", None),
        ] {
            let body = format!(r#"{{"access_token": "t0ken-1", "refresh_token": "refr3sh-1", "scope": {scope}}}"#);
            let scopes = reply(200, &body, plain).unwrap().scopes;
            assert_eq!(scopes.as_deref(), read.map(|read| read.into_iter().map(str::to_owned).collect::<Vec<_>>()).as_deref(), "{scope}");
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        let none = BTreeMap::new();
        let plain = TokenReplyShape { root: None, lifetime: None, keep: &none };
        assert!(matches!(reply(400, r#"{"error": "invalid_grant"}"#, plain), Err(TokenError::Gone(_))));
        assert!(matches!(reply(200, r#"{"error": "bad_verification_code"}"#, plain), Err(TokenError::Refused(_))));
        assert!(matches!(reply(401, r#"{"error": "invalid_client"}"#, plain), Err(TokenError::Refused(_))));
        assert!(matches!(reply(503, "<html>", plain), Err(TokenError::Server(503))));
        assert!(matches!(reply(429, "slow down", plain), Err(TokenError::Server(429))));
        assert!(matches!(reply(200, "<html>", plain), Err(TokenError::Malformed)));
        assert!(matches!(reply(200, r#"{"token": 1}"#, plain), Err(TokenError::Malformed)));
        assert!(matches!(reply(404, "no", plain), Err(TokenError::Refused(_))));
    }
}
