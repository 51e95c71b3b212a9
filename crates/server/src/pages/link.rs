//! `/sign-in/link/{token}`: a link that signs somebody in, once.

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use people::PeopleError;

use super::sign_in::{FORM, HOME, STALE, enter, for_browser, form, told};
use crate::App;
use crate::edge::PathOf;
use crate::edge::page::html;
use crate::edge::session::{Browser, visitor};

#[derive(Template)]
#[template(path = "sign_in_link.html")]
struct LinkPage<'a> {
    title: &'a str,
    text: Option<String>,
    error: Option<String>,
    button: Option<String>,
    token: String,
    nonce: String,
}

/// A page that says why somebody is not signed in.
pub(crate) fn sorry(status: StatusCode, title: &str, why: &str) -> Response {
    let error = Some(why.to_owned());
    html(status, FORM, |nonce| LinkPage { title, text: None, error, button: None, token: String::new(), nonce })
}

fn refused(error: PeopleError) -> Response {
    match told(error) {
        Ok((status, why)) => sorry(status, "Not signed in", &why),
        Err(error) => error.into_response(),
    }
}

async fn show_button(app: &App, headers: &HeaderMap, link: &str, status: StatusCode, error: Option<String>) -> Response {
    match app.people.link_for(link).await {
        Ok(user) => for_browser(app, headers, |token| {
            let (text, button) = (Some("This link works once.".to_owned()), Some(format!("Sign in as {}", user.label())));
            html(status, FORM, |nonce| LinkPage { title: "Sign in", text, error, button, token, nonce })
        }),
        Err(error) => refused(error),
    }
}

/// The page of a sign-in link
///
/// Opening it changes nothing, so that whatever looks at links before people do does not use it up.
#[document::path(get, path = "/sign-in/link/{link}", operation_id = "show_sign_in_link", tag = "Pages", params(("link" = String, Path)),
    responses((status = 200, description = "A button", body = String, content_type = "text/html"), (status = 400, description = "The link is not valid any more", body = String, content_type = "text/html")))]
pub(crate) async fn show(State(app): State<App>, PathOf(link): PathOf<String>, headers: HeaderMap) -> Response {
    show_button(&app, &headers, &link, StatusCode::OK, None).await
}

/// Sign in with a link
#[document::path(post, path = "/sign-in/link/{link}", operation_id = "use_sign_in_link", tag = "Pages", params(("link" = String, Path)),
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 303, description = "Signed in; the session is a cookie"), (status = 400, description = "The link is not valid any more", body = String, content_type = "text/html"),
        (status = 429, description = "Too many tries", body = String, content_type = "text/html")))]
pub(crate) async fn submit(State(app): State<App>, PathOf(link): PathOf<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (headers, visitor) = (parts.headers.clone(), visitor(&app, &parts));
    let fields = match form(Request::from_parts(parts, body)).await {
        Ok(fields) => fields,
        Err(error) => return error.into_response(),
    };
    if !Browser::of(&app, &headers).sent(&app, &headers, fields.get("csrf").map(String::as_str)) {
        return show_button(&app, &headers, &link, StatusCode::BAD_REQUEST, Some(STALE.to_owned())).await;
    }
    match app.people.by_link(&link, &visitor).await {
        Ok(opened) => enter(&app, &headers, &opened, HOME).await,
        Err(error) => refused(error),
    }
}
