//! Runs of agents as they happen: `POST /workflows/invoke` for whoever takes `text/event-stream`, and `GET /workflows/runs/{run_id}/events`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use agent_runs::RunEvent;
use agent_runs::stream::{AgUi, Encoder, Vercel};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use kernel::{RunId, Scope};

use crate::App;
use crate::edge::auth::{ViewWorkflows, while_good};
use crate::edge::{ApiError, ApiResult, PathOf, Scoped};

const FORMAT: HeaderName = HeaderName::from_static("x-ag-messages-format");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const VERCEL: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// A stream says something at least this often, so that nobody between takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// In which words a run is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    AgUi,
    Vercel,
}

impl Wire {
    /// What the caller asks for by `x-ag-messages-format`.
    pub(crate) fn asked(headers: &HeaderMap) -> ApiResult<Self> {
        match headers.get(FORMAT).map(|value| value.to_str().unwrap_or("?").trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "ag-ui" | "agenta") => Ok(Self::AgUi),
            Some("vercel") => Ok(Self::Vercel),
            Some(other) => {
                Err(ApiError::bad_request(format!("`x-ag-messages-format`: `{other}` is not known; there are `ag-ui` and `vercel`.")))
            }
        }
    }

    async fn encoder(self, app: &App, scope: Scope, run: RunId) -> ApiResult<Box<dyn Encoder>> {
        Ok(match self {
            Self::AgUi => Box::new(AgUi::new(run.to_string())),
            Self::Vercel => Box::new(Vercel::new(run.to_string(), app.agent_runs.renders(scope, run).await?)),
        })
    }
}

/// Whether the caller takes a stream of events.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    let ranges = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    ranges.flat_map(|value| value.split(',')).any(|range| range.split(';').next().unwrap_or_default().trim() == "text/event-stream")
}

/// The run as a stream, from after an event of its log to its end.
pub(crate) async fn follow(app: &App, scope: Scope, run: RunId, wire: Wire, after: i64) -> ApiResult<Response> {
    let encoder = wire.encoder(app, scope, run).await?;
    let following = Following { app: app.clone(), scope, run, encoder, seen: 0, after, pending: VecDeque::new(), is_over: false };
    let body = Body::from_stream(stream::unfold(following, |mut following| async move {
        let piece = following.next().await?;
        Some((Ok::<_, Infallible>(piece), following))
    }));
    let mut response = (event_headers(), body).into_response();
    if wire == Wire::Vercel {
        response.headers_mut().insert(VERCEL, HeaderValue::from_static("v1"));
    }
    if let Ok(id) = HeaderValue::from_str(&run.to_string()) {
        response.headers_mut().insert("x-ag-run-id", id);
    }
    Ok(response)
}

/// The headers of every stream of events.
pub(crate) fn event_headers() -> [(HeaderName, &'static str); 3] {
    [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache, no-transform"), (BUFFERING, "no")]
}

struct Following {
    app: App,
    scope: Scope,
    run: RunId,
    encoder: Box<dyn Encoder>,
    /// The number of the last event that was read.
    seen: i64,
    /// The number up to which the client knows everything.
    after: i64,
    pending: VecDeque<String>,
    is_over: bool,
}

impl Following {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(text) = self.pending.pop_front() {
                return Some(text.into());
            }
            if self.is_over {
                return None;
            }
            let read = self.app.agent_runs.next_events(self.scope, self.run, self.seen);
            let found = tokio::time::timeout(KEEP_ALIVE, while_good(&self.app, self.scope, read)).await;
            let events = match found {
                Err(_) => return Some(Bytes::from_static(b": waiting\n\n")),
                Ok(Ok(Ok(events))) => events,
                Ok(Ok(Err(error))) => {
                    tracing::warn!(run = %self.run, %error, "a run could not be followed");
                    return None;
                }
                Ok(Err(_)) => return None,
            };
            self.is_over = events.is_empty();
            for numbered in events {
                self.seen = numbered.number;
                self.is_over = matches!(numbered.event, RunEvent::RunEnded { .. });
                let told = self.encoder.encode(&numbered.event);
                if numbered.number <= self.after {
                    continue;
                }
                let last = told.len().saturating_sub(1);
                for (index, value) in told.into_iter().enumerate() {
                    // Only the last piece of an event has its number: whoever comes back after another gets the event again.
                    let id = if index == last { format!("id: {}\n", numbered.number) } else { String::new() };
                    self.pending.push_back(format!("{id}data: {value}\n\n"));
                }
            }
            if self.is_over {
                self.pending.extend(self.encoder.farewell().map(|word| format!("data: {word}\n\n")));
            }
        }
    }
}

/// Follow a run of an agent
///
/// Everything that happens in it, from its beginning or after `Last-Event-ID`, until it ends: events of AG-UI, or with
/// `x-ag-messages-format: vercel` chunks of the AI SDK's UI message stream.
#[document::path(get, path = "/workflows/runs/{run_id}/events", operation_id = "follow_workflow_run", tag = "Workflows", security(("key" = ["view_workflows"])),
    params(("run_id" = Uuid, Path), ("Last-Event-ID" = Option<i64>, Header, description = "The `id` of the last event that was read"),
        ("X-Ag-Messages-Format" = Option<String>, Header, description = "`ag-ui` (the default) or `vercel`")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "Server-sent events"), (status = 404, description = "No such run of an agent")))]
pub(crate) async fn events(
    Scoped(scope, _): Scoped<ViewWorkflows>,
    State(app): State<App>,
    PathOf(id): PathOf<RunId>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let wire = Wire::asked(&headers)?;
    app.agent_runs.get(scope, id).await?;
    let after = match headers.get(LAST_EVENT).map(|value| value.to_str().ok().and_then(|text| text.trim().parse::<i64>().ok())) {
        None => 0,
        Some(Some(after)) => after,
        Some(None) => return Err(ApiError::bad_request("`Last-Event-ID` must be the number of an event of this run.")),
    };
    follow(&app, scope, id, wire, after).await
}
