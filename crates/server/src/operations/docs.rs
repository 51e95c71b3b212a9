//! The OpenAPI document and a page to read it.

use askama::Template;
use axum::response::Response;
use http::StatusCode;

use crate::edge::Json;
use crate::edge::page::html;

#[derive(Template)]
#[template(path = "docs.html")]
struct Docs {
    nonce: String,
}

/// The OpenAPI document
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", tag = "Operations",
    responses((status = 200, description = "This document", body = Object)))]
pub(crate) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(crate::openapi())
}

/// A page to read the document
#[utoipa::path(get, path = "/docs", operation_id = "docs", tag = "Operations",
    responses((status = 200, description = "A page that needs no network", body = String, content_type = "text/html")))]
pub(crate) async fn page() -> Response {
    html(StatusCode::OK, "connect-src 'self'; form-action 'none'", |nonce| Docs { nonce })
}
