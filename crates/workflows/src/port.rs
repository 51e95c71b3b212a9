//! The port by which triggers start workflows. Whoever answers it asks the project's permission rules first.

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use kernel::{ApprovalId, ProjectId, Scope};
use store::StoreError;

use crate::{InvokeReply, InvokeRequest, WorkflowError};

/// Starts workflows under the project's permission rules.
pub trait Runs: Send + Sync + std::fmt::Debug {
    /// Runs what the request names, if the rules allow it.
    fn run(&self, scope: Scope, request: InvokeRequest) -> BoxFuture<'_, Result<InvokeReply, NotRun>>;

    /// The project's approvals that nobody has decided.
    fn undecided(&self, project: ProjectId) -> BoxFuture<'_, Result<HashSet<ApprovalId>, StoreError>>;
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
