//! Where providers send events: public addresses, proven by signature.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::json;
use triggers::{Answer, Received};

use crate::App;
use crate::edge::extract::read_body;
use crate::edge::{ApiError, ApiResult, Code, Json, PathOf};

fn refused(code: Code, detail: &str) -> Response {
    (code.status(), Json(json!({"status": "error", "detail": detail, "code": code.name()}))).into_response()
}

fn answer(received: Received) -> Response {
    match received {
        Received::Accepted(detail) => (StatusCode::ACCEPTED, Json(json!({"status": "accepted", "detail": detail}))).into_response(),
        Received::Answer(Answer::Text(text)) => text.into_response(),
        Received::Answer(Answer::Json(value)) => Json(value).into_response(),
        Received::Answer(Answer::Header { name, value }) => {
            let mut response = StatusCode::OK.into_response();
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value)) {
                response.headers_mut().insert(name, value);
            }
            response
        }
        Received::Refused => refused(Code::SignatureInvalid, "Signature verification failed"),
        Received::NoSecret => refused(Code::EventSecretMissing, "This address has no secret to check events with"),
        Received::NotPosted => {
            let answer = refused(Code::MethodNotAllowed, "Send events with POST");
            ([(header::ALLOW, "POST")], answer).into_response()
        }
        Received::Unknown => ApiError::new(Code::AddressNotFound, "There is no such address.").into_response(),
        Received::NotJson => refused(Code::EventNotJson, "The body is not JSON"),
        Received::Throttled => refused(Code::TooManyRefused, "Too many requests were refused here. Try again in a minute."),
    }
}

/// A request with its whole body.
struct ReceivedRequest {
    method: Method,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
}

impl ReceivedRequest {
    async fn read(request: Request, app: &App) -> ApiResult<Self> {
        let (method, headers) = (request.method().clone(), request.headers().clone());
        let pairs = url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
        let query = pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        Ok(Self { method, query, headers, body: read_body(request, app.options.body_limit).await? })
    }

    fn incoming(&self) -> triggers::Request<'_> {
        triggers::Request { method: self.method.as_str(), query: &self.query, headers: &self.headers, body: &self.body }
    }
}

async fn accept(app: &App, integration: &str, token: &str, request: Request) -> ApiResult<Response> {
    let whole = ReceivedRequest::read(request, app).await?;
    Ok(answer(app.triggers.receive("native", integration, token, &whole.incoming()).await?))
}

/// Take an event
#[document::path(post, path = "/triggers/native/{integration_key}/{token}", operation_id = "ingest_native_event", tag = "Triggers",
    params(("integration_key" = String, Path), ("token" = String, Path)), request_body = Object,
    responses((status = 202, description = "Stored, or of no interest"), (status = 200, description = "The answer to a handshake"), (status = 401, description = "The signature is not right, or the request was replayed"),
        (status = 404, description = "No such address"), (status = 429, description = "Too many refused requests"), (status = 503, description = "Too much is coming in")))]
pub(crate) async fn native(
    State(app): State<App>,
    PathOf((integration, token)): PathOf<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    accept(&app, &integration, &token, request).await
}

/// Answer a handshake
#[document::path(get, path = "/triggers/native/{integration_key}/{token}", operation_id = "answer_native_handshake", tag = "Triggers",
    params(("integration_key" = String, Path), ("token" = String, Path)),
    responses((status = 200, description = "The answer to a handshake"), (status = 401, description = "Not a handshake"), (status = 404, description = "No such address"), (status = 405, description = "Events are sent with POST")))]
pub(crate) async fn handshake(
    State(app): State<App>,
    PathOf((integration, token)): PathOf<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let is_head = request.method() == Method::HEAD;
    let response = accept(&app, &integration, &token, request).await?;
    // Some services only look whether somebody is there.
    Ok(if is_head { Response::new(Body::empty()) } else { response })
}

/// Take a message from Composio
#[document::path(post, path = "/triggers/composio/events", operation_id = "ingest_composio_event", tag = "Triggers", request_body = Object,
    responses((status = 202, description = "Stored, or of no interest"), (status = 400, description = "The body is not JSON"), (status = 401, description = "The signature is not right, or the request was replayed")))]
pub(crate) async fn composio(State(app): State<App>, request: Request) -> ApiResult<Response> {
    let whole = ReceivedRequest::read(request, &app).await?;
    Ok(answer(app.triggers.receive_from_hub("composio", &whole.incoming()).await?))
}
