//! OAuth of a server on the web: which authorization server it trusts (RFC 9728), what that one can do (RFC 8414), and a client of our own
//! there (RFC 7591). What comes out is an ordinary scheme, which connections then use as any other.

use std::collections::BTreeSet;
use std::time::Duration;

use egress::{Egress, Redirects, Request, Retry};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use imports::Registered;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::wire::bounded;

const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_DOCUMENT: usize = 256 << 10;
const MAX_SCOPES: usize = 50;

/// How accounts are connected, and how a client for them is registered.
#[derive(Debug)]
pub(crate) struct OAuthSetup {
    /// An auth scheme of the catalog.
    pub(crate) scheme: Value,
    pub(crate) registration: Option<Registration>,
    /// Where secrets go beside the server itself.
    pub(crate) origins: BTreeSet<String>,
}

/// Where a client is registered, and as what.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Registration {
    endpoint: String,
    method: String,
    scope: String,
}

/// Follows a refusal of the server to whoever gives out tokens for it.
pub(crate) async fn discover(egress: &Egress, server: &Url, challenge: Option<&str>) -> Result<OAuthSetup, String> {
    let resource = protected_resource(egress, server, challenge).await;
    let issuer = match &resource {
        Some(resource) => {
            let named = resource["authorization_servers"][0].as_str().ok_or("its metadata names no authorization server")?;
            named.parse().map_err(|_| "its authorization server is no address".to_owned())?
        }
        // Servers before 2025-06-18 are their own.
        None => root(server),
    };
    let metadata = authorization_server(egress, &issuer).await.ok_or_else(|| format!("`{issuer}` has no authorization server metadata"))?;
    let resource = resource.unwrap_or_default();
    found(egress, server, challenge, &resource, &metadata)
}

fn found(egress: &Egress, server: &Url, challenge: Option<&str>, resource: &Value, metadata: &Value) -> Result<OAuthSetup, String> {
    let endpoint = |name: &str| match metadata[name].as_str() {
        None => Ok(None),
        Some(text) => usable(egress, text).map(Some).map_err(|why| format!("its `{name}` cannot be used: {why}")),
    };
    let (authorize, token) = (endpoint("authorization_endpoint")?, endpoint("token_endpoint")?);
    let authorize = authorize.ok_or("its metadata has no `authorization_endpoint`")?;
    let token = token.ok_or("its metadata has no `token_endpoint`")?;
    let (revoke, register) = (endpoint("revocation_endpoint")?, endpoint("registration_endpoint")?);
    if !lists(metadata, "code_challenge_methods_supported").contains(&"S256") {
        return Err("its authorization server does not say that it takes PKCE with S256".to_owned());
    }
    let audience = audience(server, resource)?;
    let scopes = scopes(challenge, resource, metadata);
    let methods = lists(metadata, "token_endpoint_auth_methods_supported");
    let method = ["client_secret_post", "client_secret_basic", "none"].into_iter().find(|method| methods.contains(method));
    let method = method.unwrap_or("client_secret_basic");
    let scheme = json!({
        "scheme": "oauth2",
        "authorize_url": authorize.as_str(),
        "token_url": token.as_str(),
        "issuer": metadata["issuer"].as_str(),
        "sends_issuer": metadata["authorization_response_iss_parameter_supported"] == true,
        "revoke_url": revoke.as_ref().map(Url::as_str),
        "scopes": scopes,
        "client_auth": if method == "client_secret_basic" { "basic" } else { "body" },
        "authorize_params": params(&audience, &scopes),
        "token_params": {"resource": audience},
        "app_help": "Its authorization server takes no registrations, so register an OAuth app there.",
        "is_imported": true,
    });
    let origins = [Some(&token), revoke.as_ref(), register.as_ref()].into_iter().flatten();
    let origins = origins.map(|url| url.origin().ascii_serialization()).collect();
    let registration =
        register.map(|endpoint| Registration { endpoint: endpoint.into(), method: method.to_owned(), scope: scopes.join(" ") });
    Ok(OAuthSetup { scheme, registration, origins })
}

/// A token for later is given by some only to people who were asked for it.
fn params(audience: &str, scopes: &[String]) -> Value {
    if scopes.iter().any(|scope| scope == "offline_access") {
        json!({"resource": audience, "prompt": "consent"})
    } else {
        json!({"resource": audience})
    }
}

/// An endpoint that we may call, and that holds nothing to be filled in.
fn usable(egress: &Egress, text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|_| "it is no address".to_owned())?;
    if text.contains(['{', '}']) || !url.username().is_empty() || url.password().is_some() {
        return Err("it is no plain address".to_owned());
    }
    egress.check_url(&url).map_err(|error| error.to_string())?;
    Ok(url)
}

