//! The authorization server, as clients and people meet it: every way through it, and every way to misuse it.

mod bounds;
pub mod browser;
mod clients;
mod consent;
mod device;
mod flow;
mod misuse;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grants::{Approval, Challenge, Exchange, GrantFilter, Granter, Surface, Tokens};
use http::{Method, Request};
use kernel::{GrantId, Permission, Role};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

pub use browser::{field, join, with_key, with_person};

use crate::support::{Browser, Reply, Test};

pub const CALLBACK: &str = "https://client.example/cb";
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// The public address that tests have.
pub fn public(test: &Test) -> String {
    test.yard.config.public_url.trim_end_matches('/').to_owned()
}

pub fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER))
}

/// Registers a client that keeps no secret.
pub async fn register(test: &Test, name: &str) -> String {
    let body = json!({"client_name": name, "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"});
    let made = test.request(Method::POST, "/oauth/register", None, Some(body)).await.expect(201);
    made["client_id"].as_str().unwrap().to_owned()
}

/// Posts a form as a client does.
pub async fn post(test: &Test, path: &str, fields: &[(&str, &str)]) -> Reply {
    post_with(test, path, fields, None).await
}

pub async fn post_with(test: &Test, path: &str, fields: &[(&str, &str)], authorization: Option<String>) -> Reply {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    let mut request = Request::builder().method(Method::POST).uri(path).header("content-type", "application/x-www-form-urlencoded");
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    test.send(request.body(Body::from(form.finish())).unwrap()).await
}

/// The address that a client sends a person to. A value that is empty is left out.
pub fn authorize_url(client: &str, change: &[(&str, &str)]) -> String {
    let challenge = challenge();
    let mut fields = vec![
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", CALLBACK),
        ("state", "s&1"),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("scope", "view_tools run_tools"),
    ];
    for (name, value) in change {
        fields.retain(|(known, _)| known != name);
        fields.push((name, value));
    }
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields.into_iter().filter(|(_, value)| !value.is_empty()));
    format!("/oauth/authorize?{}", query.finish())
}

/// What the person ticks of what the page offers.
pub fn offered(page: &str) -> Vec<String> {
    page.split("name=\"allow_").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Fills in the page as a person does who ticks these.
pub fn filled(page: &str, decision: &str, ticked: &[String]) -> Vec<(String, String)> {
    let mut fields = vec![("csrf".to_owned(), field(page, "csrf")), ("decision".to_owned(), decision.to_owned())];
    for name in ["request", "user_code", "project"] {
        if page.contains(&format!("name=\"{name}\" value=\"")) {
            fields.push((name.to_owned(), field(page, name)));
        }
    }
    fields.extend(ticked.iter().map(|name| (format!("allow_{name}"), "on".to_owned())));
    fields
}

pub async fn submit(browser: &mut Browser<'_>, path: &str, fields: &[(String, String)]) -> Reply {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    browser.post(path, &fields).await
}

/// Where a browser is sent.
#[track_caller]
pub fn location(reply: &Reply) -> Url {
    assert_eq!(reply.status, 303, "{}", reply.text);
    reply.headers["location"].to_str().unwrap().parse().unwrap()
}

pub fn query(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Lets a client in with everything that it asks for; the code that it is sent.
pub async fn consent(browser: &mut Browser<'_>, client: &str, change: &[(&str, &str)]) -> String {
    let page = browser.get(&authorize_url(client, change)).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let fields = filled(&page.text, "allow", &offered(&page.text));
    let back = location(&submit(browser, "/oauth/authorize", &fields).await);
    query(&back, "code").unwrap_or_else(|| panic!("{back}"))
}

pub async fn redeem(test: &Test, client: &str, code: &str, change: &[(&str, &str)]) -> Reply {
    let mut fields = vec![
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("code_verifier", VERIFIER),
        ("redirect_uri", CALLBACK),
    ];
    for (name, value) in change {
        fields.retain(|(known, _)| known != name);
        fields.push((name, value));
    }
    fields.retain(|(_, value)| !value.is_empty());
    post(test, "/oauth/token", &fields).await
}

/// Lets a client in and gets its tokens.
pub async fn tokens(test: &Test, browser: &mut Browser<'_>, client: &str, change: &[(&str, &str)]) -> Value {
    let code = consent(browser, client, change).await;
    redeem(test, client, &code, &[]).await.expect(200)
}

pub async fn refresh(test: &Test, client: &str, token: &str) -> Reply {
    post(test, "/oauth/token", &[("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)]).await
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The name of an error, as OAuth has it; it is also the code.
#[track_caller]
pub fn error(reply: Reply, status: u16) -> String {
    let body = reply.expect(status);
    assert_eq!((&body["error"], &body["error_description"]), (&body["code"], &body["detail"]), "{body}");
    text(&body["error"]).to_owned()
}

pub async fn as_bearer(test: &Test, token: &str, path: &str) -> Reply {
    test.request(Method::GET, path, Some(format!("Bearer {token}")), None).await
}

/// A grant that the owner's key of a project gave, with its tokens.
pub async fn granted(test: &Test, project: &str, permissions: &[Permission], surface: Surface) -> (GrantId, Tokens) {
    let key = if project == "default" { test.owner.clone() } else { test.key(project, Role::Owner, None).await };
    let scope = test.yard.accounts.authenticator().authenticate(&key).await.unwrap().unwrap();
    let grants = &test.yard.grants;
    let client = grants.client(grants::COMMAND_LINE).await.unwrap();
    let challenge = Challenge::read(Some(&challenge()), Some("S256")).unwrap();
    let permissions = permissions.iter().copied().collect();
    let approval = Approval { project: scope.project, granter: Granter::Key(scope.key), surface, permissions };
    let code = grants.approve(&client, CALLBACK, &challenge, &approval).await.unwrap();
    let exchange = Exchange { code: code.expose(), verifier: Some(VERIFIER), redirect_uri: None, surface: None };
    let tokens = grants.exchange(&client, exchange).await.unwrap();
    let newest = grants.list(scope.project, GrantFilter::default()).await.unwrap().rows.remove(0);
    (newest.id, tokens)
}
