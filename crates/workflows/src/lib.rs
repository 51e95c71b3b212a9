//! Workflows and environments: artifact, variant and revision, deployment, embeds, and running a revision. It must never know what a tool
//! is; a step that calls one goes through a port. Only who holds the `Executor` can run anything.

pub mod changeset;
mod commit;
mod data;
pub mod embed;
mod embedded;
mod environments;
mod error;
mod fetch;
mod histories;
mod http;
mod invoke;
mod model;
mod port;
mod reference;
mod runs;
mod steps;
mod store;

use std::sync::{Arc, OnceLock};

use ::store::Db;
use egress::Egress;
use kernel::Clock;
use kernel::seal::Sealer;
use kernel::signed::Signer;

pub use commit::{Change, Committed, Delta, NewRevision};
pub use environments::{DEFAULT_ENVIRONMENTS, Deploy, Deployed};
pub use error::WorkflowError;
pub use fetch::{Retrieved, deployment_key};
pub use invoke::{Executor, InvokeReply, InvokeRequest, MAX_DEPTH, RUN_LIMIT};
pub use model::{Artifact, Edit, Family, NewArtifact, NewVariant, Query, Revision, Variant};
pub use port::{NotRun, Runs};
pub use reference::{Reference, References};
pub use runs::{Run, RunFilter, RunPage, reseal};
pub use steps::{StepCall, StepCaller, StepError, StepRecord, StepState};

/// The workflows and environments of a deployment.
#[derive(Clone, Debug)]
pub struct Workflows(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    egress: Egress,
    signer: Signer,
    sealer: Sealer,
    caller: OnceLock<Arc<dyn StepCaller>>,
}

impl Workflows {
    /// The workflows, and the one handle that runs them.
    pub fn open(db: Db, clock: Clock, egress: Egress, signer: Signer, sealer: Sealer) -> (Self, Executor) {
        let workflows = Self(Arc::new(Inner { db, clock, egress, signer, sealer, caller: OnceLock::new() }));
        let executor = Executor::over(workflows.clone());
        (workflows, executor)
    }
}
