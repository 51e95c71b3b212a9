//! Agents, the apps assigned to them, and the one answer to which tools an agent may use right now. It must never know HTTP, how a
//! connection is made or how a tool is run.

mod app;
mod apps;
mod assign;
mod call;
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

use std::sync::Arc;

use ::store::{Db, StoreError};
use calls::Calls;
use catalog::Catalog;
use connections::{ConnectionError, Connections, Consumer};
use definitions::Definitions;
use futures_util::future::BoxFuture;
use kernel::{Clock, ConnectionId, ProjectId};
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
pub use toolset::Toolset;
pub use wanted::{Rejected, RequestedTool};

/// The agents of a deployment.
#[derive(Clone, Debug)]
pub struct Agents(Arc<Parts>);

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
        Self(Arc::new(parts))
    }

    /// The apps of a project as they are now.
    pub async fn apps(&self, project: ProjectId) -> Result<Apps, AgentError> {
        let rows = self.0.connections.choices(project, None, None).await?;
        let added = store::apps::all(&self.0.db, project).await?;
        Ok(Apps::new(project, self.0.catalog.clone(), rows, added))
    }
}

/// An agent uses every connection of its apps that it is not told to leave alone.
impl Consumer for Agents {
    fn kind(&self) -> &'static str {
        "agents"
    }

    fn count(&self, project: ProjectId, connection: ConnectionId) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(async move {
            let row = match self.0.connections.get(project, connection).await {
                Ok(row) => row,
                Err(ConnectionError::Store(error)) => return Err(error),
                Err(_) => return Ok(0),
            };
            let assigned = store::assignments::of_app(&self.0.db, project, &AppName::of(&row.integration)).await?;
            let used = assigned.iter().filter(|assignment| assignment.policy.fits(&row.provider, &row.slug)).count();
            Ok(i64::try_from(used).unwrap_or(i64::MAX))
        })
    }
}
