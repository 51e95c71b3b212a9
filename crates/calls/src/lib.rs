//! Calls of tools: from a ref to what it names, permissions and approvals, arguments, idempotency, dispatch, runs of workflows, the audit
//! trail. It must never know HTTP, how a provider is reached (that is the runner's business), or how a tool is described to a model.

mod approvals;
mod audit;
mod call;
mod connected;
mod consumer;
mod error;
mod explain;
mod idempotency;
mod notices;
mod outlive;
mod patterns;
pub mod permission;
mod personal;
mod platform;
mod policy;
mod port;
mod reserved;
mod retention;
mod runs;
mod steps;
mod user_limits;

use std::collections::HashMap;
use std::sync::Arc;

use accounts::Accounts;
use catalog::Catalog;
use connections::Connections;
use discovery::Discovery;
use egress::Egress;
use kernel::seal::Sealer;
use kernel::{ApprovalId, Clock, ProjectId, Shared};
use store::{Db, Remembered};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use work::Workers;
use workflows::{Executor, Workflows};

pub use approvals::{Approval, ApprovalFilter, ApprovalPage, ApprovalStatus};
pub(crate) use audit::{Audit, Keeper};
pub use audit::{
    AuditSettings, CallFilter, CallPage, CallRecord, CallStats, FailingTool, KeptCall, NewestCalls, Node, Outcome, ResealError, StatBucket,
    Timings, reseal,
};
pub use call::{CallReply, CallRequest, UsedAccount, read_arguments};
pub use connected::GatewayContext;
pub use error::CallError;
pub use explain::Explanation;
pub use idempotency::Resumes;
pub use notices::{Notice, NoticeWay};
pub use platform::{NoRoute, OpRequest, OwnRoutes};
pub use policy::{PolicyView, ProjectPolicy};
pub use port::{Invocation, Progress, ProgressStep, RunError, Runner, ToolResult, UpstreamKey};
pub use retention::{Forgotten, Limits};

/// The calls of a deployment.
#[derive(Clone, Debug)]
pub struct Calls(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    catalog: Catalog,
    connections: Connections,
    discovery: Discovery,
    workflows: Workflows,
    /// Runs them; nothing outside this crate does.
    executor: Executor,
    /// By provider.
    runners: HashMap<&'static str, Arc<dyn Runner>>,
    audit: Audit,
    limits: Limits,
    op_address: fn(&str) -> String,
    public_url: String,
    approval_address: fn(&str, &str, ApprovalId) -> String,
    accounts: Accounts,
    egress: Egress,
    notice_turns: notices::Turns,
    workers: Workers,
    sealer: Sealer,
    keeper: Keeper,
    policies: Remembered<ProjectId, Arc<policy::Policy>>,
    /// For how many days projects keep arguments and results.
    keepings: Remembered<ProjectId, i64>,
    user_counts: user_limits::UserCounts,
    runnables: Remembered<runs::RunKey, Arc<runs::Runnable>>,
    /// Changes with every decision of a person that is made on this node.
    decisions: watch::Sender<()>,
    /// Calls under way.
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What calls are made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub catalog: Catalog,
    pub connections: Connections,
    pub discovery: Discovery,
    pub executor: Executor,
    /// By provider.
    pub runners: HashMap<&'static str, Arc<dyn Runner>>,
    pub audit: AuditSettings,
    pub limits: Limits,
    /// Where the edge takes the call of an op that is a request of its own.
    pub op_address: fn(&str) -> String,
    pub public_url: String,
    /// Where a person decides about an approval, from the public address and the project's slug.
    pub approval_address: fn(&str, &str, ApprovalId) -> String,
    pub accounts: Accounts,
    pub egress: Egress,
}

impl Calls {
    pub fn new(parts: Parts) -> Self {
        let Parts {
            db,
            clock,
            sealer,
            catalog,
            connections,
            discovery,
            executor,
            runners,
            audit,
            limits,
            op_address,
            public_url,
            approval_address,
            accounts,
            egress,
        } = parts;
        let workers = executor.workflows().workers().clone();
        let calls = Self(Shared::new(Inner {
            keeper: Keeper::start(db.clone(), sealer.clone(), workers.clone()),
            keepings: Remembered::new(&db, &["call_keeping"], policy::MAX_REMEMBERED),
            user_counts: user_limits::UserCounts::new(&db),
            sealer,
            audit: Audit::start(db.clone(), clock.clone(), audit),
            policies: Remembered::new(&db, &["tool_policies"], policy::MAX_REMEMBERED),
            runnables: Remembered::new(&db, &["artifacts", "variants", "revisions"], runs::MAX_REMEMBERED),
            db,
            clock,
            catalog,
            connections,
            discovery,
            workflows: executor.workflows().clone(),
            workers,
            executor,
            runners,
            limits,
            op_address,
            public_url,
            approval_address,
            accounts,
            egress,
            notice_turns: notices::Turns::default(),
            decisions: watch::Sender::new(()),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }));
        calls.0.executor.set_caller(Arc::new(steps::Caller::new(&calls)));
        calls
    }

    /// How many calls of this process ended how.
    pub fn call_counts(&self) -> [(Outcome, u64); Outcome::ENDS.len()] {
        self.0.audit.counts()
    }

    /// How many ended calls the database did not take yet.
    pub fn unwritten_calls(&self) -> u64 {
        self.0.audit.unwritten()
    }

    /// Waits for calls under way and for their rows in the record.
    #[kernel::boxed]
    pub async fn drain(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.audit.settled().await;
        self.0.keeper.settled().await;
    }
}
