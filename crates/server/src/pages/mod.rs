//! Pages for people: where a key is typed and where a provider sends them back. Public: what opens them is the signed ticket.

pub mod account;
pub mod invitation;
pub mod link;
pub mod provider;
pub mod sign_in;
mod words;

use std::collections::BTreeMap;

use accounts::{Branding, Colour, SiteOrigin};
use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use connections::{ConnectionError, Ended, Finished, HostedForm, LinkOptions, Returned};
use document::IntoParams;
use http::{HeaderMap, Method, StatusCode};
use kernel::{ConnectionId, Language, ProjectId};
use serde::Deserialize;
use serde_json::json;

use crate::App;
use crate::edge::extract::{query_values, read_body};
use crate::edge::page::framed;
use crate::edge::{ApiError, PathOf};
use crate::project::branding::data_url;
use words::Words;

/// How the message begins that tells other windows how it ended.
const MESSAGE: &str = "tools:oauth:complete";
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
    words: &'static Words,
    brand: Brand,
    name: &'a str,
    logo: Option<&'a str>,
    slug: &'a str,
    fields: Vec<FormField>,
    error: Option<String>,
    /// Whether there is somewhere to go for somebody who does not want to.
    can_decline: bool,
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
    words: &'static Words,
    brand: Brand,
    title: &'a str,
    text: &'a str,
    logo: Option<&'a str>,
    /// Where the browser goes from here.
    next: Option<String>,
    /// The message for whoever opened this window or shows it in a frame, as JSON that is safe inside a script.
    message: String,
    /// The origins that may hear it.
    origins: String,
    nonce: String,
}

/// How one project's pages are shown.
#[derive(Default)]
struct Setting {
    brand: Brand,
    /// Sites of the project.
    origins: Vec<SiteOrigin>,
}

impl Setting {
    async fn of(app: &App, project: ProjectId) -> Self {
        let links = app.accounts.connect_links(project).await.unwrap_or_else(|error| {
            tracing::warn!(%project, %error, "the sites of a project could not be read");
            accounts::ConnectLinks::default()
        });
        Self { brand: Brand::of(app, project).await, origins: links.origins }
    }

    /// Who may show the pages in a frame, in the words of the policy.
    fn ancestors(&self) -> String {
        let origins: Vec<&str> = self.origins.iter().map(SiteOrigin::as_str).collect();
        if origins.is_empty() { "'none'".to_owned() } else { origins.join(" ") }
    }
}

/// The words for somebody: the link says in which language, or else the browser.
fn words_for(link: Option<&LinkOptions>, headers: &HeaderMap) -> &'static Words {
    let accepted = || headers.get(http::header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).and_then(Language::preferred);
    Words::of(link.and_then(|link| link.language).or_else(accepted).unwrap_or_default())
}

/// Where a provider sends a person back
#[document::path(get, path = "/tools/connections/callback", operation_id = "callback_tool_connection", tag = "Tools", params(CallbackQuery),
    responses((status = 200, description = "The account is connected", body = String, content_type = "text/html"), (status = 303, description = "It is over, and the link says where to go"),
        (status = 400, description = "It is not connected", body = String, content_type = "text/html")))]
pub(crate) async fn callback(State(app): State<App>, method: Method, uri: http::Uri, headers: HeaderMap) -> Response {
    come_back(&app, &method, &uri, &headers, None).await
}

/// Where the provider of one OAuth app sends a person back
///
/// Each app has an address of its own, so that what one provider sends back is never taken for the answer of another.
#[document::path(get, path = "/tools/connections/callback/{app}", operation_id = "callback_oauth_app", tag = "Tools", params(("app" = String, Path), CallbackQuery),
    responses((status = 200, description = "The account is connected", body = String, content_type = "text/html"), (status = 303, description = "It is over, and the link says where to go"),
        (status = 400, description = "It is not connected", body = String, content_type = "text/html")))]
pub(crate) async fn callback_of_app(
    State(app): State<App>,
    PathOf(tag): PathOf<String>,
    method: Method,
    uri: http::Uri,
    headers: HeaderMap,
) -> Response {
    come_back(&app, &method, &uri, &headers, Some(&tag)).await
}

/// What only looks at a link must not use it up.
fn not_a_get(method: &Method) -> Option<Response> {
    (method == Method::HEAD).then(|| (StatusCode::METHOD_NOT_ALLOWED, [(http::header::ALLOW, "GET")]).into_response())
}

