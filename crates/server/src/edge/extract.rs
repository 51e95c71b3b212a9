//! Bodies, paths and queries, refused with the documented error when they do not fit.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{StatusCode, header};
use kernel::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::ApiError;
use super::read::{self, Ignored};
use crate::App;

/// The largest body that holds a document, in bytes.
const DOCUMENT_LIMIT: usize = 32 << 20;

/// A JSON body.
#[derive(Debug)]
pub struct Payload<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Payload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (body, ignored) = json_body(request, app.options.body_limit).await?;
        parse(&body, ignored.as_ref()).map(Self)
    }
}

/// A JSON body that may be absent.
#[derive(Debug)]
pub struct OptionalPayload<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<App> for OptionalPayload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (body, ignored) = json_body(request, app.options.body_limit).await?;
        if body.is_empty() { Ok(Self(T::default())) } else { parse(&body, ignored.as_ref()).map(Self) }
    }
}

/// A JSON body that may hold a whole document of somebody else's.
#[derive(Debug)]
pub struct LargePayload<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for LargePayload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (body, ignored) = json_body(request, app.options.body_limit.max(DOCUMENT_LIMIT)).await?;
        parse(&body, ignored.as_ref()).map(Self)
    }
}

/// The raw body, within the limit.
pub async fn read_body(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let too_large = || ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("The request body is larger than {limit} bytes."));
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
        ApiError::bad_request("The request body ended too early.")
    })
}

async fn json_body(request: Request, limit: usize) -> Result<(Bytes, Option<Ignored>), ApiError> {
    let kind = request.headers().get(header::CONTENT_TYPE).cloned();
    let ignored = request.extensions().get::<Ignored>().cloned();
    let body = read_body(request, limit).await?;
    let essence = kind.as_ref().map(|kind| kind.to_str().unwrap_or("?").split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match essence.as_deref() {
        None | Some("application/json") => Ok((body, ignored)),
        Some(other) if other.ends_with("+json") => Ok((body, ignored)),
        Some(_) if body.is_empty() => Ok((body, ignored)),
        Some(_) => Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send a JSON body with `Content-Type: application/json`.")),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8], ignored: Option<&Ignored>) -> Result<T, ApiError> {
    let (value, unused) = read::json(body)?;
    note(ignored, unused);
    Ok(value)
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
        let Path(value) = Path::from_request_parts(parts, app)
            .await
            .map_err(|error| ApiError::invalid("path_invalid", vec![json!("path")], error.body_text()))?;
        Ok(Self(value))
    }
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
