//! Failures in the words of OpenAI's API.

use agent_runs::RunError;
use axum::response::{IntoResponse, Response};
use document::ToSchema;
use http::StatusCode;
use serde::Serialize;

use crate::edge::{ApiError, Json};

/// A failure in the words of this surface.
#[derive(Debug)]
pub(crate) struct ModelApiError {
    status: StatusCode,
    kind: &'static str,
    code: String,
    message: String,
}

impl ModelApiError {
    pub(super) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let kind = match status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        Self { status, kind, code: code.to_owned(), message: message.into() }
    }

    pub(super) fn bad_request(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// How a run failed. Clients ask again by themselves after 409 and above 500, which would begin another run.
    pub(super) fn of_run(code: i64, message: impl Into<String>) -> Self {
        let status = match code {
            400 | 403 | 404 | 422 | 429 => u16::try_from(code).ok().and_then(|code| StatusCode::from_u16(code).ok()),
            406 => Some(StatusCode::NOT_FOUND),
            _ => None,
        };
        let code = if code == 406 { "model_not_found".to_owned() } else { code.to_string() };
        Self { kind: "agent_error", ..Self::new(status.unwrap_or(StatusCode::FAILED_DEPENDENCY), &code, message) }
    }
}

impl From<ApiError> for ModelApiError {
    fn from(error: ApiError) -> Self {
        Self::new(error.status(), error.code().name(), error.message())
    }
}

impl From<RunError> for ModelApiError {
    fn from(error: RunError) -> Self {
        ApiError::from(error).into()
    }
}

impl IntoResponse for ModelApiError {
    fn into_response(self) -> Response {
        let error = ModelError { message: self.message, kind: self.kind, param: None, code: self.code };
        (self.status, Json(ModelFailure { error })).into_response()
    }
}

/// Why a request failed, as OpenAI's API says it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelFailure {
    pub error: ModelError,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelError {
    pub message: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Always nothing: the message names the place.
    pub param: Option<String>,
    pub code: String,
}
