//! `/`: where to go from here.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::edge::Json;
use crate::edge::page::html;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What this is and where its parts are.
#[derive(Debug, Serialize, ToSchema)]
pub struct Root {
    #[schema(example = "toolyard")]
    pub name: &'static str,
    pub version: &'static str,
    /// A page to read the API.
    pub docs: String,
    pub openapi: String,
    pub ready: String,
    pub mcp: String,
}

#[derive(Template)]
#[template(path = "root.html")]
struct Page<'a> {
    version: &'a str,
    url: &'a str,
    nonce: String,
}

/// Where to go from here
///
/// A page for browsers, JSON for everybody else.
#[utoipa::path(get, path = "/", operation_id = "root", tag = "Operations", responses((status = 200, body = Root)))]
pub(crate) async fn root(State(app): State<App>, headers: HeaderMap) -> Response {
    let url = app.options.public_url();
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        return html(StatusCode::OK, "form-action 'none'", |nonce| Page { version: VERSION, url, nonce });
    }
    let at = |path: &str| format!("{url}{path}");
    let root =
        Root { name: "toolyard", version: VERSION, docs: at("/docs"), openapi: at("/openapi.json"), ready: at("/ready"), mcp: at("/mcp") };
    Json(root).into_response()
}
