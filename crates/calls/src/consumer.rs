//! Calls as users of connections, and the workflows that will call through them.

use connections::{Connection, ConnectionUser, Consumer};
use futures_util::future::BoxFuture;
use kernel::{CallRef, ConnectionId, ProjectId};
use store::{StoreError, args};
use workflows::CallingWorkflow;

use crate::Calls;

/// The calls made through a connection count as its use. Who would miss it are the workflows whose steps name it: workflows know no
/// connections, and calls know both.
impl Consumer for Calls {
    fn kind(&self) -> &'static str {
        "tools"
    }

    fn count(&self, project: ProjectId, connection: ConnectionId) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(async move {
            self.0.audit.settled().await;
            let sql = "select count(*) as calls from tool_calls where project_id = $1 and connection_id = $2";
            let row = self.0.db.optional(sql, args![project, connection]).await?;
            row.map_or(Ok(0), |row| row.get("calls"))
        })
    }

    fn users<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<Vec<ConnectionUser>, StoreError>> {
        Box::pin(async move {
            let calling = self.0.workflows.calling(connection.project, &connection.slug, |call| names(call, connection)).await?;
            Ok(calling.into_iter().map(user).collect())
        })
    }
}

fn user(workflow: CallingWorkflow) -> ConnectionUser {
    ConnectionUser { kind: "workflow", id: workflow.id.to_string(), name: workflow.name.unwrap_or(workflow.slug) }
}

/// Whether a ref leads through a connection.
fn names(call: &CallRef, through: &Connection) -> bool {
    matches!(call, CallRef::Gateway { provider, integration, connection, .. }
        if *provider == through.provider && *integration == through.integration && *connection == through.slug)
}
