//! Agents, the apps assigned to them, and the one answer to which tools an agent may use right now. It must never know HTTP, how a
//! connection is made or how a tool is run.

mod app;
mod apps;
mod assign;
mod call;
mod consumer;
mod daily;
mod edit;
mod error;
mod keys;
mod life;
mod market;
mod model;
mod patch;
mod policy;
mod reason;
mod stable_id;
mod store;
pub mod toolset;
mod wanted;

use ::store::Db;
use calls::Calls;
use catalog::Catalog;
use connections::{AccountsOf, Connections};
use definitions::Definitions;
use kernel::{Clock, Shared};
use work::Workers;

pub use app::AppName;
pub use apps::{AppStatus, Apps, Route};
pub use call::AgentCall;
pub use daily::{DailyFilter, Day, Tally};
pub use edit::Precondition;
pub use error::AgentError;
pub use life::{AgentFilter, AgentView, AssignedApp, Stats};
pub use market::{AppFilter, ProjectApp};
pub use model::{Agent, AgentPatch, AgentRef, Assignment, Change, HistoryEntry, HistoryPage, NewAgent, Status, ToolMode};
pub use policy::{Access, AppPolicy};
pub use reason::Reason;
pub use stable_id::StableToolId;
pub use toolset::{ToolOwner, Toolset};
pub use wanted::{Rejected, RequestedTool};

/// The agents of a deployment.
#[derive(Clone, Debug)]
pub struct Agents(Shared<Parts>);

/// What agents are made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub catalog: Catalog,
    pub connections: Connections,
    pub workers: Workers,
    pub definitions: Definitions,
    pub calls: Calls,
}

impl Agents {
    pub fn new(parts: Parts) -> Self {
        Self(Shared::new(parts))
    }

    /// The apps of a project, or of one of its end users, as they are now.
    pub async fn apps(&self, of: impl Into<AccountsOf>) -> Result<Apps, AgentError> {
        let of = of.into();
        let rows = self.0.connections.choices(of, None, None).await?;
        let added = store::apps::all(&self.0.db, of.of_project()).await?;
        Ok(Apps::new(of, self.0.catalog.clone(), rows, added))
    }
}
