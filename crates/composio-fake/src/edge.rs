//! The way in: every request is written down, checked for its key, and goes wrong if a fault says so.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;

use crate::cut::ConnectionSwitch;
use crate::faults::{self, Kind};
use crate::refusal::Refusal;
use crate::request::QueryString;
use crate::state::Shared;
use crate::world;

/// The one key that is taken.
pub(crate) const KEY: &str = "ak_fake_5f3c1d9e";

const RATE_LIMIT: u64 = 2000;

/// A request that arrived, and how it was answered.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub method: String,
    /// Without `/api/v3.1` or `/api/v3`.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Option<Value>,
    /// 0 as long as there is no answer, and for good where the connection was closed without one.
    pub status: u16,
    pub(crate) number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    V3,
    V3_1,
}

pub(crate) async fn pass(
    State((shared, api)): State<(Arc<Shared>, Api)>,
    ConnectInfo(line): ConnectInfo<ConnectionSwitch>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let number = shared.arrivals.fetch_add(1, Ordering::SeqCst);
    shared.requests().push(Recorded {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: QueryString::of(parts.uri.query()).0,
        headers: parts.headers.clone(),
        body: serde_json::from_slice(&bytes).ok(),
        status: 0,
        number,
    });
    let request_id = parts.headers.get("x-request-id").and_then(|id| id.to_str().ok()).map_or_else(world::new_uuid, str::to_owned);
    let known = parts.headers.get("x-api-key").is_some_and(|key| key == KEY);
    let fault = faults::take(&mut shared.faults(), &parts.method, parts.uri.path());

    if let Some(Kind::Delay(wait)) = fault {
        tokio::time::sleep(wait).await;
    }
    let mut response = match fault.and_then(Kind::instead_of_work) {
        Some(response) => response,
        None if !known => Refusal::unauthorized().into_response(),
        None => next.run(Request::from_parts(parts, Body::from(bytes))).await,
    };
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        response = (refusal.status(), axum::Json(refusal.envelope(&request_id, api == Api::V3_1))).into_response();
    }
    if let Some(fault) = fault {
        if fault.cuts() {
            line.cut();
            return StatusCode::NO_CONTENT.into_response();
        }
        response = fault.spoil(response).await;
    }
    say_limits(&shared, response.headers_mut());
    if let Some(recorded) = shared.requests().iter_mut().find(|recorded| recorded.number == number) {
        recorded.status = response.status().as_u16();
    }
    response
}

/// The headers that say how much of the minute's allowance is left. Nothing is refused because of it; faults do that.
fn say_limits(shared: &Shared, headers: &mut HeaderMap) {
    headers.insert("x-ratelimit", RATE_LIMIT.into());
    headers.insert("x-ratelimit-window-size", HeaderValue::from_static("60"));
    headers.entry("x-ratelimit-remaining").or_insert_with(|| RATE_LIMIT.saturating_sub(shared.used_this_minute()).into());
}

pub(crate) async fn nothing_here() -> Refusal {
    Refusal::not_found("HTTP_NotFound", "There is nothing at this path")
}
