//! `/oauth/device` and `/device`: devices without a browser, and the page where a person lets one in (RFC 8628).

use ::grants::{DeviceDecision, Refusal, Surface, read_scope};
use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use document::{IntoParams, ToSchema};
use http::{HeaderMap, StatusCode};
use people::SignedIn;
use serde::Serialize;

use super::consent::{self, Asked, Way};
use super::form::{ClientForm, Fields};
use super::{OauthError, OauthErrorBody, OauthResult, private, surface_of};
use crate::App;
use crate::edge::extract::read_body;
use crate::edge::page::html;
use crate::edge::session::{self, csrf_token, is_own_form};
use crate::edge::{ApiError, Code, Json};
use crate::pages::sign_in::sign_in_first;

const FORM_LIMIT: usize = 16 << 10;
const UNKNOWN: &str = "No device waits with this code. Look at the device; the code may have expired.";
const STALE: &str = "This page was open for too long, or it was not opened here. Open it again.";

/// What a device asks for.
#[derive(Debug, ToSchema)]
pub struct DeviceForm {
    pub client_id: String,
    pub client_secret: Option<String>,
    pub scope: Option<String>,
    pub resource: Option<String>,
}

/// What the device shows, and what it asks with until somebody has decided.
#[derive(Serialize, ToSchema)]
pub struct DeviceAnswer {
    pub device_code: String,
    pub user_code: String,
    pub verification_uri: String,
    pub verification_uri_complete: String,
    /// Seconds.
    pub expires_in: u64,
    /// Seconds between two questions.
    pub interval: u64,
}

impl std::fmt::Debug for DeviceAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceAnswer")
    }
}

/// The code that a device shows.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DeviceQuery {
    pub user_code: Option<String>,
}

/// What a person decides about a device.
#[derive(Debug, ToSchema)]
pub struct DeviceDecisionForm {
    pub user_code: String,
    pub csrf: String,
    /// `allow`, `deny`, or `project` to see another project; left out, the page is shown.
    pub decision: Option<String>,
    pub project: Option<String>,
    /// The same for every permission that is ticked.
    pub allow_run_tools: Option<String>,
}

#[derive(Template)]
#[template(path = "device.html")]
struct DevicePage<'a> {
    error: Option<&'a str>,
    csrf: String,
    nonce: String,
}

/// Begin to sign a device in
#[document::path(post, path = "/oauth/device", operation_id = "begin_oauth_device", tag = "OAuth",
    request_body(content = DeviceForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = DeviceAnswer), (status = 400, body = OauthErrorBody, description = "The request cannot be taken"),
        (status = 401, body = OauthErrorBody, description = "The client is unknown, or its secret is wrong")))]
pub(crate) async fn begin(State(app): State<App>, form: ClientForm) -> OauthResult<Response> {
    let client = form.client(&app).await?;
    if client.vouched_by().is_some() {
        // Its document would have to be read for somebody who is not signed in.
        return Err(OauthError::new(Refusal::InvalidClient, "The client of a device must be registered at `POST /oauth/register`."));
    }
    let surface = surface_of(&app, form.fields.get("resource"))?.unwrap_or(Surface::Api);
    let asked = read_scope(form.fields.get("scope"))?.unwrap_or_else(|| consent::usual(&surface));
    let code = app.grants.begin_device(&client, &surface, asked).await?;
    let page = format!("{}/device", app.options.public_url());
    Ok(private(
        Json(DeviceAnswer {
            device_code: code.device.expose().to_owned(),
            verification_uri_complete: format!("{page}?user_code={}", code.user),
            user_code: code.user,
            verification_uri: page,
            expires_in: code.expires_in.as_secs(),
            interval: code.interval.as_secs(),
        })
        .into_response(),
    ))
}

/// The page where a person lets a device in
#[document::path(get, path = "/device", operation_id = "show_device", tag = "Pages", params(DeviceQuery),
    responses((status = 200, description = "A form for the code, or the page that asks", body = String, content_type = "text/html"), (status = 303, description = "To sign in")))]
