//! Around every request: an id, a time limit, a net under panics, a log line, a metric, and a word about what was ignored.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::body::HttpBody;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, header};
use tracing::Instrument;
use uuid::Uuid;

use super::extract::content_length;
use super::read::Ignored;
use super::{ApiError, Code};
use crate::App;

/// For routes that know their own limit: longer than any of them asks for.
const OUTER_LIMIT: Duration = Duration::from_secs(320);
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Watches over one request to a route of its own kind.
pub async fn watch(State(app): State<App>, request: Request, next: Next) -> Response {
    watched(app, None, request, |request, _| Box::pin(next.run(request))).await
}

/// Watches over one request, to a route whose path is known or stands in the request.
pub(crate) async fn watched(
    app: App,
    route: Option<&'static str>,
    mut request: Request,
    answer: impl FnOnce(Request, App) -> BoxFuture<'static, Response>,
) -> Response {
    let started = Instant::now();
    let id = request_id(&request);
    let method = request.method().clone();
    let route = match route {
        Some(route) => Cow::Borrowed(route),
        None => request.extensions().get::<MatchedPath>().map_or("unmatched".into(), |path| path.as_str().to_owned().into()),
    };
    let ignored = Ignored::default();
    request.extensions_mut().insert(ignored.clone());
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let limit = if limits_itself(&route) { OUTER_LIMIT.max(app.options.request_timeout) } else { app.options.request_timeout };
    // What says nothing of its length may be large.
    let size = if request.body().is_end_stream() { 0 } else { content_length(&request).unwrap_or(work::LARGE) };
    let work = app.workers.host(size, answer(request, app.clone()));
    let guarded = AssertUnwindSafe(tokio::time::timeout(limit, work)).catch_unwind();
    let mut response = match guarded.instrument(span.clone()).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => too_long(limit).into_response(),
        Err(panic) => ApiError::internal(&panic_text(&*panic)).into_response(),
    };
    let status = response.status();
    let elapsed = started.elapsed();
    app.metrics.request(method.as_str(), &route, status.as_u16(), elapsed);
    span.in_scope(|| {
        if status.is_server_error() {
            tracing::warn!(%method, %route, status = status.as_u16(), ms = elapsed.as_millis(), "answered");
        } else {
            tracing::debug!(%method, %route, status = status.as_u16(), ms = elapsed.as_millis(), "answered");
        }
    });
    response.headers_mut().insert(REQUEST_ID, id);
    if let Some(warning) = ignored.warning() {
        response.headers_mut().insert(header::WARNING, warning);
    }
    if response.body().size_hint().lower() > work::SMALL as u64 {
        response.extensions_mut().insert(LargeAnswer);
    }
    response
}

/// Marks a response that is large before it is compressed.
#[derive(Clone, Copy, Debug)]
struct LargeAnswer;

/// Has a large answer compressed where large tasks run: the thread that sends it would be busy with it.
pub(crate) async fn compress_large(app: &App, response: Response) -> Response {
    if response.extensions().get::<LargeAnswer>().is_none() || !response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let (head, body) = response.into_parts();
    match app.workers.host(work::LARGE, Box::pin(axum::body::to_bytes(body, usize::MAX))).await {
        Ok(bytes) => Response::from_parts(head, bytes.into()),
        Err(error) => ApiError::internal(&error.to_string()).into_response(),
    }
}

/// A test waits for somebody else's event as long as it is told to, and a call takes as long as its tool may: see `within`.
fn limits_itself(route: &str) -> bool {
    ["/triggers/subscriptions/test", "/tools/ops/{op}", "/tools/call", "/agents/{agent_id}/call"].contains(&route)
}

fn too_long(limit: Duration) -> ApiError {
    ApiError::new(Code::RequestTimeout, format!("The request took longer than {} seconds.", limit.as_secs()))
}

/// Ends work that takes longer than it may.
pub(crate) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, ApiError> {
    tokio::time::timeout(limit, work).await.map_err(|_| too_long(limit))
}

/// The caller's id when it is a sane one, else one of ours.
fn request_id(request: &Request) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        (1..=128).contains(&bytes.len()) && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte))
    };
    let given = request.headers().get(REQUEST_ID).filter(sane).cloned();
    given.unwrap_or_else(|| HeaderValue::from_str(&Uuid::now_v7().to_string()).unwrap_or(HeaderValue::from_static("-")))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_default())
}

/// Marks a response that no handler made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unrouted;

/// An unknown path.
pub async fn not_found() -> Response {
    (axum::Extension(Unrouted), ApiError::new(Code::RouteNotFound, "Not Found")).into_response()
}

/// A known path with another method.
pub async fn wrong_method() -> Response {
    (axum::Extension(Unrouted), ApiError::new(Code::MethodNotAllowed, "Method Not Allowed")).into_response()
}
