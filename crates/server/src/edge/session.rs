//! Sessions of browsers: the cookie, who is signed in, and the proof that a request comes from a page of ours.
//!
//! A browser sends its cookies by itself, so a cookie alone opens nothing: the browser must say that the request comes from our own origin, and
//! what changes something needs a token that only our own pages know.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use http::header::{COOKIE, HOST, ORIGIN, SET_COOKIE, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ipnet::IpNet;
use kernel::Scope;
use kernel::key::{KeyHash, random_text};
use people::{OpenedSession, SignedIn, Via, Visitor};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{ApiError, Code};
use crate::App;

/// The project that a session acts in, by id or slug.
pub(crate) const PROJECT: HeaderName = HeaderName::from_static("x-toolyard-project");
/// The token that `GET /people/me` hands out.
pub(crate) const CSRF: HeaderName = HeaderName::from_static("x-toolyard-csrf");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const DAY: u64 = 24 * 60 * 60;

const NOT_SIGNED_IN: &str = "Nobody is signed in, or the session ended. Sign in at `/sign-in`.";
const FOREIGN: &str = "Only pages of this server may use a session. Programs send a key.";
const NO_TOKEN: &str = "Send the `csrf_token` of `GET /people/me` as `X-Toolyard-Csrf` with what changes something.";

/// The address that a connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Cookies of ours. Under https their names begin with `__Host-`, so that no other host or path can set them.
#[derive(Clone, Copy, Debug)]
enum Cookie {
    /// Who is signed in.
    Session,
    /// Which browser this is, before anybody is signed in.
    Browser,
}

impl Cookie {
    fn name(self, app: &App) -> &'static str {
        match (self, is_secure(app)) {
            (Self::Session, true) => "__Host-toolyard-session",
            (Self::Session, false) => "toolyard-session",
            (Self::Browser, true) => "__Host-toolyard-browser",
            (Self::Browser, false) => "toolyard-browser",
        }
    }

    fn read<'a>(self, app: &App, headers: &'a HeaderMap) -> Option<&'a str> {
        let all = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        let mut named = all.filter_map(|pair| pair.trim().split_once('=')).filter(|(name, _)| *name == self.name(app));
        named.next().map(|(_, value)| value).filter(|value| !value.is_empty())
    }

    fn write(self, app: &App, value: &str, seconds: u64) -> Option<HeaderValue> {
        let secure = if is_secure(app) { "; Secure" } else { "" };
        let text = format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", self.name(app));
        HeaderValue::from_str(&text).ok()
    }
}

fn is_secure(app: &App) -> bool {
    app.options.public_url.starts_with("https://")
}

/// The token of the session that a browser has, good or not.
pub(crate) fn session_token(app: &App, headers: &HeaderMap) -> Option<SecretString> {
    Cookie::Session.read(app, headers).map(SecretString::from)
}

/// Who is signed in in this browser. A page that changes something checks a form's token besides.
pub(crate) async fn signed_in(app: &App, headers: &HeaderMap) -> Result<Option<SignedIn>, ApiError> {
    match session_token(app, headers) {
        Some(token) => Ok(app.people.signed_in(&token).await?),
        None => Ok(None),
    }
}

/// Gives the browser its new session.
pub(crate) fn keep_session(app: &App, headers: &mut HeaderMap, opened: &OpenedSession) {
    let cookie = Cookie::Session.write(app, opened.token.expose_secret(), app.people.settings().age.as_secs());
    headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
}

/// Takes the session away from the browser.
pub(crate) fn drop_session(app: &App, headers: &mut HeaderMap) {
    headers.extend(Cookie::Session.write(app, "", 0).map(|cookie| (SET_COOKIE, cookie)));
}

/// A browser that is not signed in, by a cookie of its own: a form or a sign-in that began in one browser does not end in another.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    id: String,
    is_new: bool,
}

