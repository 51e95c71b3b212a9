//! What goes wrong, in Composio's error envelope.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value, json};

/// An answer that is an error. The edge writes its body, because only the edge knows the id of the request.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: u32,
    slug: Cow<'static, str>,
    message: String,
    fix: &'static str,
    errors: Vec<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: u32, slug: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { status, code, slug: slug.into(), message: message.into(), fix: "", errors: vec![] }
    }

    /// A request of the wrong shape.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, 10400, "HTTP_BadRequest", message)
    }

    pub(crate) fn not_found(slug: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, 10404, slug, message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, 10401, "HTTP_Unauthorized", "The API key is missing or not valid")
            .fix("Send a project's API key as x-api-key")
    }

    /// A failure of the service itself, as a fault asks for.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        let said = status.canonical_reason().unwrap_or("Failed");
        let slug = format!("HTTP_{}", said.replace(' ', ""));
        Self::new(status, 10000 + u32::from(status.as_u16()), slug, format!("{said}, as the fault asks for"))
    }

    pub(crate) fn fix(mut self, fix: &'static str) -> Self {
        self.fix = fix;
        self
    }

    pub(crate) fn errors(mut self, errors: Vec<String>) -> Self {
        self.errors = errors;
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The envelope. Slugs came with v3.1.
    pub(crate) fn envelope(&self, request_id: &str, with_slug: bool) -> Value {
        let mut error = json!({
            "message": self.message,
            "code": self.code,
            "status": self.status.as_u16(),
            "request_id": request_id,
            "suggested_fix": self.fix,
        });
        if with_slug {
            error["slug"] = json!(self.slug);
        }
        if !self.errors.is_empty() {
            error["errors"] = json!(self.errors);
        }
        json!({"error": error})
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
