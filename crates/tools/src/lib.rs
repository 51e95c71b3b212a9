//! Calling tools: refs to targets, permissions, arguments, dispatch, the audit trail. It must never know HTTP or how a provider is
//! reached; that is the runner's business.

mod audit;
mod call;
pub mod config;
mod error;
pub mod format;
mod idempotency;
pub mod permission;
mod port;
mod resolve;

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Catalog;
use connections::Connections;
use kernel::Clock;
use store::Db;
use tokio_util::task::TaskTracker;

pub use audit::{Audit, CallFilter, CallPage, CallRecord, Outcome};
pub use call::{CallReply, CallRequest};
pub use error::CallError;
pub use port::{Invocation, RunError, Runner, ToolResult};
pub use resolve::{Definitions, ResolveError, Resolved, ResolvedTool};

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
    /// By provider.
    pub runners: HashMap<&'static str, Arc<dyn Runner>>,
    pub audit: Audit,
    /// Calls under way.
    pub tasks: TaskTracker,
}

impl Tools {
    pub fn new(db: Db, clock: Clock, catalog: Catalog, connections: Connections, runners: HashMap<&'static str, Arc<dyn Runner>>) -> Self {
        let audit = Audit::start(db.clone());
        Self(Arc::new(Parts { db, clock, catalog, connections, runners, audit, tasks: TaskTracker::new() }))
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