impl Browser {
    pub(crate) fn of(app: &App, headers: &HeaderMap) -> Self {
        let known = Cookie::Browser.read(app, headers).filter(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        known.map_or_else(|| Self { id: random_text(32), is_new: true }, |id| Self { id: id.to_owned(), is_new: false })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Makes the browser remember which it is.
    pub(crate) fn keep(&self, app: &App, headers: &mut HeaderMap) {
        if self.is_new {
            headers.extend(Cookie::Browser.write(app, &self.id, DAY).map(|cookie| (SET_COOKIE, cookie)));
        }
    }

    /// The token of a form for somebody who is not signed in.
    pub(crate) fn form_token(&self, app: &App) -> String {
        token(app, &format!("browser:{}", self.id))
    }

    /// Whether a form that came in is one that we gave to this browser.
    pub(crate) fn sent(&self, app: &App, headers: &HeaderMap, given: Option<&str>) -> bool {
        is_own(app, headers) && is_same(given, &self.form_token(app))
    }
}

/// The token of forms and requests of a session.
pub(crate) fn csrf_token(app: &App, signed_in: &SignedIn) -> String {
    token(app, &format!("session:{}", signed_in.session))
}

/// Whether a form that came in is one that we gave to this session.
pub(crate) fn is_own_form(app: &App, headers: &HeaderMap, signed_in: &SignedIn, given: Option<&str>) -> bool {
    is_own(app, headers) && is_same(given, &csrf_token(app, signed_in))
}

fn token(app: &App, bound_to: &str) -> String {
    let signed = app.signer.sign(format!("form:{bound_to}").as_bytes());
    signed.rsplit('.').next().unwrap_or_default().to_owned()
}

fn is_same(given: Option<&str>, expected: &str) -> bool {
    given.is_some_and(|given| KeyHash::of(given).matches(&KeyHash::of(expected)))
}

/// Whether a request comes from a page of ours, or from no page at all. A page cannot set `Sec-Fetch-Site`, so it is asked first; what sends
/// neither is no browser of these days, and has no token either.
fn is_own(app: &App, headers: &HeaderMap) -> bool {
    let said = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    match (said(&FETCH_SITE), said(&ORIGIN)) {
        (Some(site), _) => site == "same-origin" || site == "none",
        (None, None) => true,
        (None, Some(origin)) => {
            let host = said(&HOST);
            let Ok(origin) = origin.parse::<Url>() else { return false };
            let authority = origin.host_str().map(|name| origin.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}")));
            let is_public = app.options.public_url.parse::<Url>().is_ok_and(|public| public.origin() == origin.origin());
            is_public || (authority.is_some() && authority.as_deref() == host)
        }
    }
}

/// Somebody who is signed in, as a request of a script of ours: what changes something carries the token.
#[derive(Debug)]
pub struct Signed(pub SignedIn);

impl FromRequestParts<App> for Signed {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let signed_in = signed_in(app, &parts.headers).await?;
        let signed_in = signed_in.ok_or_else(|| ApiError::unauthorized(Code::NotSignedIn, NOT_SIGNED_IN))?;
        if !is_own(app, &parts.headers) {
            return Err(ApiError::new(Code::OriginNotAllowed, FOREIGN));
        }
        let changes = !matches!(parts.method, Method::GET | Method::HEAD);
        let given = parts.headers.get(CSRF).and_then(|value| value.to_str().ok());
        if changes && !is_same(given, &csrf_token(app, &signed_in)) {
            return Err(ApiError::new(Code::CsrfInvalid, NO_TOKEN));
        }
        Ok(Self(signed_in))
    }
}

/// What somebody who is signed in may do in the project that the request names.
pub(super) async fn scope(parts: &mut Parts, app: &App) -> Result<Scope, ApiError> {
    let Signed(signed_in) = Signed::from_request_parts(parts, app).await?;
    let unknown = || ApiError::new(Code::ProjectNotFound, "Project not found");
    let named = parts.headers.get(PROJECT).map(|value| value.to_str().unwrap_or("?").to_owned());
    let project = if let Some(name) = named {
        app.accounts.find_project(&name).await?.id
    } else {
        let projects = app.people.projects(&signed_in).await?;
        match &projects[..] {
            [one] => one.project,
            [] => return Err(unknown()),
            _ => return Err(ApiError::bad_request("Say which project, by its id or slug in the header `X-Toolyard-Project`.")),
        }
    };
    app.people.scope(&signed_in, project).await?.ok_or_else(unknown)
}

/// Where somebody comes from who signs in.
pub(crate) fn visitor(app: &App, parts: &Parts) -> Visitor {
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.to_canonical());
    let address = peer.map(|peer| client_address(peer, &parts.headers, &app.options.proxies));
    let client = parts.headers.get(USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Visitor { address, client }
}

/// The last address on the way here that is no proxy of ours: what stands before it, anybody may have written.
fn client_address(peer: IpAddr, headers: &HeaderMap, proxies: &[IpNet]) -> IpAddr {
    let is_proxy = |address: &IpAddr| proxies.iter().any(|network| network.contains(address));
    if !is_proxy(&peer) {
        return peer;
    }
    let hops = headers.get_all(FORWARDED_FOR).into_iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let hops: Vec<Option<IpAddr>> = hops.map(|hop| hop.trim().parse().ok().map(|address: IpAddr| address.to_canonical())).collect();
    let known = hops.into_iter().rev().map_while(|hop| hop);
    let mut last = peer;
    for hop in known {
        last = hop;
        if !is_proxy(&hop) {
            break;
        }
    }
    last
}

/// As whom somebody is signed in, on the wire.
pub(crate) fn via_name(via: Via) -> &'static str {
    match via {
        Via::Person => "person",
        Via::Key(_) => "key",
        Via::Operator => "operator",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(peer: &str, forwarded: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(value));
        }
        let proxies = ["127.0.0.0/8".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        client_address(peer.parse().unwrap(), &headers, &proxies).to_string()
    }

    #[test]
    fn an_address_is_believed_as_far_as_our_own_proxies_wrote_it() {
        assert_eq!(seen("203.0.113.7", &["198.51.100.1"]), "203.0.113.7", "who is no proxy speaks for itself alone");
        assert_eq!(seen("127.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(seen("127.0.0.1", &["192.0.2.1, 198.51.100.1"]), "198.51.100.1", "what stands before is the client's own word");
        assert_eq!(seen("127.0.0.1", &["192.0.2.1", "198.51.100.1, 10.1.1.1"]), "198.51.100.1");
        assert_eq!(seen("127.0.0.1", &["nonsense"]), "127.0.0.1");
        assert_eq!(seen("127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(seen("127.0.0.1", &["10.0.0.9"]), "10.0.0.9");
    }
}
