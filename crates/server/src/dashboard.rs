//! `/app`: the pages of `dashboard`. Whoever is signed in becomes a visit, whose requests go to our own routes with the same session.

mod multipart;

use std::pin::Pin;
use std::sync::Arc;

use ::dashboard::{Answer, Api, Form, Project, Visit, project_of};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, IF_MATCH};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use kernel::{Permission, ProjectId};
use people::{SignedIn, Via};
use tower::ServiceExt;

use crate::App;
use crate::edge::extract::read_body;
use crate::edge::session::{CSRF, PROJECT, csrf_token, is_own_form, signed_in};
use crate::edge::{ApiError, Code};
use crate::pages::sign_in::{HOME, STALE, sign_in_first};

/// The largest form: arguments and documents are typed into some.
const FORM_LIMIT: usize = 4 << 20;
/// The largest answer that a page is made of.
const MAX_ANSWER: usize = 32 << 20;
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

#[derive(Clone)]
struct Host {
    app: App,
    inside: Router,
}

/// The pages, over our own routes without their layers.
pub(crate) fn routes(app: &App, inside: Router) -> Router<App> {
    let host = Host { app: app.clone(), inside };
    ::dashboard::page_routes().layer(middleware::from_fn_with_state(host, receive)).merge(::dashboard::asset_routes())
}

async fn receive(State(host): State<Host>, request: Request, next: Next) -> Response {
    match visit(&host, request).await {
        Ok(Ok(request)) => next.run(request).await,
        Ok(Err(elsewhere)) => elsewhere,
        Err(error) => error.into_response(),
    }
}

/// The request with its visit and its form, or where its sender has to go first.
async fn visit(host: &Host, request: Request) -> Result<Result<Request, Response>, ApiError> {
    let app = &host.app;
    let is_form = !matches!(*request.method(), Method::GET | Method::HEAD);
    let Some(signed_in) = signed_in(app, request.headers()).await? else {
        let here = request.uri().path_and_query().map_or(HOME, |path| path.as_str());
        return Ok(Err(sign_in_first(if is_form { HOME } else { here })));
    };
    let mut request = if is_form { with_form(app, &signed_in, request).await? } else { request };
    let (path, cookie) = (request.uri().path().to_owned(), request.headers().get(COOKIE).cloned());
    let visit = visit_of(host, signed_in, &path, cookie).await?;
    request.extensions_mut().insert(visit);
    Ok(Ok(request))
}

async fn with_form(app: &App, signed_in: &SignedIn, request: Request) -> Result<Request, ApiError> {
    let (parts, body) = request.into_parts();
    let text = read_body(Request::new(body), FORM_LIMIT).await?;
    let fields = match multipart::boundary(&parts.headers) {
        Some(boundary) => multipart::fields(&text, &boundary).unwrap_or_default(),
        None => url::form_urlencoded::parse(&text).into_owned().collect(),
    };
    let token = fields.iter().find(|(name, _)| name == "csrf").map(|(_, token)| token.as_str());
    if !is_own_form(app, &parts.headers, signed_in, token) {
        return Err(ApiError::new(Code::CsrfInvalid, STALE));
    }
    let mut request = Request::from_parts(parts, Body::empty());
    request.extensions_mut().insert(Form(fields));
    Ok(request)
}

async fn visit_of(host: &Host, signed_in: SignedIn, path: &str, cookie: Option<HeaderValue>) -> Result<Visit, ApiError> {
    let app = &host.app;
    let memberships = app.people.projects(&signed_in).await?;
    let named = project_of(path);
    let current = memberships.iter().find(|membership| Some(membership.project_slug.as_str()) == named);
    let scope = match current {
        Some(membership) => app.people.scope(&signed_in, membership.project).await?,
        None => None,
    };
    let permissions = Permission::ALL.into_iter().filter(|permission| scope.is_some_and(|scope| scope.may(*permission)));
    let project_id = current.map(|membership| membership.project);
    let csrf = csrf_token(app, &signed_in);
    let projects: Vec<Project> = memberships
        .into_iter()
        .map(|membership| Project { slug: membership.project_slug, name: membership.project_name, role: membership.role.name().to_owned() })
        .collect();
    Ok(Visit {
        api: Arc::new(OwnApi { inside: host.inside.clone(), cookie, project: project_id, csrf: csrf.clone() }),
        via: match signed_in.via {
            Via::Person => ::dashboard::Via::Person,
            Via::Key(_) => ::dashboard::Via::Key,
            Via::Operator => ::dashboard::Via::Operator,
        },
        name: signed_in.name,
        project: projects.iter().find(|project| Some(project.slug.as_str()) == named).cloned(),
        projects,
        permissions: permissions.map(Permission::name).collect(),
        acts_as: scope.map(|scope| scope.key.to_string()),
        csrf,
        public_url: app.options.public_url().to_owned(),
    })
}

/// Our own routes, asked with the session of the page's reader, as a script of the page would.
#[derive(Debug)]
struct OwnApi {
    inside: Router,
    cookie: Option<HeaderValue>,
    project: Option<ProjectId>,
    csrf: String,
}

impl OwnApi {
    fn request(&self, asked: ::dashboard::Request) -> Result<Request, http::Error> {
        let mut builder =
            Request::builder().method(asked.method).uri(asked.path).header(FETCH_SITE, "same-origin").header(CSRF, &self.csrf);
        if let Some(cookie) = &self.cookie {
            builder = builder.header(COOKIE, cookie);
        }
        if let Some(project) = self.project {
            builder = builder.header(PROJECT, project.to_string());
        }
        if let Some(version) = asked.if_match {
            builder = builder.header(IF_MATCH, version);
        }
        match asked.body {
            Some(body) => builder.header(CONTENT_TYPE, "application/json").body(Body::from(body.to_string())),
            None => builder.body(Body::empty()),
        }
    }

    async fn answer(&self, asked: ::dashboard::Request) -> Answer {
        let Ok(request) = self.request(asked) else { return refused(StatusCode::BAD_REQUEST, "This is no address.") };
        let Ok(response) = self.inside.clone().oneshot(request).await;
        let status = response.status();
        match axum::body::to_bytes(response.into_body(), MAX_ANSWER).await {
            Ok(body) => Answer { status, body },
            Err(_) => refused(StatusCode::BAD_GATEWAY, "There is more than a page can hold. Ask for less."),
        }
    }
}

fn refused(status: StatusCode, detail: &str) -> Answer {
    Answer { status, body: Bytes::from(serde_json::json!({ "detail": detail }).to_string()) }
}

impl Api for OwnApi {
    fn send(&self, request: ::dashboard::Request) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(self.answer(request))
    }
}
