//! How an answer goes out: as one JSON body where it is there soon, else as a stream of events that ends with it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, interval_at};

use crate::outbox::Outbox;
use crate::{RequestId, RpcError, Version};

/// How long a call may take before its answer becomes a stream.
const PATIENCE: Duration = Duration::from_secs(1);
const HEARTBEAT: Duration = Duration::from_secs(5);

/// What goes back to a client.
pub enum Answer {
    Json {
        status: u16,
        body: Value,
        session: Option<String>,
    },
    /// The message was taken and wants no answer.
    Accepted,
    /// Server-sent events. Dropping the stream cancels what it waits for.
    Events(BoxStream<'static, Bytes>),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Json { status, body, .. } => write!(f, "Json({status}, {body})"),
            Self::Accepted => f.write_str("Accepted"),
            Self::Events(_) => f.write_str("Events"),
        }
    }
}

impl Answer {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self::Json { status, body, session: None }
    }

    pub(crate) fn fault(fault: &RpcError, id: Option<&RequestId>, version: Version) -> Self {
        Self::json(fault.status(version), fault.body(id))
    }

    /// A refusal by HTTP alone.
    pub(crate) fn status(status: u16, why: &str) -> Self {
        Self::json(status, RpcError::Request(why.to_owned()).body(None))
    }

    pub(crate) fn into_body(self) -> Option<Value> {
        match self {
            Self::Json { body, .. } => Some(body),
            Self::Accepted | Self::Events(_) => None,
        }
    }
}

/// One event.
pub(crate) fn event(message: &Value) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

/// What keeps a quiet stream open.
pub(crate) fn silence() -> Bytes {
    Bytes::from_static(b": \n\n")
}

/// A request under way, and what it says before its result.
pub(crate) struct Running {
    work: Option<BoxFuture<'static, Result<Value, RpcError>>>,
    messages: Outbox,
    id: RequestId,
    version: Version,
    /// Set if the client wants to hear that the call goes on.
    token: Option<Value>,
    /// Whether the call told of its progress itself.
    spoke: bool,
    ready: VecDeque<Bytes>,
    heartbeat: Interval,
    beats: u32,
}

impl Running {
    pub(crate) fn new(
        work: BoxFuture<'static, Result<Value, RpcError>>,
        messages: Outbox,
        id: RequestId,
        version: Version,
        token: Option<Value>,
    ) -> Self {
        let heartbeat = interval_at(Instant::now() + PATIENCE, HEARTBEAT);
        Self { work: Some(work), messages, id, version, token, spoke: false, ready: VecDeque::new(), heartbeat, beats: 0 }
    }

    /// Waits a little for the result; it is a body if it comes first.
    pub(crate) async fn answer(mut self, reads_events: bool) -> Answer {
        let Some(work) = self.work.as_mut() else { return Answer::Accepted };
        if !reads_events {
            return json_of(work.await, &self.id, self.version);
        }
        tokio::select! {
            result = &mut *work => {
                if self.messages.is_empty() {
                    return json_of(result, &self.id, self.version);
                }
                self.finish(result);
            }
            message = self.messages.next() => self.hear(&message),
            () = tokio::time::sleep(PATIENCE) => {}
        }
        Answer::Events(stream::unfold(self, |mut running| async move { running.next().await.map(|event| (event, running)) }).boxed())
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let work = self.work.as_mut()?;
            tokio::select! {
                // The work first: a tool that says a lot does not keep it from ending, and what it said goes out before its result.
                biased;
                result = &mut *work => self.finish(result),
                message = self.messages.next() => self.hear(&message),
                _ = self.heartbeat.tick() => self.beat(),
            }
        }
    }

    fn hear(&mut self, message: &Value) {
        self.spoke |= message["method"] == "notifications/progress";
        self.ready.push_back(event(message));
    }

    fn finish(&mut self, result: Result<Value, RpcError>) {
        self.work = None;
        while let Some(message) = self.messages.take() {
            self.hear(&message);
        }
        match result {
            Ok(result) => self.ready.push_back(event(&mcp_wire::result(&self.id, result))),
            // Who cancelled wants to hear no more.
            Err(RpcError::Cancelled) => {}
            Err(fault) => self.ready.push_back(event(&fault.body(Some(&self.id)))),
        }
    }

    fn beat(&mut self) {
        self.beats += 1;
        let Some(token) = self.token.as_ref().filter(|_| !self.spoke) else { return self.ready.push_back(silence()) };
        let params = json!({"progressToken": token, "progress": self.beats, "message": "still running"});
        self.ready.push_back(event(&mcp_wire::notification("notifications/progress", params)));
    }
}

fn json_of(result: Result<Value, RpcError>, id: &RequestId, version: Version) -> Answer {
    match result {
        Ok(result) => Answer::json(200, mcp_wire::result(id, result)),
        Err(fault) => Answer::fault(&fault, Some(id), version),
    }
}
