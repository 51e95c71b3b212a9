//! `/sign-in/with/{provider}`: the way to an identity provider and back.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};

use people::PeopleError;
use people::oidc::{Returned, Start};

use super::link::sorry;
use super::sign_in::{HOME, SignInQuery, enter, own_path, see_other, told};
use super::{CallbackQuery, not_a_get};
use crate::App;
use crate::addresses;
use crate::edge::PathOf;
use crate::edge::extract::query_values;
use crate::edge::session::{Browser, visitor};

/// Where an invitation is opened, which somebody may sign in for.
const INVITATIONS: &str = "/invitations/";

/// Go to an identity provider
#[document::path(get, path = "/sign-in/with/{provider}", operation_id = "sign_in_with_provider", tag = "Pages", params(("provider" = String, Path), SignInQuery),
    responses((status = 303, description = "To the provider"), (status = 400, description = "It cannot be asked", body = String, content_type = "text/html"),
        (status = 429, description = "Too many tries", body = String, content_type = "text/html")))]
pub(crate) async fn start(State(app): State<App>, PathOf(name): PathOf<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if let Some(refused) = not_a_get(&parts.method) {
        return refused;
    }
    let asked = query_values(&parts.uri, "return_to").into_iter().next();
    let return_to = asked.as_deref().and_then(own_path).unwrap_or_else(|| HOME.to_owned());
    let browser = Browser::of(&app, &parts.headers);
    let redirect = addresses::sign_in_callback(app.options.public_url(), &name);
    let invitation = return_to.strip_prefix(INVITATIONS);
    let start = Start { provider: &name, redirect: &redirect, browser: browser.id(), return_to: &return_to, invitation };
    match app.people.start(start, &visitor(&app, &parts)).await {
        Ok(address) => {
            let mut response = see_other(address.as_str());
            browser.keep(&app, response.headers_mut());
            response
        }
        Err(error) => refused(error),
    }
}

/// Where an identity provider sends a person back
#[document::path(get, path = "/sign-in/with/{provider}/callback", operation_id = "callback_sign_in", tag = "Pages", params(("provider" = String, Path), CallbackQuery),
    responses((status = 303, description = "Signed in; the session is a cookie"), (status = 400, description = "Not signed in", body = String, content_type = "text/html")))]
pub(crate) async fn callback(State(app): State<App>, PathOf(name): PathOf<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if let Some(refused) = not_a_get(&parts.method) {
        return refused;
    }
    let query = CallbackQuery::read(&parts.uri);
    let redirect = addresses::sign_in_callback(app.options.public_url(), &name);
    let browser = Browser::of(&app, &parts.headers);
    let returned = Returned {
        provider: &name,
        redirect: &redirect,
        browser: browser.id(),
        state: query.state.as_deref().unwrap_or_default(),
        code: query.code.as_deref(),
        error: query.error.as_deref(),
        issuer: query.iss.as_deref(),
    };
    match app.people.finish(returned, &visitor(&app, &parts)).await {
        Ok(arrived) => enter(&app, &parts.headers, &arrived.opened, own_path(&arrived.return_to).as_deref().unwrap_or(HOME)).await,
        Err(error) => refused(error),
    }
}

fn refused(error: PeopleError) -> Response {
    match told(error) {
        Ok((status, why)) => sorry(status, "Not signed in", &why),
        Err(error) => error.into_response(),
    }
}
