//! What a caller does next with an answer. How that is asked of the API, only the edge knows.

use std::fmt;

use kernel::ConnectionId;
use serde_json::{Map, Value};

use crate::answer::ApiRequest;

/// Something that a caller can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Connect an account, to call tools with it.
    ConnectForTools,
    /// Connect an account, to watch for its events.
    ConnectForEvents,
    /// Connect an account again.
    Reconnect(ConnectionId),
    Subscribe,
    Schedule,
    FindTools,
}

/// A request that a caller can send once it has filled in what only it knows, such as the workflow to run.
#[derive(Clone, Debug)]
pub enum RequestDraft<'a> {
    Connect(ConnectDraft<'a>),
    Subscribe { name: String, event: &'a str, connection: Option<ConnectionId>, config: Map<String, Value> },
    Schedule { name: String, cron: &'a str },
}

/// A connection to make.
#[derive(Clone, Debug)]
pub struct ConnectDraft<'a> {
    pub step: NextStep,
    pub provider: &'a str,
    pub integration: &'a str,
    pub slug: String,
    /// Whether a person gives a key, rather than the service's consent.
    pub with_key: bool,
}

/// How the API is asked to do something.
pub trait Addresses: fmt::Debug + Send + Sync {
    /// The method and the path of a step.
    fn address(&self, step: NextStep) -> String;

    /// The request that does it.
    fn request(&self, draft: RequestDraft<'_>) -> ApiRequest;
}
