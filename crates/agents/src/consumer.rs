//! Agents as users of connections.

use std::collections::HashSet;

use ::store::StoreError;
use connections::{Connection, ConnectionError, ConnectionUser, Consumer};
use futures_util::future::BoxFuture;
use kernel::{AgentId, ConnectionId, ProjectId};

use crate::{Agents, AppName, store};

impl Agents {
    /// The agents that may use a connection: those that its app is assigned to, and those that use every app of the project.
    async fn users_of(&self, connection: &Connection) -> Result<HashSet<AgentId>, StoreError> {
        let (db, project, app) = (&self.0.db, connection.project, AppName::of(&connection.integration));
        let assigned = store::assignments::of_app(db, project, &app).await?;
        let fitting = assigned.into_iter().filter(|assignment| assignment.policy.fits(&connection.provider, &connection.slug));
        let inheriting = store::agents::inheriting(db, project, &app).await?;
        Ok(fitting.map(|assignment| assignment.agent).chain(inheriting).collect())
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
            Ok(i64::try_from(self.users_of(&row).await?.len()).unwrap_or(i64::MAX))
        })
    }

    fn users<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<Vec<ConnectionUser>, StoreError>> {
        Box::pin(async move {
            let using = self.users_of(connection).await?;
            if using.is_empty() {
                return Ok(Vec::new());
            }
            let all = store::agents::names(&self.0.db, connection.project).await?;
            let user = |(id, _, name): (AgentId, i64, String)| ConnectionUser { kind: "agent", id: id.to_string(), name };
            Ok(all.into_iter().filter(|(id, ..)| using.contains(id)).map(user).collect())
        })
    }
}
