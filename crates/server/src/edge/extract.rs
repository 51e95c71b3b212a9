//! Bodies, paths and queries, refused with the documented error when they do not fit.

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serde_path_to_error::Segment;

use super::ApiError;
use crate::App;

/// The largest body that holds a document, in bytes.
const DOCUMENT_LIMIT: usize = 32 << 20;

/// A JSON body.
#[derive(Debug)]
pub struct Payload<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Payload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let body = json_body(request, app.options.body_limit).await?;
        parse(&body).map(Self)
    }
}

/// A JSON body that may be absent.
#[derive(Debug)]
pub struct OptionalPayload<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<App> for OptionalPayload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let body = json_body(request, app.options.body_limit).await?;
        if body.is_empty() { Ok(Self(T::default())) } else { parse(&body).map(Self) }
    }
}

/// A JSON body that may hold a whole document of somebody else's.
#[derive(Debug)]
pub struct LargePayload<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for LargePayload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let body = json_body(request, app.options.body_limit.max(DOCUMENT_LIMIT)).await?;
        parse(&body).map(Self)
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

async fn json_body(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let kind = request.headers().get(header::CONTENT_TYPE).cloned();
    let body = read_body(request, limit).await?;
    let essence = kind.as_ref().map(|kind| kind.to_str().unwrap_or("?").split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match essence.as_deref() {
        None | Some("application/json") => Ok(body),
        Some(other) if other.ends_with("+json") => Ok(body),
        Some(_) if body.is_empty() => Ok(body),
        Some(_) => Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send a JSON body with `Content-Type: application/json`.")),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = place("body", error.path());
        let cause = error.into_inner();
        if cause.is_data() {
            ApiError::invalid("value_error", place, strip_position(&cause.to_string()))
        } else {
            ApiError::invalid("json_invalid", vec![json!("body"), json!(cause.column())], format!("JSON decode error: {cause}"))
        }
    })?;
    reader.end().map_err(|error| {
        ApiError::invalid("json_invalid", vec![json!("body"), json!(error.column())], format!("JSON decode error: {error}"))
    })?;
    Ok(value)
}

fn place(root: &str, path: &serde_path_to_error::Path) -> Vec<Value> {
    let inner = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(json!(index)),
        Segment::Map { key } => Some(json!(key)),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    std::iter::once(json!(root)).chain(inner).collect()
}

fn strip_position(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
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

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Query(value) = Query::from_request_parts(parts, app)
            .await
            .map_err(|error| ApiError::invalid("query_invalid", vec![json!("query")], error.body_text()))?;
        Ok(Self(value))
    }
}

/// Every value of a query parameter that may be repeated.
pub fn query_values(uri: &http::Uri, name: &str) -> Vec<String> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.filter(|(key, _)| key == name).map(|(_, value)| value.into_owned()).collect()
}