async fn come_back(app: &App, method: &Method, uri: &http::Uri, headers: &HeaderMap, redirect_tag: Option<&str>) -> Response {
    if let Some(refused) = not_a_get(method) {
        return refused;
    }
    let query = CallbackQuery::read(uri);
    let refused = query.error_description.or(query.error_message).or(query.error);
    let refused =
        refused.or_else(|| query.status.filter(|status| status == "failed").map(|_| "Authorization failed. Please try again.".to_owned()));
    let unknown = || {
        let words = words_for(None, headers);
        Failure { words, setting: Setting::default(), status: StatusCode::BAD_REQUEST, text: words.not_activated.to_owned() }.page(app)
    };
    // Without a state of ours nobody knows whose words the address holds, so they are not shown.
    let Some(state) = query.state.as_deref() else { return unknown() };
    let returned = Returned {
        state,
        code: query.code.as_deref(),
        error: refused.as_deref(),
        account: query.connected_account_id.as_deref(),
        issuer: query.iss.as_deref(),
        redirect_tag,
    };
    let Ended { outcome, visitor } = app.connections.callback(returned).await;
    if let Some(next) = visitor.as_ref().and_then(|visitor| visitor.link.leads_to(visitor.connection, outcome.is_ok())) {
        return gone_on(next.as_str());
    }
    let words = words_for(visitor.as_ref().map(|visitor| &visitor.link), headers);
    match outcome {
        Ok(finished) => success(app, words, &finished, None).await,
        Err(ConnectionError::BadAttempt) => unknown(),
        Err(error) => {
            let setting = match visitor {
                Some(visitor) => Setting::of(app, visitor.project).await,
                None => Setting::default(),
            };
            failed(app, words, setting, error)
        }
    }
}

/// The browser goes where the link says. The ticket in our own address is told to nobody.
fn gone_on(next: &str) -> Response {
    let headers = [("location", next), ("cache-control", "no-store"), ("referrer-policy", "no-referrer")];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// The page where a person types a credential
#[document::path(get, path = "/connect/{ticket}", operation_id = "show_connect_page", tag = "Pages", params(("ticket" = String, Path)),
    responses((status = 200, description = "A form", body = String, content_type = "text/html"), (status = 400, description = "The link is not valid any more", body = String, content_type = "text/html")))]
pub(crate) async fn show(State(app): State<App>, PathOf(ticket): PathOf<String>, headers: HeaderMap) -> Response {
    match app.connections.hosted_form(&ticket).await {
        Ok(form) => page(&app, &headers, StatusCode::OK, &form, &BTreeMap::new(), None).await,
        Err(error) => failed(&app, words_for(None, &headers), Setting::default(), error),
    }
}

/// Whether the person hands something in.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ConnectFormQuery {
    /// Present where they do not want to connect: the link is used up.
    pub decline: Option<String>,
}

/// Take what a person typed
#[document::path(post, path = "/connect/{ticket}", operation_id = "submit_connect_page", tag = "Pages", params(("ticket" = String, Path), ConnectFormQuery),
    request_body(content = String, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "The account is connected, or the person declined", body = String, content_type = "text/html"), (status = 400, description = "The link is not valid any more", body = String, content_type = "text/html"),
        (status = 422, description = "The credential was refused; the form is shown again", body = String, content_type = "text/html")))]
pub(crate) async fn submit(State(app): State<App>, PathOf(ticket): PathOf<String>, headers: HeaderMap, request: Request) -> Response {
    let declines = query_values(request.uri(), "decline").into_iter().next().is_some();
    let body = match read_body(request, app.options.body_limit).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let values: BTreeMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let form = match app.connections.hosted_form(&ticket).await {
        Ok(form) => form,
        Err(error) => return failed(&app, words_for(None, &headers), Setting::default(), error),
    };
    let words = words_for(Some(&form.link), &headers);
    if declines {
        return match app.connections.decline_form(&ticket).await {
            Ok(()) => declined(&app, words, &form).await,
            Err(error) => failed(&app, words, Setting::of(&app, form.project).await, error),
        };
    }
    match app.connections.submit_form(&ticket, values.clone()).await {
        Ok(finished) => success(&app, words, &finished, leads_on(&form.link, form.connection, true)).await,
        Err(
            error @ (ConnectionError::Field(_)
            | ConnectionError::Refused { .. }
            | ConnectionError::Unreachable { .. }
            | ConnectionError::UpstreamServer { .. }),
        ) => page(&app, &headers, StatusCode::UNPROCESSABLE_ENTITY, &form, &values, Some(words.failure(&error))).await,
        Err(error) => failed(&app, words, Setting::of(&app, form.project).await, error),
    }
}

