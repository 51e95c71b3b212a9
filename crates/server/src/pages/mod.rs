//! Pages for people: where a key is typed and where a provider sends them back. Public: what opens them is the signed ticket.

pub mod account;
pub mod invitation;
pub mod link;
pub mod provider;
pub mod sign_in;

use std::collections::BTreeMap;

use accounts::{Branding, Colour};
use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use connections::{ConnectionError, Finished, HostedForm, Returned};
use http::{Method, StatusCode};
use kernel::ProjectId;
use serde_json::json;
use utoipa::IntoParams;

use crate::App;
use crate::edge::extract::{query_values, read_body};
use crate::edge::page::html;
use crate::edge::{ApiError, PathOf};
use crate::project::branding::data_url;

const NOT_ACTIVATED: &str = "Connection could not be activated. Please try again.";
const FORM_AND_LOGO: &str = "img-src https: data:; form-action 'self'";

/// What a provider says when it sends a person back.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CallbackQuery {
    pub state: Option<String>,
    pub code: Option<String>,
    pub error: Option<String>,
    pub error_description: Option<String>,
    pub error_message: Option<String>,
    pub status: Option<String>,
    /// The account that a provider connected itself; it must be the one that was begun.
    pub connected_account_id: Option<String>,
    /// Who answers (RFC 9207); it must be the provider that was asked.
    pub iss: Option<String>,
}

impl std::fmt::Debug for CallbackQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallbackQuery")
    }
}

impl CallbackQuery {
    /// A person stands behind this request, so whatever the address holds, the answer is a page.
    fn read(uri: &http::Uri) -> Self {
        let first = |name| query_values(uri, name).into_iter().next();
        Self {
            state: first("state"),
            code: first("code"),
            error: first("error"),
            error_description: first("error_description"),
            error_message: first("error_message"),
            status: first("status"),
            connected_account_id: first("connected_account_id"),
            iss: first("iss"),
        }
    }
}

#[derive(Template)]
#[template(path = "connect.html")]
struct ConnectPage<'a> {
    brand: Brand,
    name: &'a str,
    logo: Option<&'a str>,
    slug: &'a str,
    fields: Vec<FormField>,
    error: Option<String>,
    nonce: String,
}

/// How the project shows itself. Colours are values of ours when they reach a page, and the name is text.
#[derive(Default)]
struct Brand {
    name: Option<String>,
    logo: Option<String>,
    accent: Option<Colour>,
    background: Option<Colour>,
}

impl Brand {
    /// A page is shown without it rather than not at all.
    async fn of(app: &App, project: ProjectId) -> Self {
        let branding = app.accounts.branding(project).await.unwrap_or_else(|error| {
            tracing::warn!(%project, %error, "the branding of a project could not be read");
            Branding::default()
        });
        let logo = branding.logo.as_ref().map(data_url);
        Self { name: branding.name, logo, accent: branding.accent, background: branding.background }
    }
}

struct FormField {
    name: String,
    label: String,
    help: Option<String>,
    kind: &'static str,
    value: String,
    required: bool,
}

#[derive(Template)]
#[template(path = "done.html")]
struct DonePage<'a> {
    brand: Brand,
    title: &'a str,
    text: &'a str,
    logo: Option<&'a str>,
    /// The message for the window that opened this one, as JSON that is safe inside a script.
    message: String,
    origin: String,
    nonce: String,
}

/// Where a provider sends a person back
#[utoipa::path(get, path = "/tools/connections/callback", operation_id = "callback_tool_connection", tag = "Tools", params(CallbackQuery),
    responses((status = 200, description = "The account is connected", body = String, content_type = "text/html"), (status = 400, description = "It is not", body = String, content_type = "text/html")))]
pub(crate) async fn callback(State(app): State<App>, method: Method, uri: http::Uri) -> Response {
    come_back(&app, &method, &uri, None).await
}

/// Where the provider of one OAuth app sends a person back
///
/// Each app has an address of its own, so that what one provider sends back is never taken for the answer of another.
#[utoipa::path(get, path = "/tools/connections/callback/{app}", operation_id = "callback_oauth_app", tag = "Tools", params(("app" = String, Path), CallbackQuery),
    responses((status = 200, description = "The account is connected", body = String, content_type = "text/html"), (status = 400, description = "It is not", body = String, content_type = "text/html")))]
pub(crate) async fn callback_of_app(State(app): State<App>, PathOf(tag): PathOf<String>, method: Method, uri: http::Uri) -> Response {
    come_back(&app, &method, &uri, Some(&tag)).await
}

/// What only looks at a link must not use it up.
fn not_a_get(method: &Method) -> Option<Response> {
    (method == Method::HEAD).then(|| (StatusCode::METHOD_NOT_ALLOWED, [(http::header::ALLOW, "GET")]).into_response())
}

