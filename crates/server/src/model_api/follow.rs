//! A run on its way to the client that asked for it, in one piece or as it happens.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use agent_runs::stream::{Ending, ModelAnswer};
use agent_runs::{RunError, RunEvent, RunState};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use calls::ApprovalStatus;
use futures_util::stream;
use http::StatusCode;
use kernel::{RunId, Scope};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::error::ModelApiError;
use crate::App;
use crate::edge::Json;
use crate::edge::auth::while_good;
use crate::workflows::stream::event_headers;

/// How often a stream looks whether its run waits for a person, and says that it is there.
const LOOK: Duration = Duration::from_secs(2);
/// How often an answer in one piece looks.
const LOOK_WHOLE: Duration = Duration::from_millis(700);

/// A run and what its client is told of it.
pub(super) struct Following {
    guard: Guard,
    answer: Box<dyn ModelAnswer>,
    /// The number of the last event that was read.
    seen: i64,
    /// The number up to which the client knows what was said.
    after: i64,
}

/// Cancels a run whose client went away before its answer.
struct Guard {
    app: App,
    scope: Scope,
    run: RunId,
    armed: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.armed {
            let (app, scope, run) = (self.app.clone(), self.scope, self.run);
            runtime.spawn(async move { drop(app.agent_runs.cancel(scope, run).await) });
        }
    }
}

impl Guard {
    /// Whether the run waits for a person who has not decided; it goes on without its client.
    async fn waits(&mut self) -> Result<bool, RunError> {
        let run = self.app.agent_runs.get(self.scope, self.run).await?;
        let Some(approval) = run.approval.filter(|_| run.state == RunState::Waiting) else { return Ok(false) };
        self.armed = false;
        // What is decided wakes the run within a moment.
        let found = self.app.calls.approval(self.scope, approval).await;
        Ok(found.is_ok_and(|found| found.status == ApprovalStatus::Pending))
    }
}

impl Following {
    /// Follows a new run from its beginning.
    pub(super) fn new(app: &App, scope: Scope, run: RunId, answer: Box<dyn ModelAnswer>) -> Self {
        Self { guard: Guard { app: app.clone(), scope, run, armed: true }, answer, seen: 0, after: 0 }
    }

    /// Follows a run that a person had to decide about: what was said before that is known to the client already.
    pub(super) async fn resumed(app: &App, scope: Scope, run: RunId, answer: Box<dyn ModelAnswer>) -> Result<Self, ModelApiError> {
        let after = app.agent_runs.last_question(scope, run).await?;
        Ok(Self { guard: Guard { app: app.clone(), scope, run, armed: false }, answer, seen: 0, after })
    }

    /// The answer in one piece, or pieces.
    pub(super) async fn respond(self, is_streamed: bool) -> Result<Response, ModelApiError> {
        if is_streamed {
            return Ok(self.streamed());
        }
        Ok(Json(self.whole().await?).into_response())
    }

    fn hear(&mut self, number: i64, event: &RunEvent) -> Vec<Value> {
        self.seen = number;
        let is_about_people = matches!(event, RunEvent::ApprovalNeeded { .. } | RunEvent::ToolResult { .. });
        if number > self.after || is_about_people { self.answer.hear(event) } else { Vec::new() }
    }

    /// Waits for the end of the run, as long as a request may take.
    async fn whole(mut self) -> Result<Value, ModelApiError> {
        let limit = self.guard.app.options.run_limit();
        let deadline = Instant::now() + limit;
        while self.answer.ending().is_none() {
            if self.guard.waits().await? && !self.answer.ask_person().is_empty() {
                break;
            }
            let (app, scope, run) = (&self.guard.app, self.guard.scope, self.guard.run);
            let read = while_good(app, scope, app.agent_runs.next_events(scope, run, self.seen));
            let Ok(events) = timeout_at(deadline.min(Instant::now() + LOOK_WHOLE), read).await else {
                if Instant::now() < deadline {
                    continue;
                }
                let message = format!("The agent did not end within {} seconds and was stopped; ask with `stream: true`.", limit.as_secs());
                return Err(ModelApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "run_too_long", message));
            };
            let events = events??;
            if events.is_empty() {
                return Err(ModelApiError::of_run(404, "The run is not kept any more."));
            }
            for told in events {
                self.hear(told.number, &told.event);
            }
        }
        self.guard.armed = false;
        match self.answer.ending() {
            Some(Ending::Failed { code, message }) => Err(ModelApiError::of_run(*code, message)),
            _ => Ok(self.answer.body()),
        }
    }

    fn streamed(self) -> Response {
        let told = Told { following: self, pending: VecDeque::new(), is_over: false };
        let body = Body::from_stream(stream::unfold(told, |mut told| async move {
            let piece = told.next().await?;
            Some((Ok::<_, Infallible>(piece), told))
        }));
        (event_headers(), body).into_response()
    }
}

/// An answer in pieces.
struct Told {
    following: Following,
    pending: VecDeque<Value>,
    is_over: bool,
}

impl Told {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let Following { guard, answer, seen, .. } = &mut self.following;
            if let Some(value) = self.pending.pop_front() {
                return Some(answer.piece(&value).into());
            }
            if answer.ending().is_some() {
                guard.armed = false;
                let word = answer.farewell().filter(|_| !std::mem::replace(&mut self.is_over, true))?;
                return Some(format!("data: {word}\n\n").into());
            }
            if guard.waits().await.unwrap_or(false) {
                self.pending.extend(answer.ask_person());
                if answer.ending().is_some() {
                    continue;
                }
            }
            let (app, scope) = (&guard.app, guard.scope);
            let read = while_good(app, scope, app.agent_runs.next_events(scope, guard.run, *seen));
            let events = match timeout(LOOK, read).await {
                Err(_) => return Some(Bytes::from_static(b": waiting\n\n")),
                Ok(Ok(Ok(events))) if !events.is_empty() => events,
                Ok(_) => return None,
            };
            for told in events {
                let pieces = self.following.hear(told.number, &told.event);
                self.pending.extend(pieces);
            }
        }
    }
}

/// An answer that no run gave, of which the pieces are known.
pub(super) fn said(answer: &dyn ModelAnswer, pieces: &[Value], is_streamed: bool) -> Response {
    if !is_streamed {
        return Json(answer.body()).into_response();
    }
    let mut text: String = pieces.iter().map(|value| answer.piece(value)).collect();
    text.extend(answer.farewell().map(|word| format!("data: {word}\n\n")));
    (event_headers(), text).into_response()
}
