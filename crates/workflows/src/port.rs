//! What workflows ask of others: `Runs`, by which triggers start workflows and which asks the project's permission rules first, and
//! `ChangeJudge`, who must agree with a change before it is kept.

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use kernel::{ApprovalId, ProjectId, Scope};
use serde_json::Value;
use store::StoreError;
use tokio::sync::watch;

use crate::{InvokeReply, InvokeRequest, WorkflowError};

/// Starts workflows under the project's permission rules.
pub trait Runs: Send + Sync + std::fmt::Debug {
    /// Runs what the request names, if the rules allow it.
    fn run(&self, scope: Scope, request: InvokeRequest) -> BoxFuture<'_, Result<InvokeReply, NotRun>>;

    /// The project's approvals that nobody has decided.
    fn undecided(&self, project: ProjectId) -> BoxFuture<'_, Result<HashSet<ApprovalId>, StoreError>>;

    /// Hears whenever a person decides something, on this node.
    fn decisions(&self) -> watch::Receiver<()>;
}

/// Why a workflow was not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// The project's rules, or a person, say no.
    #[error("{0}")]
    Denied(String),
    /// A person has to allow it first; asked again after that, it runs.
    #[error("{message}")]
    Waiting { approval: ApprovalId, message: String },
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
}

/// Says whether data may become other data.
pub trait ChangeJudge: Send + Sync + std::fmt::Debug {
    /// Compares the data before and after, so that every way to write a change is judged alike.
    fn judge(&self, before: &Value, after: &Value) -> Result<(), RefusedChange>;
}

/// A change that its author may not make.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RefusedChange {
    /// A name for the reason that stays the same across releases.
    pub code: &'static str,
    /// The JSON Pointer of what would change.
    pub place: String,
    pub message: String,
}
