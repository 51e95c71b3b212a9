//! Workflows and environments: artifact, variant and revision, deployment, embeds, and running a revision. It must never know what a tool
//! is; a step that calls one goes through a port. Only who holds the `Executor` can run anything.

mod agent;
mod calling;
pub mod changeset;
mod commit;
mod data;
pub mod embed;
mod embedded;
mod environments;
mod error;
mod fetch;
mod flags;
mod fork;
mod headers;
mod histories;
mod http;
mod invoke;
mod model;
mod personal;
mod port;
mod reference;
mod retention;
mod run_stats;
mod runs;
mod simple;
mod steps;
mod store;
mod tags;
mod unread;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use ::store::{Db, GroupCommit};
use egress::Egress;
use kernel::seal::Sealer;
use kernel::signed::Signer;
use kernel::{Clock, Shared};
use secrets::Secrets;
use work::Workers;

pub use agent::{AgentOrder, AgentRefusal, AgentReply, AgentRunner};
pub use calling::CallingWorkflow;
pub use commit::{Change, Committed, Delta, NewRevision};
pub use environments::{DEFAULT_ENVIRONMENTS, Deploy, Deployed};
pub use error::{MissingRow, RowKind, WorkflowError};
pub use fetch::{Deployment, Retrieved, deployment_key};
pub use fork::Fork;
pub use invoke::{Executor, InvokeReply, InvokeRequest, MAX_DEPTH, RUN_LIMIT};
pub use model::{Artifact, Edit, Family, FirstRevision, NewArtifact, NewVariant, Query, Revision, Simple, Variant, Words};
pub use port::{ChangeJudge, NotRun, RefusedChange, Runs};
pub use reference::{Reference, References};
pub use retention::RunLimits;
pub use run_stats::{RunBucket, RunStats};
pub use runs::{Run, RunFilter, RunPage, RunState, WrittenRun, reseal};
pub use steps::{MAX_RUN as MAX_STEP_BYTES, StepCall, StepCaller, StepError, StepRecord, StepState};

/// The workflows and environments of a deployment.
#[derive(Clone, Debug)]
pub struct Workflows(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    egress: Egress,
    signer: Signer,
    sealer: Sealer,
    secrets: Secrets,
    limits: RunLimits,
    workers: Workers,
    caller: OnceLock<Arc<dyn StepCaller>>,
    agents: OnceLock<Arc<dyn AgentRunner>>,
    /// How many runs are under way on this node.
    running: AtomicU64,
    /// Where the rows of runs are written.
    run_rows: GroupCommit<WrittenRun>,
}

/// What workflows are made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub egress: Egress,
    pub signer: Signer,
    pub sealer: Sealer,
    pub secrets: Secrets,
    pub limits: RunLimits,
    pub workers: Workers,
}

impl Workflows {
    /// The workflows, and the one handle that runs them.
    pub fn open(parts: Parts) -> (Self, Executor) {
        let Parts { db, clock, egress, signer, sealer, secrets, limits, workers } = parts;
        let (caller, agents, running, run_rows) = (OnceLock::new(), OnceLock::new(), AtomicU64::new(0), GroupCommit::start(db.clone()));
        let inner = Inner { db, clock, egress, signer, sealer, secrets, limits, workers, caller, agents, running, run_rows };
        let workflows = Self(Shared::new(inner));
        let executor = Executor::over(workflows.clone());
        (workflows, executor)
    }

    /// Names who runs agents; they come after workflows in the house, so they are named later.
    pub fn set_agents(&self, agents: Arc<dyn AgentRunner>) {
        let _ = self.0.agents.set(agents);
    }

    /// Where work of unknown size is done.
    pub fn workers(&self) -> &Workers {
        &self.0.workers
    }
}
