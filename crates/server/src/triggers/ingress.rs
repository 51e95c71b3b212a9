//! Where providers send events: public addresses, proven by signature.

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use triggers::{Answer, Received};

use crate::App;
use crate::edge::extract::read_body;
use crate::edge::{ApiError, ApiResult, PathOf};

fn said(status: StatusCode, word: &str, detail: Option<&str>) -> Response {
    (status, Json(json!({"status": word, "detail": detail}))).into_response()
}

fn answer(received: Received) -> Response {
    match received {
        Received::Accepted(detail) => said(StatusCode::ACCEPTED, "accepted", detail),
        Received::Answer(Answer::Text(text)) => text.into_response(),
        Received::Answer(Answer::Json(value)) => Json(value).into_response(),
        Received::Answer(Answer::Header { name, value }) => {
            let mut response = StatusCode::OK.into_response();
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value)) {
                response.headers_mut().insert(name, value);
            }
            response
        }
        Received::Refused => said(StatusCode::UNAUTHORIZED, "error", Some("Signature verification failed")),
        Received::Unknown => ApiError::not_found("There is no such address.").into_response(),
        Received::NotJson => said(StatusCode::BAD_REQUEST, "error", Some("The body is not JSON")),
        Received::Throttled => {
            said(StatusCode::TOO_MANY_REQUESTS, "error", Some("Too many requests were refused here. Try again in a minute."))
        }
    }
}

fn query(request: &Request) -> Vec<(String, String)> {
    let pairs = url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
    pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

async fn take(app: &App, integration: &str, token: &str, request: Request) -> ApiResult<Response> {
    let query = query(&request);
    let (parts, body) = request.into_parts();
    let body = read_body(Request::from_parts(parts.clone(), body), app.options.body_limit).await?;
    let incoming = triggers::Request { method: parts.method.as_str(), query, headers: &parts.headers, body: &body };
    Ok(answer(app.triggers.receive("native", integration, token, &incoming).await?))
}

/// Take an event
#[utoipa::path(post, path = "/triggers/native/{integration_key}/{token}", operation_id = "ingest_native_event", tag = "Triggers",
    params(("integration_key" = String, Path), ("token" = String, Path)), request_body = Object,
    responses((status = 202, description = "Stored, or of no interest"), (status = 200, description = "The answer to a handshake"), (status = 401, description = "The signature is not right, or the request was replayed"),
        (status = 404, description = "No such address"), (status = 429, description = "Too many refused requests"), (status = 503, description = "Too much is coming in")))]
pub(crate) async fn native(
    State(app): State<App>,
    PathOf((integration, token)): PathOf<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    take(&app, &integration, &token, request).await
}

/// Answer a handshake
#[utoipa::path(get, path = "/triggers/native/{integration_key}/{token}", operation_id = "answer_native_handshake", tag = "Triggers",
    params(("integration_key" = String, Path), ("token" = String, Path)),
    responses((status = 200, description = "The answer to a handshake"), (status = 401, description = "Not a handshake"), (status = 404, description = "No such address")))]
pub(crate) async fn handshake(
    State(app): State<App>,
    PathOf((integration, token)): PathOf<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let is_head = request.method() == http::Method::HEAD;
    match take(&app, &integration, &token, request).await? {
        // Some services only look whether somebody is there.
        _ if is_head => Ok(Response::new(Body::empty())),
        response if response.status() == StatusCode::ACCEPTED => Ok(said(StatusCode::UNAUTHORIZED, "error", Some("Send events with POST"))),
        response => Ok(response),
    }
}

/// Take a message from Composio
#[utoipa::path(post, path = "/triggers/composio/events", operation_id = "ingest_composio_event", tag = "Triggers", request_body = Object,
    responses((status = 202, description = "Stored, or of no interest"), (status = 400, description = "The body is not JSON"), (status = 401, description = "The signature is not right, or the request was replayed")))]
pub(crate) async fn composio(State(app): State<App>, request: Request) -> ApiResult<Response> {
    let query = query(&request);
    let (parts, body) = request.into_parts();
    let body = read_body(Request::from_parts(parts.clone(), body), app.options.body_limit).await?;
    let incoming = triggers::Request { method: parts.method.as_str(), query, headers: &parts.headers, body: &body };
    Ok(answer(app.triggers.receive_composio(&incoming).await?))
}
