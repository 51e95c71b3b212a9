//! Calling tools: refs to targets, permissions, arguments, dispatch, the audit trail. It must never know HTTP or how a provider is
//! reached; that is the runner's business.

mod approvals;
mod audit;
mod call;
pub mod config;
pub mod discover;
mod error;
pub mod format;
mod idempotency;
pub mod ops;
mod patterns;
pub mod permission;
mod platform;
mod policy;
mod port;
mod reserved;
mod resolve;
mod runs;
mod specs;
mod steps;

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Catalog;
use connections::Connections;
use kernel::Clock;
use store::Db;
use tokio_util::task::TaskTracker;
use workflows::{Executor, Workflows};

pub use approvals::{Approval, ApprovalFilter, ApprovalPage, ApprovalStatus};
pub use audit::{Audit, CallFilter, CallPage, CallRecord, Outcome};
pub use call::{CallReply, CallRequest, read_arguments};
pub use discover::{Discover, Discovered};
pub use error::CallError;
pub use platform::{NoRoute, OpRequest, OwnRoutes};
pub use policy::{ProjectWord, Word};
pub use port::{FindError, Finder, Invocation, Named, Progress, RunError, Runner, Step, Suggestion, ToolResult};
pub use resolve::{Definitions, ResolveError, Resolved, ResolvedTool};
pub use specs::{Referenced, SpecSet, ToolCallback, ToolSpec};

/// The tools of a deployment.
#[derive(Clone, Debug)]
pub struct Tools(Arc<Parts>);

/// What tools are made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub catalog: Catalog,
    pub connections: Connections,
    pub workflows: Workflows,
    /// Runs them; nothing outside this crate does.
    executor: Executor,
    /// By provider.
    pub runners: HashMap<&'static str, Arc<dyn Runner>>,
    pub audit: Audit,
    policies: policy::Policies,
    offers: discover::Offers,
    advisors: Vec<Arc<discover::Advisor>>,
    lessons: discover::Lessons,
    /// Calls under way.
    pub tasks: TaskTracker,
}

impl Tools {
    pub fn new(
        db: Db,
        clock: Clock,
        catalog: Catalog,
        connections: Connections,
        executor: Executor,
        runners: HashMap<&'static str, Arc<dyn Runner>>,
        finders: Vec<Arc<dyn Finder>>,
    ) -> Self {
        let audit = Audit::start(db.clone());
        let parts = Parts {
            db,
            clock,
            catalog,
            connections,
            workflows: executor.workflows().clone(),
            executor,
            runners,
            audit,
            policies: policy::Policies::default(),
            offers: discover::Offers::default(),
            advisors: finders.into_iter().map(|finder| Arc::new(discover::Advisor::new(finder))).collect(),
            lessons: discover::Lessons::default(),
            tasks: TaskTracker::new(),
        };
        let tools = Self(Arc::new(parts));
        tools.executor.set_caller(Arc::new(steps::Caller::new(&tools)));
        tools
    }

    /// Waits for calls under way and for their rows in the record.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.audit.settled().await;
    }
}

impl std::ops::Deref for Tools {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