pub(crate) async fn show(State(app): State<App>, headers: HeaderMap, uri: http::Uri) -> Response {
    let fields = match Fields::read(uri.query().unwrap_or_default().as_bytes()) {
        Ok(fields) => fields,
        Err(error) => return consent::refused(error),
    };
    match session::signed_in(&app, &headers).await {
        Err(error) => error.into_response(),
        Ok(None) => sign_in_first(&uri.path_and_query().map_or_else(|| "/device".to_owned(), ToString::to_string)),
        Ok(Some(signed_in)) => {
            // An address says which device; what it says of a decision is not the person's word.
            let code = Fields::default().with("user_code", fields.get("user_code"));
            ask(&app, &signed_in, &code).await.unwrap_or_else(consent::refused)
        }
    }
}

/// Take what a person decided about a device
#[document::path(post, path = "/device", operation_id = "decide_device", tag = "Pages",
    request_body(content = DeviceDecisionForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "How it ended, or the page that asks", body = String, content_type = "text/html"), (status = 303, description = "To sign in"),
        (status = 400, description = "The form is none of ours, or no device waits with the code", body = String, content_type = "text/html"),
        (status = 409, description = "As many grants are in force as there may be", body = String, content_type = "text/html"),
        (status = 422, description = "Nothing was ticked; the page is shown again", body = String, content_type = "text/html")))]
pub(crate) async fn decide(State(app): State<App>, headers: HeaderMap, request: Request) -> Response {
    match take(&app, &headers, request).await {
        Ok(response) => response,
        Err(error) => consent::refused(error),
    }
}

async fn take(app: &App, headers: &HeaderMap, request: Request) -> OauthResult<Response> {
    let form = Fields::read(&read_body(request, FORM_LIMIT).await?)?;
    let none_of_ours = || Ok(consent::told(StatusCode::BAD_REQUEST, "No device was let in", STALE));
    let Some(token) = form.get("csrf") else { return none_of_ours() };
    let Some(signed_in) = session::signed_in(app, headers).await? else { return Ok(sign_in_first("/device")) };
    if !is_own_form(app, headers, &signed_in, Some(token)) {
        return none_of_ours();
    }
    ask(app, &signed_in, &form).await
}

fn code_form(app: &App, signed_in: &SignedIn, error: Option<&str>) -> Response {
    let status = if error.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    html(status, "form-action 'self'", |nonce| DevicePage { error, csrf: csrf_token(app, signed_in), nonce })
}

async fn ask(app: &App, signed_in: &SignedIn, form: &Fields) -> OauthResult<Response> {
    let Some(user_code) = form.get("user_code") else { return Ok(code_form(app, signed_in, None)) };
    let Some(device) = app.grants.waiting_device(user_code).await? else { return Ok(code_form(app, signed_in, Some(UNKNOWN))) };
    if form.get("decision") == Some("deny") {
        app.grants.decide_device(user_code, &DeviceDecision::Deny).await?;
        return Ok(consent::told(StatusCode::OK, "The device was not let in", "You can close this window."));
    }
    let places = consent::places(app, signed_in, &device.surface).await?;
    let way = Way::Device { user_code };
    let asked = Asked { client_name: &device.client_name, vouched_by: None, surface: &device.surface, permissions: device.asked, way };
    let place = consent::chosen(&places, form);
    let place = place.ok_or_else(|| OauthError::Other(ApiError::new(Code::ProjectNotFound, "Project not found")))?;
    if form.get("decision") != Some("allow") {
        return Ok(consent::page(app, signed_in, &asked, &places, place, None));
    }
    let Some(approval) = consent::approval(&asked, place, signed_in, form)? else {
        return Ok(consent::page(app, signed_in, &asked, &places, place, Some("Tick at least one permission, or say no.")));
    };
    if app.grants.decide_device(user_code, &DeviceDecision::Approve(approval)).await? {
        Ok(consent::told(StatusCode::OK, "The device is signed in", "Go back to it. You can close this window."))
    } else {
        Ok(code_form(app, signed_in, Some(UNKNOWN)))
    }
}
