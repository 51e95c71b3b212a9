//! Composio's API: keys to scopes, queries and bodies to what `composio_api` takes, and every failure in Composio's envelope.
//!
//! A handler is documented with a path under `/v3.1`, which also answers at `/v3` and under `/api`, and with
//! `tag = "Composio's API", security(("key" = ["..."]), ("composio_key" = []))`. It takes `ByKey(scope, _): ByKey<ViewTools>` (the key is read from
//! `x-api-key`), the usual `PathOf` and `Payload`, `Asked` for queries, and returns `ApiAnswer<Json<T>>`: `?` takes the crate's errors, refusals and those
//! of the edge. `Envelope` writes them all, also those that no handler made. Queries are structs of `Option<String>`: `Window::read` and
//! `commas` read what is in them.

pub mod absent;
pub mod auth_configs;
pub mod connected_accounts;
mod query;
pub mod sessions;
pub mod toolkits;
pub mod tools;
pub mod triggers;
pub mod webhooks;

use std::marker::PhantomData;

use axum::extract::{FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use composio_api::{ApiError as FacadeError, Refusal};
use document::ToSchema;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use kernel::Scope;
use serde::Serialize;

use crate::App;
use crate::edge::auth::Requires;
use crate::edge::error::Said;
use crate::edge::{ApiError, Code, Json, Scoped};

pub(crate) use self::query::Asked;

/// Where Composio's SDKs send their key.
pub(crate) const API_KEY: &str = "x-api-key";
/// Where the routes are.
pub(crate) const PREFIX: &str = "/v3.1";

/// What a handler answers.
pub(crate) type ApiAnswer<T> = Result<T, Failure>;

/// A scope that holds at least the permission `P`, from a key as Composio's SDKs send it.
#[derive(Debug)]
pub struct ByKey<P>(pub Scope, pub(crate) PhantomData<P>);

impl<P: Requires> FromRequestParts<App> for ByKey<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        take_key(parts);
        let Scoped(scope, _) = Scoped::<P>::from_request_parts(parts, app).await?;
        Ok(Self(scope, PhantomData))
    }
}

/// Makes the key of `x-api-key` the credential of the request.
pub(crate) fn take_key(parts: &mut Parts) {
    if let Some(key) = parts.headers.get(API_KEY)
        && let Ok(value) = HeaderValue::from_bytes(&[b"ApiKey ", key.as_bytes()].concat())
    {
        parts.headers.insert(AUTHORIZATION, value);
    }
}

/// A failure of a handler.
#[derive(Debug)]
pub enum Failure {
    Refused(Box<Refusal>),
    Edge(ApiError),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Edge(error)
    }
}

impl From<FacadeError> for Failure {
    fn from(error: FacadeError) -> Self {
        use FacadeError as E;
        Self::Edge(match error {
            E::Refused(refusal) => return Self::Refused(refusal),
            E::Catalog(error) => error.into(),
            E::Connection(error) => error.into(),
            E::Call(error) => error.into(),
            E::Definition(error) => error.into(),
            E::Discovery(error) => error.into(),
            E::Trigger(error) => error.into(),
            E::EndUser(error) => error.into(),
            E::UserSession(error) => error.into(),
            E::Sealed(error) => ApiError::internal(&error),
            E::Work(error) => error.into(),
            E::Store(error) => error.into(),
        })
    }
}

impl IntoResponse for Failure {
    /// The body is written by `Envelope`, which knows the id of the request.
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refusal) => {
                let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                (status, axum::Extension(refusal)).into_response()
            }
            Self::Edge(error) => error.into_response(),
        }
    }
}

/// A failure, as Composio's SDKs read it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ComposioError {
    pub error: ComposioErrorBody,
}

/// What failed. Members that say nothing are left out: a null would spoil the whole for the SDKs.
#[derive(Debug, Serialize, ToSchema)]
pub struct ComposioErrorBody {
    pub message: String,
    pub code: u32,
    pub slug: String,
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_fix: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// Writes every failure under Composio's paths as its SDKs expect it, whoever made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    runs_a_tool: bool,
}

impl Envelope {
    /// What is around a request, if it is one to Composio's API.
    pub(crate) fn around(request: &Request) -> Option<Self> {
        let path = request.uri().path();
        is_here(path).then(|| Self { runs_a_tool: path.contains("/execute") })
    }

    pub(crate) fn write(self, mut response: Response) -> Response {
        let status = response.status();
        if !status.is_client_error() && !status.is_server_error() {
            return response;
        }
        let refusal = match response.extensions_mut().remove::<Box<Refusal>>() {
            Some(refusal) => *refusal,
            None => said(response.extensions_mut().remove::<Said>(), status),
        };
        let status = StatusCode::from_u16(refusal.status).unwrap_or(status);
        let request_id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let Refusal { code, slug, message, suggested_fix, errors, .. } = refusal;
        let slug = slug.into_owned();
        let error = ComposioErrorBody { message, code, slug, status: status.as_u16(), request_id, suggested_fix, errors };
        let mut written = (status, Json(ComposioError { error })).into_response();
        for (name, value) in response.headers() {
            if name != CONTENT_TYPE && name != CONTENT_LENGTH {
                written.headers_mut().append(name, value.clone());
            }
        }
        if self.runs_a_tool {
            // A tool may have done its work although the answer is an error.
            written.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
        }
        written
    }
}

fn is_here(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What the edge says, in Composio's form. A request of the wrong shape is a 400 there.
fn said(said: Option<Said>, status: StatusCode) -> Refusal {
    let Some(Said { code, message }) = said else {
        let reason = status.canonical_reason().unwrap_or("Failed");
        return Refusal::of_status(status.as_u16(), format!("HTTP_{}", reason.replace(' ', "")), reason);
    };
    let is_shape = matches!(code, Code::JsonInvalid | Code::QueryInvalid | Code::PathInvalid | Code::BodyInvalid);
    let status = if is_shape { 400 } else { status.as_u16() };
    Refusal::of_status(status, code.name(), message)
}
