//! Agents as users of connections.

use std::collections::HashSet;

use ::store::StoreError;
use connections::{Connection, ConnectionError, ConnectionUser, Consumer};
use futures_util::future::BoxFuture;
use kernel::{AgentId, ConnectionId, ProjectId};

use crate::{Agents, AppName, Assignment, store};

impl Agents {
    /// The assignments that a connection is used for.
    async fn assignments_of(&self, connection: &Connection) -> Result<Vec<Assignment>, StoreError> {
        let assigned = store::assignments::of_app(&self.0.db, connection.project, &AppName::of(&connection.integration)).await?;
        let fits = |assignment: &Assignment| assignment.policy.fits(&connection.provider, &connection.slug);
        Ok(assigned.into_iter().filter(fits).collect())
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
            Ok(i64::try_from(self.assignments_of(&row).await?.len()).unwrap_or(i64::MAX))
        })
    }

    fn users<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<Vec<ConnectionUser>, StoreError>> {
        Box::pin(async move {
            let assigned: HashSet<AgentId> = self.assignments_of(connection).await?.iter().map(|assignment| assignment.agent).collect();
            if assigned.is_empty() {
                return Ok(Vec::new());
            }
            let all = store::agents::names(&self.0.db, connection.project).await?;
            let user = |(id, _, name): (AgentId, i64, String)| ConnectionUser { kind: "agent", id: id.to_string(), name };
            Ok(all.into_iter().filter(|(id, ..)| assigned.contains(id)).map(user).collect())
        })
    }
}
