//! The port `Runner`: what a provider does for a call.

use std::fmt;
use std::sync::Arc;

use catalog::{Action, Integration};
use connections::Usable;
use egress::EgressError;
use futures_util::future::BoxFuture;
use kernel::{ConnectionId, ProjectId};
use serde_json::{Map, Value};

/// One call of an action, ready to run: arguments checked, credential fresh.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    pub integration: &'a Integration,
    pub action: &'a Action,
    pub arguments: &'a Map<String, Value>,
    pub project: ProjectId,
    pub connection: ConnectionId,
    pub usable: &'a Usable,
    pub progress: &'a Progress,
    /// The same whenever the same call is made again, and no other's; short enough for every service that takes such a key.
    pub idempotency_key: &'a dyn UpstreamKey,
}

/// A key that is made when a service takes one, which few do.
pub trait UpstreamKey: fmt::Debug + Send + Sync {
    fn get(&self) -> &str;
}

/// How far a call is, as the provider tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressStep {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Where a call tells how far it is. By default nobody listens.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(ProgressStep) + Send + Sync>>);

impl Progress {
    pub fn to(listener: impl Fn(ProgressStep) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    pub fn tell(&self, step: ProgressStep) {
        if let Some(listener) = &self.0 {
            listener(step);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.is_wanted()).finish()
    }
}

/// What the tool said. `error` is set when it ran and said no.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    pub data: Value,
    pub error: Option<String>,
    /// The status with which it said no, where it has one.
    pub status: Option<u16>,
}

impl ToolResult {
    pub fn ok(data: Value) -> Self {
        Self { data, error: None, status: None }
    }

    pub fn refused(data: Value, error: impl Into<String>, status: Option<u16>) -> Self {
        Self { data, error: Some(error.into()), status }
    }
}

/// Why the tool did not run to its end.
#[derive(Debug)]
pub enum RunError {
    /// The request could not be made from these arguments.
    Arguments(String),
    /// The connection lacks something that the request needs.
    Connection(String),
    /// The provider refused the credential.
    Unauthorized(String),
    /// The provider answered with something that is no result.
    Upstream(String),
    /// The provider failed.
    Server { status: u16, message: String },
    /// The provider went away, or took too long, after it was asked: it may have acted or not.
    Lost(String),
    /// The provider could not be reached, or not in time.
    Unreachable(EgressError),
}

/// Runs the actions of one provider.
pub trait Runner: Send + Sync + std::fmt::Debug {
    fn run<'a>(&'a self, invocation: Invocation<'a>) -> BoxFuture<'a, Result<ToolResult, RunError>>;
}
