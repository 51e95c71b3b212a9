//! Bodies, paths and queries, refused with the documented error when they do not fit.

use axum::extract::path::ErrorKind as PathErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header;
use http::request::Parts;
use kernel::json::weigh;
use kernel::{Budget, Limits, ProjectId, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;

use super::read::{self, Ignored};
use super::{ApiError, Code};
use crate::App;

/// The largest body that holds a document, in bytes.
const DOCUMENT_LIMIT: usize = 32 << 20;

/// As much of a wrong id as is said back.
const MAX_SHOWN: usize = 60;

/// A JSON body.
#[derive(Debug)]
pub struct Payload<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for Payload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        json_body(request, app.options.body_limit).await?.parse(app).await.map(Self)
    }
}

/// A JSON body that may be absent.
#[derive(Debug)]
pub struct OptionalPayload<T>(pub T);

impl<T: DeserializeOwned + Default + Send + 'static> FromRequest<App> for OptionalPayload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let body = json_body(request, app.options.body_limit).await?;
        if body.text.is_empty() { Ok(Self(T::default())) } else { body.parse(app).await.map(Self) }
    }
}

/// A JSON body that may hold a whole document of somebody else's.
#[derive(Debug)]
pub struct LargePayload<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for LargePayload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        json_body(request, app.options.body_limit.max(DOCUMENT_LIMIT)).await?.parse(app).await.map(Self)
    }
}

/// How long the body is, as far as the request says so.
pub(super) fn content_length(request: &Request) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The raw body, within the limit.
pub async fn read_body(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let declared = content_length(&request);
    let too_large = || ApiError::new(Code::BodyTooLarge, format!("The request body is larger than {limit} bytes."));
    if declared.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    axum::body::to_bytes(request.into_body(), limit).await.map_err(|error| {
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(inner) = cause {
            if inner.to_string().contains("length limit") {
                return too_large();
            }
            cause = inner.source();
        }
        ApiError::new(Code::BodyIncomplete, "The request body ended too early.")
    })
}

/// A JSON body that was not read yet, and on whose account it will be.
struct Body {
    text: Bytes,
    project: ProjectId,
    ignored: Option<Ignored>,
}

fn json_body(request: Request, limit: usize) -> BoxFuture<'static, Result<Body, ApiError>> {
    Box::pin(unread_body(request, limit))
}

async fn unread_body(request: Request, limit: usize) -> Result<Body, ApiError> {
    let kind = request.headers().get(header::CONTENT_TYPE).cloned();
    let ignored = request.extensions().get::<Ignored>().cloned();
    // Where no key is asked for, all share the account of nobody.
    let project = request.extensions().get::<ProjectId>().copied().unwrap_or_else(|| Uuid::nil().into());
    let text = read_body(request, limit).await?;
    let essence = kind.as_ref().map(|kind| kind.to_str().unwrap_or("?").split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match essence.as_deref() {
        Some(other) if other != "application/json" && !other.ends_with("+json") && !text.is_empty() => {
            Err(ApiError::new(Code::BodyNotJson, "Send a JSON body with `Content-Type: application/json`."))
        }
        _ => Ok(Body { text, project, ignored }),
    }
}

impl Body {
    async fn parse<T: DeserializeOwned + Send + 'static>(self, app: &App) -> Result<T, ApiError> {
        let Self { text, project, ignored } = self;
        let limits = if text.len() > app.options.body_limit { Limits::DOCUMENT } else { Limits::USUAL };
        let size = text.len();
        let read = move |budget: &Budget| {
            budget.hold(weigh(&text))?;
            read::json::<T>(&text)
        };
        let (value, unused) = app.workers.within(limits, project, size, read).await?;
        note(ignored.as_ref(), unused);
        Ok(value)
    }
}

/// Requests of our own, such as those of platform ops, have nobody to warn.
fn note(ignored: Option<&Ignored>, unused: Vec<String>) {
    if let Some(ignored) = ignored {
        ignored.add(unused);
    }
}

/// Values from the path.
#[derive(Debug)]
pub struct PathOf<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for PathOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Path(value) = Path::from_request_parts(parts, app).await.map_err(|error| bad_path(&error))?;
        Ok(Self(value))
    }
}

/// A part of the path that does not fit, in our words: a parser's say nothing to whoever typed it.
fn bad_path(error: &PathRejection) -> ApiError {
    let PathRejection::FailedToDeserializePathParams(failed) = error else {
        return ApiError::invalid("path_invalid", vec![json!("path")], "The path cannot be read.");
    };
    let (name, wrong) = match failed.kind() {
        PathErrorKind::ParseErrorAtKey { key, value, .. } | PathErrorKind::DeserializeError { key, value, .. } => (Some(key), Some(value)),
        PathErrorKind::ParseErrorAtIndex { value, .. } | PathErrorKind::ParseError { value, .. } => (None, Some(value)),
        PathErrorKind::InvalidUtf8InPathParam { key } => (Some(key), None),
        _ => (None, None),
    };
    let place = std::iter::once(json!("path")).chain(name.map(|name| json!(name))).collect();
    let wrong = wrong.map(|wrong| wrong.chars().filter(|c| !c.is_control()).take(MAX_SHOWN).collect::<String>());
    let message = match wrong {
        Some(wrong) => format!("`{wrong}` is no id: one looks like `01981b6e-4f0a-7c3e-9d7a-2f6b1c0d4e5f`."),
        None => "A part of the path cannot be read.".to_owned(),
    };
    ApiError::invalid("path_invalid", place, message)
}

/// Values from the query string.
#[derive(Debug)]
pub struct QueryOf<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for QueryOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let (value, unused) = read::query(parts.uri.query().unwrap_or_default())?;
        note(parts.extensions.get(), unused);
        Ok(Self(value))
    }
}

/// A time that a request names, as people say it.
pub fn moment(app: &App, name: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let read = |text| Timestamp::read(text, app.clock.now()).map_err(|error| ApiError::unprocessable(format!("`{name}`: {error}.")));
    text.map(read).transpose()
}

/// A list that has no filters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoFilters {}

/// Every value of a query parameter that may be repeated.
pub fn query_values(uri: &http::Uri, name: &str) -> Vec<String> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.filter(|(key, _)| key == name).map(|(_, value)| value.into_owned()).collect()
}
