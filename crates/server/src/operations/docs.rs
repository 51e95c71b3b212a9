//! The OpenAPI document and a page to read it.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use crate::edge::page::html;

/// The document, made from the code and agreed on; a test holds it against what the code says.
pub const OPENAPI: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

#[derive(Template)]
#[template(path = "docs.html")]
struct Docs {
    nonce: String,
}

/// The OpenAPI document
#[document::path(get, path = "/openapi.json", operation_id = "openapi", tag = "Operations",
    responses((status = 200, description = "This document", body = Object)))]
pub(crate) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// A page to read the document
#[document::path(get, path = "/docs", operation_id = "docs", tag = "Operations",
    responses((status = 200, description = "A page that needs no network", body = String, content_type = "text/html")))]
pub(crate) async fn page() -> Response {
    html(StatusCode::OK, "connect-src 'self'; form-action 'none'", |nonce| Docs { nonce })
}
