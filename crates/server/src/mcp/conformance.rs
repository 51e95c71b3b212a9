//! `/mcp/conformance`: fixtures for the protocol's conformance suite, which knows no keys. It shows nothing of any project, and is there only
//! where the operator asks for it.

use std::sync::Arc;

use ::mcp::{Conformance, Surface};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use http::HeaderMap;
use uuid::Uuid;

use super::access::check_origin;
use super::{message, respond};
use crate::App;
use crate::edge::ApiResult;

pub(crate) const PATH: &str = "/mcp/conformance";

pub(crate) fn route(app: &App) -> MethodRouter<App> {
    let fixtures: Arc<dyn Surface> = Arc::new(Conformance::new(app.signer.clone()));
    let shared = fixtures.clone();
    get(move |state, headers| changes(state, headers, shared)).post(move |state, headers, request| post(state, headers, request, fixtures))
}

async fn post(State(app): State<App>, headers: HeaderMap, request: Request, fixtures: Arc<dyn Surface>) -> ApiResult<Response> {
    check_origin(&app, &headers)?;
    let message = message(&app, Uuid::nil().into(), request).await?;
    Ok(respond(app.mcp.post(Uuid::nil(), &headers, fixtures, message).await))
}

async fn changes(State(app): State<App>, headers: HeaderMap, fixtures: Arc<dyn Surface>) -> ApiResult<Response> {
    check_origin(&app, &headers)?;
    Ok(respond(app.mcp.changes(Uuid::nil(), &headers, fixtures).await))
}
