//! Who may speak: pages of other origins may not, and a client without a key is told where to learn how to get in.

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use kernel::{Permission, Scope};
use url::Url;

use super::metadata::metadata_url;
use crate::App;
use crate::edge::auth::{KeyOnly, Requires};
use crate::edge::mount::AskedPath;
use crate::edge::{ApiError, Code, Scoped};

/// A scope for a client of the protocol.
#[derive(Debug)]
pub(crate) struct Access<P>(pub Scope, pub(super) std::marker::PhantomData<P>);

impl<P: Requires> FromRequestParts<App> for Access<P> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        check_origin(app, &parts.headers).map_err(IntoResponse::into_response)?;
        // A client of the protocol shows a key or a token; a browser's cookie is not meant for it.
        parts.extensions.insert(KeyOnly);
        let path = parts.extensions.get::<AskedPath>().map_or_else(|| parts.uri.path().to_owned(), |asked| asked.0.clone());
        let has_credential = parts.headers.contains_key(header::AUTHORIZATION);
        match Scoped::<P>::from_request_parts(parts, app).await {
            Ok(Scoped(scope, _)) => Ok(Self(scope, std::marker::PhantomData)),
            Err(error) => Err(refused(error, &metadata_url(app, &path), P::PERMISSIONS, has_credential)),
        }
    }
}

/// Says where a client learns how to get in, and what it has to ask a person for.
fn refused(error: ApiError, metadata: &str, needed: &[Permission], has_credential: bool) -> Response {
    let why = match error.code() {
        Code::MissingPermission => "error=\"insufficient_scope\", ",
        _ if error.status() != StatusCode::UNAUTHORIZED => return error.into_response(),
        _ if has_credential => "error=\"invalid_token\", ",
        _ => "",
    };
    let scope = ::grants::write_scope(needed.iter().copied().collect());
    let challenge = format!("Bearer realm=\"toolyard\", {why}scope=\"{scope}\", resource_metadata=\"{metadata}\"");
    let mut response = error.into_response();
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// A browser says which page a request comes from. Only pages of this server, of this machine and of origins that the operator named may
/// speak, whatever name a page gave to our address. The name under which we were reached decides nothing: no browser sends a key by itself.
pub(super) fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let is_named = app.options.cors_origins.iter().any(|named| named == "*" || named.trim_end_matches('/') == origin);
    let is_ours = || {
        let Ok(url) = origin.parse::<Url>() else { return false };
        let public = app.options.public_url.parse::<Url>().is_ok_and(|public| public.origin() == url.origin());
        public || app.options.web_origin.as_deref() == Some(origin) || is_loopback(&url)
    };
    if is_named || is_ours() {
        Ok(())
    } else {
        Err(ApiError::new(Code::OriginNotAllowed, format!("Pages of `{origin}` may not speak here.")))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