/// Where a page leads on to. A form is answered with a page in place of a redirect: browsers hold the whole way of a form against the policy
/// of the page that it was on.
fn leads_on(link: &LinkOptions, connection: ConnectionId, is_connected: bool) -> Option<String> {
    link.leads_to(connection, is_connected).map(String::from)
}

async fn page(
    app: &App,
    headers: &HeaderMap,
    status: StatusCode,
    form: &HostedForm,
    values: &BTreeMap<String, String>,
    error: Option<String>,
) -> Response {
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
    let (words, can_decline) = (words_for(Some(&form.link), headers), form.link.return_to.is_some());
    let setting = Setting::of(app, form.project).await;
    let (ancestors, brand) = (setting.ancestors(), setting.brand);
    framed(status, FORM_AND_LOGO, &ancestors, |nonce| ConnectPage { words, brand, name, logo, slug, fields, error, can_decline, nonce })
}

async fn success(app: &App, words: &'static Words, finished: &Finished, next: Option<String>) -> Response {
    let connection = &finished.connection;
    let message = json!({
        "type": MESSAGE, "slug": connection.slug, "integration": connection.integration, "connection_id": connection.id, "success": true,
    });
    let account = connection.account.as_ref().and_then(|account| account["label"].as_str());
    let name = &finished.integration_name;
    let note = finished.note.as_ref().map(|_| format!(" {}", words.not_checked(name))).unwrap_or_default();
    let text = format!("{}{note} {}", words.is_connected(name, account), words.close);
    let setting = Setting::of(app, connection.project).await;
    let shown = Shown { words, setting, title: words.connected, text: &text, logo: finished.logo.as_deref(), next };
    shown.page(app, StatusCode::OK, &message)
}

async fn declined(app: &App, words: &'static Words, form: &HostedForm) -> Response {
    let message = json!({"type": MESSAGE, "success": false, "connection_id": form.connection, "message": words.declined});
    let (setting, next) = (Setting::of(app, form.project).await, leads_on(&form.link, form.connection, false));
    let shown = Shown { words, setting, title: words.not_connected, text: words.declined, logo: form.logo.as_deref(), next };
    shown.page(app, StatusCode::OK, &message)
}

fn failed(app: &App, words: &'static Words, setting: Setting, error: ConnectionError) -> Response {
    let text = words.failure(&error);
    let (status, text) = match ApiError::from(error).status() {
        StatusCode::INTERNAL_SERVER_ERROR => (StatusCode::INTERNAL_SERVER_ERROR, words.internal.to_owned()),
        status if status.is_server_error() || status == StatusCode::FAILED_DEPENDENCY => (status, text),
        _ => (StatusCode::BAD_REQUEST, text),
    };
    Failure { words, setting, status, text }.page(app)
}

/// An account that was not connected.
struct Failure {
    words: &'static Words,
    setting: Setting,
    status: StatusCode,
    text: String,
}

impl Failure {
    /// It may be anybody's fault, so the project does not stand over it.
    fn page(self, app: &App) -> Response {
        let Self { words, setting, status, text } = self;
        let message = json!({"type": MESSAGE, "success": false, "message": text});
        let setting = Setting { brand: Brand::default(), ..setting };
        let shown = Shown { words, setting, title: words.not_connected, text: &text, logo: None, next: None };
        shown.page(app, status, &message)
    }
}

/// What a last page shows.
struct Shown<'a> {
    words: &'static Words,
    setting: Setting,
    title: &'a str,
    text: &'a str,
    logo: Option<&'a str>,
    next: Option<String>,
}

impl Shown<'_> {
    fn page(self, app: &App, status: StatusCode, message: &serde_json::Value) -> Response {
        let Self { words, setting, title, text, logo, next } = self;
        let heard: Vec<&str> = setting.origins.iter().map(SiteOrigin::as_str).chain(app.options.web_origin.as_deref()).collect();
        let origins = json!(heard).to_string().replace('<', "\\u003c");
        let message = message.to_string().replace('<', "\\u003c");
        let (ancestors, brand) = (setting.ancestors(), setting.brand);
        framed(status, FORM_AND_LOGO, &ancestors, |nonce| DonePage { words, brand, title, text, logo, next, message, origins, nonce })
    }
}
