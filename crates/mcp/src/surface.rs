//! The seam between the protocol and what it shows: a set of tools that can be listed and called.

use std::time::Duration;

use calls::{CallRequest, ProgressStep};
use futures_util::future::BoxFuture;
use kernel::CallName;
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::outbox::Outbox;
use crate::{Client, RpcError};

/// The tools that one caller sees.
pub trait Surface: Send + Sync {
    /// What a model should know about these tools.
    fn instructions(&self) -> String;

    /// One page of definitions, in an order that stays.
    fn list<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Page, RpcError>>;

    fn call(&self, call: Call) -> BoxFuture<'_, Result<CallOutcome, RpcError>>;

    /// A number that changes when the list does.
    fn fingerprint(&self) -> BoxFuture<'_, Result<u64, RpcError>>;

    /// How long to wait between two looks at the fingerprint.
    fn watch_every(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn capabilities(&self) -> Value {
        json!({"tools": {"listChanged": true}})
    }

    /// The schema of a tool whose arguments are repeated in headers.
    fn mirrored_schema(&self, _tool: &str) -> Option<Value> {
        None
    }

    /// Anything but tools.
    fn other<'a>(&'a self, method: &'a str, _call: Call) -> BoxFuture<'a, Result<CallOutcome, RpcError>> {
        Box::pin(async move { Err(RpcError::Method(method.to_owned())) })
    }
}

/// A part of a list of tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub tools: Vec<Value>,
    pub next: Option<String>,
}

/// A call as it comes in.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    pub arguments: Map<String, Value>,
    /// What the client answered to an earlier [`Outcome::NeedsInput`].
    pub inputs: Map<String, Value>,
    /// What came with that earlier outcome.
    pub state: Option<String>,
    pub client: Client,
    pub progress: Progress,
}

impl Call {
    /// The same call to a tool of this name. Dropping the guard, with whoever waits, ends what an upstream server does for it.
    pub(crate) fn to(&self, name: CallName, limit: Duration) -> (CallRequest, DropGuard) {
        let stop = CancellationToken::new();
        let request = CallRequest {
            name,
            arguments: Value::Object(self.arguments.clone()),
            limit: Some(limit),
            progress: self.progress.listener(),
            stop: stop.clone(),
            ..CallRequest::default()
        };
        (request, stop.drop_guard())
    }
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub enum CallOutcome {
    /// The fields of the result.
    Done(Map<String, Value>),
    /// The client has to answer these requests, by name, and call again.
    NeedsInput { requests: Map<String, Value>, state: Option<String> },
}

impl CallOutcome {
    /// A result of text, and of the same as data where there is any.
    pub fn text(text: impl Into<String>, structured: Option<Value>, is_error: bool) -> Self {
        let mut fields = Map::from_iter([("content".to_owned(), json!([{"type": "text", "text": text.into()}]))]);
        fields.extend(structured.map(|structured| ("structuredContent".to_owned(), structured)));
        if is_error {
            fields.insert("isError".to_owned(), true.into());
        }
        Self::Done(fields)
    }

    /// A tool that failed, in words that a model can act on.
    pub fn failure(text: impl Into<String>) -> Self {
        Self::text(text, None, true)
    }
}

/// Where a call tells how far it is; nobody hears it unless the client asked.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub(crate) token: Option<Value>,
    pub(crate) outbox: Option<Outbox>,
}

impl Progress {
    /// Passes on what a tool says; nothing where nobody asked.
    fn listener(&self) -> calls::Progress {
        if self.token.is_none() {
            return calls::Progress::default();
        }
        let progress = self.clone();
        calls::Progress::to(move |step| progress.tell(step))
    }

    pub fn tell(&self, step: ProgressStep) {
        let (Some(token), Some(outbox)) = (&self.token, &self.outbox) else { return };
        let mut params = json!({"progressToken": token, "progress": step.done});
        if let Some(total) = step.total {
            params["total"] = json!(total);
        }
        if let Some(message) = step.message {
            params["message"] = json!(message);
        }
        outbox.tell(mcp_wire::notification("notifications/progress", params));
    }
}