async fn come_back(app: &App, method: &Method, uri: &http::Uri, redirect_tag: Option<&str>) -> Response {
    if let Some(refused) = not_a_get(method) {
        return refused;
    }
    let query = CallbackQuery::read(uri);
    let refused = query.error_description.or(query.error_message).or(query.error);
    let refused =
        refused.or_else(|| query.status.filter(|status| status == "failed").map(|_| "Authorization failed. Please try again.".to_owned()));
    // Without a state of ours nobody knows whose words the address holds, so they are not shown.
    let Some(state) = query.state.as_deref() else { return failure(app, StatusCode::BAD_REQUEST, NOT_ACTIVATED) };
    let returned = Returned {
        state,
        code: query.code.as_deref(),
        error: refused.as_deref(),
        account: query.connected_account_id.as_deref(),
        issuer: query.iss.as_deref(),
        redirect_tag,
    };
    match app.connections.callback(returned).await {
        Ok(finished) => success(app, &finished).await,
        Err(ConnectionError::BadAttempt) => failure(app, StatusCode::BAD_REQUEST, NOT_ACTIVATED),
        Err(error) => failed(app, error),
    }
}

/// The page where a person types a credential
#[utoipa::path(get, path = "/connect/{ticket}", operation_id = "show_connect_page", tag = "Pages", params(("ticket" = String, Path)),
    responses((status = 200, description = "A form", body = String, content_type = "text/html"), (status = 400, description = "The link is not valid any more", body = String, content_type = "text/html")))]
pub(crate) async fn show(State(app): State<App>, PathOf(ticket): PathOf<String>) -> Response {
    match app.connections.hosted_form(&ticket).await {
        Ok(form) => page(&app, StatusCode::OK, &form, &BTreeMap::new(), None).await,
        Err(error) => failed(&app, error),
    }
}

/// Take what a person typed
#[utoipa::path(post, path = "/connect/{ticket}", operation_id = "submit_connect_page", tag = "Pages", params(("ticket" = String, Path)),
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "The account is connected", body = String, content_type = "text/html"), (status = 400, description = "The link is not valid any more", body = String, content_type = "text/html"),
        (status = 422, description = "The credential was refused; the form is shown again", body = String, content_type = "text/html")))]
pub(crate) async fn submit(State(app): State<App>, PathOf(ticket): PathOf<String>, request: Request) -> Response {
    let body = match read_body(request, app.options.body_limit).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let values: BTreeMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let form = match app.connections.hosted_form(&ticket).await {
        Ok(form) => form,
        Err(error) => return failed(&app, error),
    };
    match app.connections.submit_form(&ticket, values.clone()).await {
        Ok(finished) => success(&app, &finished).await,
        Err(
            error @ (ConnectionError::Field(_)
            | ConnectionError::Refused { .. }
            | ConnectionError::Unreachable { .. }
            | ConnectionError::UpstreamServer { .. }),
        ) => page(&app, StatusCode::UNPROCESSABLE_ENTITY, &form, &values, Some(error.to_string())).await,
        Err(error) => failed(&app, error),
    }
}

async fn page(app: &App, status: StatusCode, form: &HostedForm, values: &BTreeMap<String, String>, error: Option<String>) -> Response {
    let fields = form.fields.iter().map(|(name, field)| FormField {
        name: name.clone(),
        label: field.label.clone().unwrap_or_else(|| name.clone()),
        help: field.help.clone(),
        kind: if field.secret { "password" } else { "text" },
        // A secret is never sent back to the page.
        value: if field.secret { String::new() } else { values.get(name).or(field.default.as_ref()).cloned().unwrap_or_default() },
        required: !field.optional,
    });
    let (name, logo, slug, fields) = (&form.integration_name, form.logo.as_deref(), &form.slug, fields.collect());
    let brand = Brand::of(app, form.project).await;
    html(status, FORM_AND_LOGO, |nonce| ConnectPage { brand, name, logo, slug, fields, error, nonce })
}

async fn success(app: &App, finished: &Finished) -> Response {
    let connection = &finished.connection;
    let message = json!({"type": "tools:oauth:complete", "slug": connection.slug, "integration": connection.integration, "success": true});
    let account =
        connection.account.as_ref().and_then(|account| account["label"].as_str()).map(|label| format!(" as {label}")).unwrap_or_default();
    let note = finished.note.as_deref().map(|note| format!(" {note}")).unwrap_or_default();
    let text = format!("{} is connected{account}.{note} You can close this window.", finished.integration_name);
    let brand = Brand::of(app, connection.project).await;
    done(app, StatusCode::OK, brand, "Connected", &text, finished.logo.as_deref(), &message)
}

fn failed(app: &App, error: ConnectionError) -> Response {
    let text = error.to_string();
    match ApiError::from(error).status() {
        StatusCode::INTERNAL_SERVER_ERROR => {
            failure(app, StatusCode::INTERNAL_SERVER_ERROR, "An internal error occurred. Please try again.")
        }
        status if status.is_server_error() || status == StatusCode::FAILED_DEPENDENCY => failure(app, status, &text),
        _ => failure(app, StatusCode::BAD_REQUEST, &text),
    }
}

fn failure(app: &App, status: StatusCode, text: &str) -> Response {
    let message = json!({"type": "tools:oauth:complete", "success": false, "message": text});
    done(app, status, Brand::default(), "Not connected", text, None, &message)
}

fn done(app: &App, status: StatusCode, brand: Brand, title: &str, text: &str, logo: Option<&str>, message: &serde_json::Value) -> Response {
    let origin = json!(app.options.web_origin).to_string().replace('<', "\\u003c");
    let message = message.to_string().replace('<', "\\u003c");
    html(status, FORM_AND_LOGO, |nonce| DonePage { brand, title, text, logo, message, origin, nonce })
}
