//! Agents among workflows: who runs them is asked through a port, because models and tools come after workflows in the house. A run of an
//! agent outlives its caller and its process, so whoever runs it also records it.

use std::time::Duration;

use futures_util::future::BoxFuture;
use kernel::{ApprovalId, ArtifactId, RevisionId, RunId, Scope};
use serde_json::Value;

use crate::data::is_own_agent;
use crate::embed::contains_embed;
use crate::{InvokeRequest, WorkflowError, Workflows};

/// A run of an agent that shall begin.
#[derive(Clone, Debug)]
pub struct AgentOrder {
    pub scope: Scope,
    /// The id that the run gets, unless one with the same idempotency key is there.
    pub run: RunId,
    pub workflow: ArtifactId,
    pub revision: RevisionId,
    /// What the revision says, with everything in it that was embedded.
    pub data: Value,
    pub request: InvokeRequest,
    /// How long its caller waits.
    pub limit: Duration,
}

/// How a run stands when its caller has waited long enough.
#[derive(Clone, Debug)]
pub struct AgentReply {
    pub run: RunId,
    /// 202 while it goes on or waits for a person.
    pub code: i64,
    pub message: String,
    pub outputs: Option<Value>,
    /// The approval that it waits for.
    pub waits_for: Option<ApprovalId>,
}

/// Why a run of an agent did not begin.
#[derive(Clone, Debug)]
pub struct AgentRefusal {
    pub code: i64,
    pub message: String,
}

/// Runs agents.
pub trait AgentRunner: Send + Sync + std::fmt::Debug {
    /// Refuses data that names what is not there, in words for the author.
    fn check<'a>(&'a self, scope: Scope, data: &'a Value) -> BoxFuture<'a, Result<(), WorkflowError>>;

    /// Begins a run, or joins the one with the same idempotency key, and waits for its end. Dropping the future ends the waiting only.
    fn run(&self, order: AgentOrder) -> BoxFuture<'_, Result<AgentReply, AgentRefusal>>;
}

impl Workflows {
    /// Refuses an agent that could not run. What is embedded is known only when it runs.
    pub(crate) async fn check_agent(&self, scope: Scope, data: &Value) -> Result<(), WorkflowError> {
        match self.0.agents.get() {
            Some(agents) if is_own_agent(data) && !contains_embed(data) => agents.check(scope, data).await,
            _ => Ok(()),
        }
    }
}
