//! `/account`: what somebody who is signed in can see and change about that.

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use people::{NewTotp, PeopleError, SignedIn};
use secrecy::{ExposeSecret, SecretString};

use super::sign_in::{FORM, STALE, form, sign_in_first, told};
use crate::App;
use crate::edge::ApiResult;
use crate::edge::page::html;
use crate::edge::session::{csrf_token, is_own_form, signed_in};
use crate::grants::{GrantBody, end_own_grant, own_grants};
use crate::people::me::MembershipBody;
use crate::people::sessions::SessionBody;

const HERE: &str = "/account";

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage<'a> {
    name: &'a str,
    projects: Vec<MembershipBody>,
    /// Whether this is a person, in a place where people have passwords.
    may_have_password: bool,
    has_password: bool,
    has_totp: bool,
    totp_secret: Option<&'a str>,
    totp_url: &'a str,
    recovery_codes: Vec<&'a str>,
    sessions: Vec<SessionBody>,
    grants: Vec<GrantBody>,
    error: Option<String>,
    done: Option<&'a str>,
    token: String,
    nonce: String,
}

/// What the last form came to.
#[derive(Default)]
struct Outcome {
    refused: Option<(StatusCode, String)>,
    done: Option<&'static str>,
    totp: Option<NewTotp>,
    recovery_codes: Vec<SecretString>,
}

impl Outcome {
    fn done(words: &'static str) -> Self {
        Self { done: Some(words), ..Self::default() }
    }
}

async fn show_page(app: &App, signed_in: &SignedIn, outcome: Outcome) -> ApiResult<Response> {
    let people = &app.people;
    let (has_password, has_totp) = match signed_in.person {
        Some(user) => (people.has_password(user).await?, people.has_totp(user).await?),
        None => (false, false),
    };
    let projects = people.projects(signed_in).await?.into_iter().map(MembershipBody::from).collect();
    let sessions = people.sessions(signed_in).await?;
    let sessions = sessions.into_iter().map(|session| SessionBody::new(session, signed_in.session)).collect();
    let grants = own_grants(app, signed_in).await?;
    let (status, error) = outcome.refused.map_or((StatusCode::OK, None), |(status, why)| (status, Some(why)));
    Ok(html(status, FORM, |nonce| AccountPage {
        name: &signed_in.name,
        projects,
        may_have_password: signed_in.person.is_some() && people.settings().passwords,
        has_password,
        has_totp,
        totp_secret: outcome.totp.as_ref().map(|totp| totp.secret.expose_secret()),
        totp_url: outcome.totp.as_ref().map_or("", |totp| totp.url.expose_secret()),
        recovery_codes: outcome.recovery_codes.iter().map(ExposeSecret::expose_secret).collect(),
        sessions,
        grants,
        error,
        done: outcome.done,
        token: csrf_token(app, signed_in),
        nonce,
    }))
}

/// Your account
#[document::path(get, path = "/account", operation_id = "show_account", tag = "Pages",
    responses((status = 200, description = "Projects, password, clients, sessions", body = String, content_type = "text/html"), (status = 303, description = "Nobody is signed in; to `/sign-in`")))]
pub(crate) async fn show(State(app): State<App>, headers: HeaderMap) -> ApiResult<Response> {
    match signed_in(&app, &headers).await? {
        Some(signed_in) => show_page(&app, &signed_in, Outcome::default()).await,
        None => Ok(sign_in_first(HERE)),
    }
}

/// Change your account
#[document::path(post, path = "/account", operation_id = "change_account", tag = "Pages",
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "The page again", body = String, content_type = "text/html"), (status = 303, description = "Nobody is signed in; to `/sign-in`"),
        (status = 400, description = "The page again, with what was wrong", body = String, content_type = "text/html"), (status = 429, description = "Too many tries", body = String, content_type = "text/html")))]
pub(crate) async fn submit(State(app): State<App>, headers: HeaderMap, request: Request) -> ApiResult<Response> {
    let fields = form(request).await?;
    let Some(signed_in) = signed_in(&app, &headers).await? else { return Ok(sign_in_first(HERE)) };
    let field = |name: &str| fields.get(name).map_or("", String::as_str);
    if !is_own_form(&app, &headers, &signed_in, fields.get("csrf").map(String::as_str)) {
        let refused = Some((StatusCode::BAD_REQUEST, STALE.to_owned()));
        return show_page(&app, &signed_in, Outcome { refused, ..Outcome::default() }).await;
    }
    if field("action") == "revoke_grant" {
        let done = end_own_grant(&app, &signed_in, field("grant")).await?;
        return show_page(&app, &signed_in, Outcome::done(done)).await;
    }
    let changed = change(&app, &signed_in, field("action"), field).await;
    let outcome = match changed {
        Ok(outcome) => outcome,
        Err(PeopleError::SessionNotFound) => Outcome::done("That session had ended already."),
        Err(error) => {
            // A code that was mistyped is typed again, with the same app.
            let totp = if field("action") == "confirm_totp" { app.people.pending_totp(&signed_in).await? } else { None };
            Outcome { refused: Some(told(error)?), totp, ..Outcome::default() }
        }
    };
    show_page(&app, &signed_in, outcome).await
}

async fn change<'a>(app: &App, signed_in: &SignedIn, action: &str, field: impl Fn(&str) -> &'a str) -> Result<Outcome, PeopleError> {
    let people = &app.people;
    match action {
        "password" => {
            let (current, new) = (SecretString::from(field("current")), SecretString::from(field("new")));
            people.change_password(signed_in, Some(&current), &new).await?;
            Ok(Outcome::done("The password is set. You are signed out everywhere else."))
        }
        "begin_totp" => Ok(Outcome { totp: Some(people.begin_totp(signed_in).await?), ..Outcome::default() }),
        "confirm_totp" => {
            let recovery_codes = people.confirm_totp(signed_in, field("code")).await?;
            Ok(Outcome { recovery_codes, ..Outcome::done("The authenticator app is switched on.") })
        }
        "remove_totp" => {
            people.remove_totp(signed_in, field("code")).await?;
            Ok(Outcome::done("The authenticator app is switched off."))
        }
        "end_session" => {
            let session = field("session").parse().map_err(|_| PeopleError::SessionNotFound)?;
            people.end_session(signed_in, session).await?;
            Ok(Outcome::done("The session is ended."))
        }
        _ => Ok(Outcome::default()),
    }
}
