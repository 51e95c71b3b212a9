//! `/mcp`: the same tools for clients of the Model Context Protocol.

mod access;
pub mod agent;
pub mod conformance;
pub mod metadata;
pub mod project;

use std::convert::Infallible;
use std::sync::Arc;

use ::mcp::{Answer, Approver, SearchMode, Searchable, Surface};
use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http::{HeaderName, HeaderValue, StatusCode, header};
use kernel::Scope;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::App;
use crate::edge::{ApiError, ApiResult};

/// What an older client carries with it.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How the tools are shown.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// `search` shows three tools in place of all: find, call, connect.
    mode: Option<String>,
}

impl Mode {
    /// The surface as the client wants to see it.
    fn show<S: Searchable + 'static>(&self, surface: S) -> ApiResult<Arc<dyn Surface>> {
        match self.mode.as_deref() {
            None | Some("" | "all") => Ok(Arc::new(surface)),
            Some("search") => Ok(Arc::new(SearchMode(Arc::new(surface)))),
            Some(_) => Err(ApiError::unprocessable("`mode` must be `all` or `search`.")),
        }
    }
}

fn approver(app: &App, scope: Scope) -> Approver {
    Approver {
        tools: app.tools.clone(),
        scope,
        signer: app.connections.signer.clone(),
        public_url: app.connections.public_url.trim_end_matches('/').to_owned(),
    }
}

/// An answer of the protocol as a response.
fn respond(answer: Answer) -> Response {
    match answer {
        Answer::Accepted => StatusCode::ACCEPTED.into_response(),
        Answer::Json { status, body, session } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let mut response = (status, Json(body)).into_response();
            if let Some(session) = session.and_then(|session| HeaderValue::from_str(&session).ok()) {
                response.headers_mut().insert(SESSION, session);
            }
            response
        }
        Answer::Events(events) => {
            let headers = [
                (header::CONTENT_TYPE, "text/event-stream"),
                (header::CACHE_CONTROL, "no-cache, no-transform"),
                // What a proxy would hold back, the client would hear too late.
                (BUFFERING, "no"),
            ];
            (headers, Body::from_stream(events.map(Ok::<_, Infallible>))).into_response()
        }
    }
}
