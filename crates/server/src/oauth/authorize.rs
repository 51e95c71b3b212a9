//! `/oauth/authorize`: where a client sends a person, and from where it gets a code back.

use ::grants::{Challenge, Client, Refusal, Surface, read_scope};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use document::{IntoParams, ToSchema};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use kernel::PermissionSet;
use people::SignedIn;

use super::consent::{self, Asked, Way};
use super::form::Fields;
use super::{OauthError, OauthResult, private, surface_of};
use crate::App;
use crate::edge::ApiError;
use crate::edge::extract::read_body;
use crate::edge::session::{self, is_own_form};
use crate::pages::sign_in::{see_other, sign_in_first};

/// The longest request; browsers and proxies take no longer addresses either.
const LONGEST: usize = 8 << 10;
const FORM_LIMIT: usize = 32 << 10;
const STALE: &str = "This page was open for too long, or it was not opened here. Go back to the client and begin again.";

/// What a client asks for. All but `scope`, `state` and `resource` must be there; where something is missing, a person sees why.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuthorizeQuery {
    /// A registered client's id, or the `https` address of a document about the client.
    pub client_id: Option<String>,
    /// One of the client's own addresses, letter by letter; the port of this very machine is free.
    pub redirect_uri: Option<String>,
    /// `code`.
    pub response_type: Option<String>,
    /// The SHA-256 of the verifier, in base64url.
    pub code_challenge: Option<String>,
    /// `S256`.
    pub code_challenge_method: Option<String>,
    /// Permissions, with spaces between; what the surface needs where it is left out.
    pub scope: Option<String>,
    pub state: Option<String>,
    /// The surface that the token shall open; the API as a whole where it is left out.
    pub resource: Option<String>,
}

/// What a person decides.
#[derive(Debug, ToSchema)]
pub struct ConsentForm {
    /// The request of the client, as it came.
    pub request: String,
    pub csrf: String,
    /// `allow`, `deny`, or `project` to see another project.
    pub decision: String,
    pub project: Option<String>,
    /// The same for every permission that is ticked.
    pub allow_run_tools: Option<String>,
}

/// A request of a client that can be trusted to have come from where the answer goes.
struct Asking {
    client: Client,
    redirect_uri: String,
    state: Option<String>,
}

/// What such a client asks for.
struct Wish {
    challenge: Challenge,
    surface: Surface,
    permissions: PermissionSet,
}

fn wrong(why: impl Into<String>) -> OauthError {
    OauthError::new(Refusal::InvalidRequest, why)
}

impl Asking {
    /// Finds out who asks. Until that is known, nobody is sent anywhere.
    async fn read(app: &App, fields: &Fields) -> OauthResult<Self> {
        let client = app.grants.client(fields.need("client_id")?).await?;
        let redirect_uri = fields.need("redirect_uri")?;
        if !client.may_return_to(redirect_uri) {
            return Err(wrong(format!("`{}` did not name this address to return to. Nobody was sent there.", client.name)));
        }
        Ok(Self { client, redirect_uri: redirect_uri.to_owned(), state: fields.get("state").map(str::to_owned) })
    }

    /// Sends the person back with an answer, which says who gives it.
    fn answer(&self, app: &App, pairs: &[(&str, &str)]) -> Response {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(pairs);
        if let Some(state) = &self.state {
            query.append_pair("state", state);
        }
        query.append_pair("iss", app.options.public_url());
        let glue = if self.redirect_uri.contains('?') { '&' } else { '?' };
        let mut response = private(see_other(&format!("{}{glue}{}", self.redirect_uri, query.finish())));
        response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        response
    }

    /// Tells the client why not; what is our own failure stays here.
    fn refuse(&self, app: &App, error: OauthError) -> Response {
        match error {
            OauthError::Refused(refusal, text) => self.answer(app, &[("error", refusal.name()), ("error_description", &ascii(&text))]),
            other @ OauthError::Other(_) => consent::refused(other),
        }
    }
}

