//! `/sign-in` and `/sign-out`: pages that work without scripts.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use document::IntoParams;
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use people::{OpenedSession, Passed, PeopleError};
use secrecy::SecretString;

use crate::App;
use crate::edge::ApiError;
use crate::edge::extract::{query_values, read_body};
use crate::edge::page::html;
use crate::edge::session::{self, Browser, is_own_form, keep_session, session_token, visitor};

/// Where somebody goes who signed in and came from nowhere.
pub(crate) const HOME: &str = "/app";
pub(crate) const FORM: &str = "form-action 'self'";
/// Forms are short.
const FORM_LIMIT: usize = 32 << 10;
/// As long as the requests of clients may be that people are sent here for.
const LONGEST_ADDRESS: usize = 8300;
pub(crate) const STALE: &str = "This form was open for too long, or it was opened in another browser. Try again.";

/// What the page shall do afterwards.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SignInQuery {
    /// Where to go once signed in: a path of this server.
    pub return_to: Option<String>,
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    return_to: &'a str,
    providers: Vec<ProviderButton>,
    passwords: bool,
    email: &'a str,
    error: Option<String>,
    token: String,
    nonce: String,
}

#[derive(Template)]
#[template(path = "sign_in_code.html")]
struct CodePage<'a> {
    return_to: &'a str,
    ticket: &'a str,
    error: Option<String>,
    token: String,
    nonce: String,
}

/// A way to sign in elsewhere.
pub(crate) struct ProviderButton {
    pub(crate) address: String,
    pub(crate) label: String,
}

/// Buttons for the identity providers.
pub(crate) fn provider_buttons(app: &App, return_to: &str) -> Vec<ProviderButton> {
    let query: String = url::form_urlencoded::Serializer::new(String::new()).append_pair("return_to", return_to).finish();
    let button = |(name, label): (&str, &str)| ProviderButton { address: format!("/sign-in/with/{name}?{query}"), label: label.to_owned() };
    app.people.providers().map(button).collect()
}

/// A path of our own that a browser may be sent to: nothing that it would take for another host.
pub(crate) fn own_path(text: &str) -> Option<String> {
    let base = url::Url::parse("http://own.invalid").ok()?;
    let is_plain = text.len() <= LONGEST_ADDRESS && text.starts_with('/') && !text.contains(|c: char| c.is_control() || c == '\\');
    let url = base.join(text).ok().filter(|url| is_plain && url.origin() == base.origin() && !url.path().starts_with("//"))?;
    Some(url[url::Position::BeforePath..].to_owned())
}

/// Where a page sends somebody who has to sign in first.
pub(crate) fn sign_in_first(return_to: &str) -> Response {
    let query: String = url::form_urlencoded::Serializer::new(String::new()).append_pair("return_to", return_to).finish();
    see_other(&format!("/sign-in?{query}"))
}

/// Sends a browser to another address, as a GET.
pub(crate) fn see_other(address: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(address) else { return ApiError::internal(&"an address is no header").into_response() };
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// The fields of a form.
pub(crate) async fn form(request: Request) -> Result<BTreeMap<String, String>, ApiError> {
    let body = read_body(request, FORM_LIMIT).await?;
    Ok(url::form_urlencoded::parse(&body).into_owned().collect())
}

/// What the form is shown with again.
#[derive(Default)]
struct Again<'a> {
    email: &'a str,
    error: Option<String>,
}

fn show_form(app: &App, headers: &HeaderMap, status: StatusCode, return_to: &str, again: Again<'_>) -> Response {
    let Again { email, error } = again;
    let (providers, passwords) = (provider_buttons(app, return_to), app.people.settings().passwords);
    for_browser(app, headers, |token| {
        html(status, FORM, |nonce| SignInPage { return_to, providers, passwords, email, error, token, nonce })
    })
}

fn show_code_form(app: &App, headers: &HeaderMap, return_to: &str, ticket: &str, refused: Option<(StatusCode, String)>) -> Response {
    let (status, error) = refused.map_or((StatusCode::OK, None), |(status, why)| (status, Some(why)));
    for_browser(app, headers, |token| html(status, FORM, |nonce| CodePage { return_to, ticket, error, token, nonce }))
}

/// A page with a form for a browser in which nobody is signed in.
pub(crate) fn for_browser(app: &App, headers: &HeaderMap, page: impl FnOnce(String) -> Response) -> Response {
    let browser = Browser::of(app, headers);
    let mut response = page(browser.form_token(app));
    browser.keep(app, response.headers_mut());
    response
}

/// Signs the browser in: whoever was signed in there before is not any more.
pub(crate) async fn enter(app: &App, headers: &HeaderMap, opened: &OpenedSession, return_to: &str) -> Response {
    if let Some(before) = session_token(app, headers)
        && let Err(error) = app.people.sign_out(&before).await
    {
        return ApiError::from(error).into_response();
    }
    let mut response = see_other(return_to);
    keep_session(app, response.headers_mut(), opened);
    response
}

