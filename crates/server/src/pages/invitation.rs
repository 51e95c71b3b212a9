//! `/invitations/{token}`: where somebody becomes a member.

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use people::{NewPerson, PeopleError, SignedIn};
use secrecy::SecretString;

use super::link::sorry;
use super::sign_in::{FORM, HOME, ProviderButton, STALE, enter, for_browser, form, provider_buttons, see_other, told};
use crate::App;
use crate::edge::PathOf;
use crate::edge::page::html;
use crate::edge::session::{self, Browser, csrf_token, is_own_form, visitor};

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage<'a> {
    project: &'a str,
    role: &'a str,
    /// The address that it is for, if it is for one.
    email: Option<&'a str>,
    signed_in: Option<&'a str>,
    providers: Vec<ProviderButton>,
    passwords: bool,
    sign_in: String,
    typed: &'a str,
    name: &'a str,
    error: Option<String>,
    token: String,
    nonce: String,
}

/// What the page is shown with again.
#[derive(Default)]
struct Again<'a> {
    email: &'a str,
    name: &'a str,
    refused: Option<(StatusCode, String)>,
}

fn refused(error: PeopleError) -> Response {
    match told(error) {
        Ok((status, why)) => sorry(status, "Not joined", &why),
        Err(error) => error.into_response(),
    }
}

/// Somebody who can join: a person. A key that was typed in is none.
async fn person(app: &App, headers: &HeaderMap) -> Result<Option<SignedIn>, Response> {
    let signed_in = session::signed_in(app, headers).await.map_err(IntoResponse::into_response)?;
    Ok(signed_in.filter(|signed_in| signed_in.person.is_some()))
}

async fn show_page(app: &App, headers: &HeaderMap, invitation: &str, again: Again<'_>) -> Response {
    let offer = match app.people.offer(invitation).await {
        Ok(offer) => offer,
        Err(error) => return refused(error),
    };
    let signed_in = match person(app, headers).await {
        Ok(signed_in) => signed_in,
        Err(response) => return response,
    };
    let here = format!("/invitations/{invitation}");
    let query: String = url::form_urlencoded::Serializer::new(String::new()).append_pair("return_to", &here).finish();
    let (status, error) = again.refused.map_or((StatusCode::OK, None), |(status, why)| (status, Some(why)));
    let made = |token: String| {
        html(status, FORM, |nonce| InvitationPage {
            project: &offer.project_name,
            role: offer.invitation.role.name(),
            email: offer.invitation.email.as_deref(),
            signed_in: signed_in.as_ref().map(|signed_in| signed_in.name.as_str()),
            providers: provider_buttons(app, &here),
            passwords: app.people.settings().passwords,
            sign_in: format!("/sign-in?{query}"),
            typed: again.email,
            name: again.name,
            error,
            token,
            nonce,
        })
    };
    match &signed_in {
        Some(signed_in) => made(csrf_token(app, signed_in)),
        None => for_browser(app, headers, made),
    }
}

/// The page of an invitation
#[document::path(get, path = "/invitations/{invitation}", operation_id = "show_invitation", tag = "Pages", params(("invitation" = String, Path)),
    responses((status = 200, description = "A form", body = String, content_type = "text/html"), (status = 400, description = "The invitation is not valid any more", body = String, content_type = "text/html")))]
pub(crate) async fn show(State(app): State<App>, PathOf(invitation): PathOf<String>, headers: HeaderMap) -> Response {
    show_page(&app, &headers, &invitation, Again::default()).await
}

/// Accept an invitation
#[document::path(post, path = "/invitations/{invitation}", operation_id = "accept_invitation", tag = "Pages", params(("invitation" = String, Path)),
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 303, description = "A member now, and signed in"), (status = 400, description = "The form again, with what was wrong", body = String, content_type = "text/html"),
        (status = 429, description = "Too many tries", body = String, content_type = "text/html")))]
pub(crate) async fn submit(State(app): State<App>, PathOf(invitation): PathOf<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (headers, visitor) = (parts.headers.clone(), visitor(&app, &parts));
    let fields = match form(Request::from_parts(parts, body)).await {
        Ok(fields) => fields,
        Err(error) => return error.into_response(),
    };
    let field = |name: &str| fields.get(name).map(String::as_str);
    let signed_in = match person(&app, &headers).await {
        Ok(signed_in) => signed_in,
        Err(response) => return response,
    };
    let (email, name) = (field("email").unwrap_or_default(), field("name").unwrap_or_default());
    let is_ours = match &signed_in {
        Some(signed_in) => is_own_form(&app, &headers, signed_in, field("csrf")),
        None => Browser::of(&app, &headers).sent(&app, &headers, field("csrf")),
    };
    let joined = match signed_in {
        _ if !is_ours => {
            let refused = Some((StatusCode::BAD_REQUEST, STALE.to_owned()));
            return show_page(&app, &headers, &invitation, Again { email, name, refused }).await;
        }
        Some(signed_in) => app.people.accept(&invitation, &signed_in).await.map(|()| None),
        None => {
            let password = SecretString::from(field("password").unwrap_or_default());
            let new = NewPerson { email: email.to_owned(), name: Some(name.trim().to_owned()), password };
            app.people.accept_as_new(&invitation, new, &visitor).await.map(Some)
        }
    };
    match joined {
        Ok(None) => see_other(HOME),
        Ok(Some(opened)) => enter(&app, &headers, &opened, HOME).await,
        Err(error) => match told(error) {
            Ok(refused) => show_page(&app, &headers, &invitation, Again { email, name, refused: Some(refused) }).await,
            Err(error) => error.into_response(),
        },
    }
}