/// Whom tokens are for: what the server calls itself, as long as that is where the server is.
fn audience(server: &Url, resource: &Value) -> Result<String, String> {
    let mut own = server.clone();
    own.set_fragment(None);
    let Some(named) = resource["resource"].as_str() else { return Ok(own.as_str().trim_end_matches('/').to_owned()) };
    let url: Url = named.parse().map_err(|_| "its metadata calls it by something that is no address".to_owned())?;
    let is_ours = url.origin() == own.origin() && own.path().starts_with(url.path().trim_end_matches('/'));
    if is_ours && !named.contains(['{', '}']) {
        Ok(named.to_owned())
    } else {
        Err(format!("its metadata is for `{}`", bounded(named, 200)))
    }
}

/// The scopes that the server asks for, else those it knows; and one for renewals where there is such.
fn scopes(challenge: Option<&str>, resource: &Value, metadata: &Value) -> Vec<String> {
    let asked = challenge.and_then(|challenge| parameter(challenge, "scope"));
    let mut scopes: Vec<String> = match asked {
        Some(asked) => asked.split(' ').map(str::to_owned).collect(),
        None => lists(resource, "scopes_supported").into_iter().map(str::to_owned).collect(),
    };
    if lists(metadata, "scopes_supported").contains(&"offline_access") {
        scopes.push("offline_access".to_owned());
    }
    scopes.retain(|scope| !scope.is_empty() && scope.len() <= 200 && scope.bytes().all(|byte| byte.is_ascii_graphic()));
    let mut seen = BTreeSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    scopes.truncate(MAX_SCOPES);
    scopes
}

