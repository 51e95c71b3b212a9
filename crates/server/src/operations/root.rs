//! `/`: where to go from here.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use document::ToSchema;
use http::{HeaderMap, header};
use serde::Serialize;

use crate::App;
use crate::edge::Json;
use crate::pages::sign_in::{HOME, see_other};

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

/// Where to go from here
///
/// Browsers go to the dashboard, everybody else gets JSON.
#[document::path(get, path = "/", operation_id = "root", tag = "Operations", responses((status = 200, body = Root), (status = 303, description = "To the dashboard")))]
pub(crate) async fn root(State(app): State<App>, headers: HeaderMap) -> Response {
    let url = app.options.public_url();
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        return see_other(HOME);
    }
    let at = |path: &str| format!("{url}{path}");
    let root =
        Root { name: "toolyard", version: VERSION, docs: at("/docs"), openapi: at("/openapi.json"), ready: at("/ready"), mcp: at("/mcp") };
    Json(root).into_response()
}