/// The status of a page that says why somebody is not signed in.
pub(crate) fn status_of(error: &PeopleError) -> StatusCode {
    match error {
        PeopleError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// What a person is told; our own failures are logged and kept from pages.
pub(crate) fn told(error: PeopleError) -> Result<(StatusCode, String), ApiError> {
    match error {
        PeopleError::Store(_) | PeopleError::Sealed(_) | PeopleError::Broken(_) => Err(error.into()),
        PeopleError::Account(accounts::AccountError::Store(error)) => Err(error.into()),
        other => Ok((status_of(&other), other.to_string())),
    }
}

/// The page where people sign in
#[document::path(get, path = "/sign-in", operation_id = "show_sign_in", tag = "Pages", params(SignInQuery),
    responses((status = 200, description = "A form", body = String, content_type = "text/html"), (status = 303, description = "Somebody is signed in already")))]
pub(crate) async fn show(State(app): State<App>, headers: HeaderMap, uri: http::Uri) -> Response {
    let asked = query_values(&uri, "return_to").into_iter().next();
    let return_to = asked.as_deref().and_then(own_path).unwrap_or_else(|| HOME.to_owned());
    match session::signed_in(&app, &headers).await {
        Ok(Some(_)) => see_other(&return_to),
        Ok(None) => show_form(&app, &headers, StatusCode::OK, &return_to, Again::default()),
        Err(error) => error.into_response(),
    }
}

/// Sign in
#[document::path(post, path = "/sign-in", operation_id = "sign_in", tag = "Pages",
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "A form for a code, after a right password", body = String, content_type = "text/html"), (status = 303, description = "Signed in; the session is a cookie"), (status = 400, description = "The form again, with what was wrong", body = String, content_type = "text/html"),
        (status = 429, description = "Too many tries", body = String, content_type = "text/html")))]
pub(crate) async fn submit(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (headers, visitor) = (parts.headers.clone(), visitor(&app, &parts));
    let fields = match form(Request::from_parts(parts, body)).await {
        Ok(fields) => fields,
        Err(error) => return error.into_response(),
    };
    let return_to = fields.get("return_to").and_then(|text| own_path(text)).unwrap_or_else(|| HOME.to_owned());
    if !Browser::of(&app, &headers).sent(&app, &headers, fields.get("csrf").map(String::as_str)) {
        let again = Again { error: Some(STALE.to_owned()), ..Again::default() };
        return show_form(&app, &headers, StatusCode::BAD_REQUEST, &return_to, again);
    }
    let field = |name: &str| fields.get(name).map(String::as_str);
    let secret = |name: &str| SecretString::from(field(name).unwrap_or_default());
    let (email, ticket) = (field("email").unwrap_or_default(), field("ticket"));
    let passed = match (ticket, field("key")) {
        (Some(ticket), _) => app.people.by_code(ticket, field("code").unwrap_or_default(), &visitor).await.map(Passed::SignedIn),
        (None, Some(_)) => app.people.by_key(&secret("key"), &visitor).await.map(Passed::SignedIn),
        (None, None) => app.people.by_password(email, &secret("password"), &visitor).await,
    };
    match (passed, ticket) {
        (Ok(Passed::SignedIn(opened)), _) => enter(&app, &headers, &opened, &return_to).await,
        (Ok(Passed::NeedsCode { ticket }), _) => show_code_form(&app, &headers, &return_to, &ticket, None),
        (Err(error @ (PeopleError::CodeWrong | PeopleError::TooMany { .. })), Some(ticket)) => match told(error) {
            Ok(refused) => show_code_form(&app, &headers, &return_to, ticket, Some(refused)),
            Err(error) => error.into_response(),
        },
        (Err(error), _) => match told(error) {
            Ok((status, why)) => show_form(&app, &headers, status, &return_to, Again { email, error: Some(why) }),
            Err(error) => error.into_response(),
        },
    }
}

/// Sign out
#[document::path(post, path = "/sign-out", operation_id = "sign_out", tag = "Pages",
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 303, description = "Signed out"), (status = 403, description = "The form is none of ours")))]
pub(crate) async fn sign_out(State(app): State<App>, headers: HeaderMap, request: Request) -> Response {
    match end_session(&app, &headers, request).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

async fn end_session(app: &App, headers: &HeaderMap, request: Request) -> Result<Response, ApiError> {
    let fields = form(request).await?;
    let token = session_token(app, headers);
    if let Some(signed_in) = session::signed_in(app, headers).await? {
        if !is_own_form(app, headers, &signed_in, fields.get("csrf").map(String::as_str)) {
            return Err(ApiError::new(crate::edge::Code::CsrfInvalid, STALE));
        }
        if let Some(token) = token {
            app.people.sign_out(&token).await?;
        }
    }
    let mut response = see_other("/sign-in");
    session::drop_session(app, response.headers_mut());
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::own_path;

    #[test]
    fn only_paths_of_our_own_are_gone_to() {
        for (text, path) in [("/", "/"), ("/account?x=1#y", "/account?x=1#y"), ("/a/../b", "/b"), ("/\u{e9}", "/%C3%A9")] {
            assert_eq!(own_path(text).as_deref(), Some(path), "{text}");
        }
        let long = format!("/{}", "x".repeat(9000));
        for text in [
            "",
            "account",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example/",
            "/\t/evil.example",
            "/\n//evil",
            "javascript:alert(1)",
            "/..//evil.example",
            "/.//evil.example",
            "/a/..//evil.example",
            " /account",
            &long,
        ] {
            assert_eq!(own_path(text), None, "{text}");
        }
    }
}