/// RFC 6749 takes few characters in a description.
fn ascii(text: &str) -> String {
    text.chars().filter(|letter| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\')).collect()
}

impl Wish {
    fn read(app: &App, fields: &Fields) -> OauthResult<Self> {
        if fields.need("response_type")? != "code" {
            return Err(OauthError::new(Refusal::UnsupportedResponseType, "`response_type` must be `code`."));
        }
        if fields.get("response_mode").is_some_and(|mode| mode != "query") {
            return Err(wrong("`response_mode` must be `query`."));
        }
        let challenge = Challenge::read(fields.get("code_challenge"), fields.get("code_challenge_method"))?;
        let surface = surface_of(app, fields.get("resource"))?.unwrap_or(Surface::Api);
        let permissions = read_scope(fields.get("scope"))?.unwrap_or_else(|| consent::usual(&surface));
        Ok(Self { challenge, surface, permissions })
    }
}

/// Ask a person to let a client in
///
/// A page for people. Whoever is not signed in signs in first. The answer goes to `redirect_uri` with `code`, `state` and `iss`, or with `error`;
/// where that address cannot be trusted, the error is a page.
#[document::path(get, path = "/oauth/authorize", operation_id = "show_consent", tag = "OAuth", params(AuthorizeQuery),
    responses((status = 200, description = "The page that asks", body = String, content_type = "text/html"), (status = 303, description = "To sign in, or back to the client with an error"),
        (status = 400, description = "The client or the address to return to is not known", body = String, content_type = "text/html")))]
pub(crate) async fn show(State(app): State<App>, headers: HeaderMap, uri: http::Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    match session::signed_in(&app, &headers).await {
        Err(error) => error.into_response(),
        Ok(None) => sign_in_first(&format!("/oauth/authorize?{query}")),
        Ok(Some(signed_in)) => ask(&app, &signed_in, query, &Fields::default()).await.unwrap_or_else(consent::refused),
    }
}

/// Take what a person decided about a client
#[document::path(post, path = "/oauth/authorize", operation_id = "decide_consent", tag = "OAuth",
    request_body(content = ConsentForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 303, description = "Back to the client, with a code or an error"), (status = 200, description = "The page for another project", body = String, content_type = "text/html"),
        (status = 400, description = "The form is none of ours, or the client is not known", body = String, content_type = "text/html"),
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
    let query = form.need("request")?.to_owned();
    let Some(signed_in) = session::signed_in(app, headers).await? else {
        return Ok(sign_in_first(&format!("/oauth/authorize?{query}")));
    };
    if !is_own_form(app, headers, &signed_in, form.get("csrf")) {
        return Ok(consent::told(StatusCode::BAD_REQUEST, "Nobody was let in", STALE));
    }
    ask(app, &signed_in, &query, &form).await
}

/// Shows the page, or does what the form of it says. Everything is read anew: what the browser kept is not believed.
async fn ask(app: &App, signed_in: &SignedIn, query: &str, form: &Fields) -> OauthResult<Response> {
    if query.len() > LONGEST {
        return Err(wrong(format!("The request is longer than {LONGEST} characters.")));
    }
    let fields = Fields::read(query.as_bytes())?;
    let asking = Asking::read(app, &fields).await?;
    Ok(match answer(app, signed_in, &asking, &fields, query, form).await {
        Ok(response) => response,
        Err(error) => asking.refuse(app, error),
    })
}

async fn answer(app: &App, signed_in: &SignedIn, asking: &Asking, fields: &Fields, query: &str, form: &Fields) -> OauthResult<Response> {
    let wish = Wish::read(app, fields)?;
    if form.get("decision") == Some("deny") {
        return Err(OauthError::new(Refusal::AccessDenied, "The person said no."));
    }
    let places = consent::places(app, signed_in, &wish.surface).await?;
    let asked = Asked {
        client_name: &asking.client.name,
        vouched_by: asking.client.vouched_by(),
        surface: &wish.surface,
        permissions: wish.permissions,
        way: Way::Back { redirect_uri: &asking.redirect_uri, request: query },
    };
    let place = consent::chosen(&places, form);
    let place = place.ok_or_else(|| OauthError::Other(ApiError::new(crate::edge::Code::ProjectNotFound, "Project not found")))?;
    if form.get("decision") != Some("allow") {
        return Ok(consent::page(app, signed_in, &asked, &places, place, None));
    }
    match consent::approval(&asked, place, signed_in, form)? {
        Some(approval) => {
            let code = app.grants.approve(&asking.client, &asking.redirect_uri, &wish.challenge, &approval).await?;
            Ok(asking.answer(app, &[("code", code.expose())]))
        }
        None => Ok(consent::page(app, signed_in, &asked, &places, place, Some("Tick at least one permission, or say no."))),
    }
}