fn lists<'a>(document: &'a Value, name: &str) -> Vec<&'a str> {
    document[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

async fn protected_resource(egress: &Egress, server: &Url, challenge: Option<&str>) -> Option<Value> {
    let named = challenge.and_then(|challenge| parameter(challenge, "resource_metadata")).and_then(|text| text.parse().ok());
    let mut places: Vec<Url> = named.into_iter().collect();
    places.extend(well_known(server, "oauth-protected-resource"));
    first(egress, places, |document| document["authorization_servers"].is_array()).await
}

async fn authorization_server(egress: &Egress, issuer: &Url) -> Option<Value> {
    let mut places = well_known(issuer, "oauth-authorization-server");
    places.truncate(1);
    places.extend(well_known(issuer, "openid-configuration").into_iter().take(1));
    let mut appended = issuer.clone();
    appended.set_path(&format!("{}/.well-known/openid-configuration", issuer.path().trim_end_matches('/')));
    if !places.contains(&appended) {
        places.push(appended);
    }
    let plain = |url: &str| url.trim_end_matches('/').to_owned();
    let own = plain(issuer.as_str());
    first(egress, places, |document| document["issuer"].as_str().is_some_and(|named| plain(named) == own)).await
}

/// The well-known places for an address: with its path, then without.
fn well_known(url: &Url, kind: &str) -> Vec<Url> {
    let base = root(url);
    let path = url.path().trim_end_matches('/');
    let mut places = Vec::new();
    for path in [path, ""] {
        let mut place = base.clone();
        place.set_path(&format!("/.well-known/{kind}{path}"));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn root(url: &Url) -> Url {
    let mut root = url.clone();
    root.set_path("/");
    root.set_query(None);
    root.set_fragment(None);
    root
}

async fn first(egress: &Egress, places: Vec<Url>, fits: impl Fn(&Value) -> bool) -> Option<Value> {
    for place in places {
        let request = Request::new(Method::GET, place).timeout(TIMEOUT).retry(Retry::Safe).redirects(Redirects::Follow(3));
        let request = request.max_response(MAX_DOCUMENT).header(ACCEPT, HeaderValue::from_static("application/json"));
        if let Ok(response) = egress.send(request).await
            && response.status == StatusCode::OK
            && let Ok(document) = serde_json::from_slice::<Value>(&response.body)
            && fits(&document)
        {
            return Some(document);
        }
    }
    None
}

/// A parameter of a `WWW-Authenticate` challenge.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut from = 0;
    while let Some(at) = challenge[from..].find(name).map(|at| from + at) {
        from = at + name.len();
        let starts = challenge[..at].chars().next_back().is_none_or(|before| matches!(before, ' ' | ',' | '\t'));
        let Some(value) = challenge[from..].trim_start().strip_prefix('=').filter(|_| starts) else { continue };
        let value = value.trim_start();
        return Some(match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default().to_owned(),
            None => value.split([',', ' ']).next().unwrap_or_default().to_owned(),
        });
    }
    None
}

/// Registers a client that people are sent back to `callback` from.
pub(crate) async fn register(egress: &Egress, registration: &Registration, callback: &str) -> Result<Registered, String> {
    let mut client = json!({
        "client_name": "Toolyard",
        "redirect_uris": [callback],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": registration.method,
    });
    if !registration.scope.is_empty() {
        client["scope"] = registration.scope.as_str().into();
    }
    let endpoint: Url = registration.endpoint.parse().map_err(|_| "its address cannot be read".to_owned())?;
    let request = Request::new(Method::POST, endpoint).timeout(TIMEOUT).max_response(MAX_DOCUMENT);
    let request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(client.to_string());
    let response = egress.send(request).await.map_err(|error| error.to_string())?;
    let reply: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    if !response.status.is_success() {
        let words = reply["error_description"].as_str().or(reply["error"].as_str()).unwrap_or("no reason given");
        return Err(format!("the authorization server answered {}: {}", response.status.as_u16(), bounded(words, 300)));
    }
    let given = reply["token_endpoint_auth_method"].as_str().unwrap_or(&registration.method);
    if given != registration.method {
        return Err(format!("the authorization server insists on `{}`", bounded(given, 40)));
    }
    let id = reply["client_id"].as_str().filter(|id| !id.is_empty()).ok_or("the authorization server gave no `client_id`")?;
    Ok(Registered { client_id: id.to_owned(), client_secret: reply["client_secret"].as_str().unwrap_or_default().into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let challenge = r#"Bearer error="invalid_token", resource_metadata="https://a.example/.well-known/x", scope="read write""#;
        assert_eq!(parameter(challenge, "resource_metadata").as_deref(), Some("https://a.example/.well-known/x"));
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("read write"));
        assert_eq!(parameter("Bearer my_scope=\"x\", scope=y", "scope").as_deref(), Some("y"));
        assert_eq!(parameter("Bearer", "scope"), None);
        assert_eq!(parameter("Bearer scope", "scope"), None);
    }

    #[test]
    fn well_known_places_hold_the_path_in_the_middle() {
        let places = |url: &str| well_known(&url.parse().unwrap(), "x").iter().map(Url::to_string).collect::<Vec<_>>();
        assert_eq!(places("https://a.example/mcp/?q#f"), ["https://a.example/.well-known/x/mcp", "https://a.example/.well-known/x"]);
        assert_eq!(places("https://a.example"), ["https://a.example/.well-known/x"]);
    }

    #[test]
    fn a_token_is_only_for_the_server_itself() {
        let server: Url = "https://a.example/team/mcp".parse().unwrap();
        let audience = |named: &str| super::audience(&server, &json!({"resource": named}));
        assert_eq!(super::audience(&server, &json!({})).unwrap(), "https://a.example/team/mcp");
        assert!(audience("https://a.example/team/mcp").is_ok() && audience("https://a.example").is_ok());
        assert!(audience("https://b.example/team/mcp").is_err() && audience("https://a.example/other").is_err());
    }

    #[test]
    fn what_cannot_be_trusted_is_refused() {
        let egress = Egress::new(egress::Config::default()).unwrap();
        let server: Url = "https://a.example/mcp".parse().unwrap();
        let good = json!({
            "authorization_endpoint": "https://as.example/authorize", "token_endpoint": "https://as.example/token",
            "registration_endpoint": "https://as.example/register", "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"], "scopes_supported": ["offline_access"]
        });
        let found = |metadata: &Value| super::found(&egress, &server, Some("Bearer scope=\"tools\""), &json!({}), metadata);
        let fine = found(&good).unwrap();
        assert_eq!(fine.scheme["scopes"], json!(["tools", "offline_access"]));
        assert_eq!(fine.scheme["token_params"], json!({"resource": "https://a.example/mcp"}));
        assert!(serde_json::from_value::<catalog::auth::AuthScheme>(fine.scheme).is_ok());
        assert_eq!(fine.registration.unwrap().method, "none");
        for (name, value) in [
            ("token_endpoint", json!("http://169.254.169.254/token")),
            ("token_endpoint", json!("https://as.example/{connection.refresh_token}")),
            ("authorization_endpoint", json!("javascript:alert(1)")),
            ("authorization_endpoint", Value::Null),
            ("code_challenge_methods_supported", json!(["plain"])),
        ] {
            let mut bad = good.clone();
            bad[name] = value;
            assert!(found(&bad).is_err(), "{name}");
        }
    }
}
