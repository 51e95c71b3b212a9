//! The runs of agents that were made for an end user, as what is kept about them. What ended has its record among the runs of workflows.

use end_users::{Export, Forgotten, PersonalError, PersonalRows};
use futures_util::future::BoxFuture;
use kernel::{EndUserId, Scope};
use serde_json::{Value, json};
use store::args;

use crate::rows::{self, in_session_of};
use crate::{AgentRuns, RunError};

/// How many runs are removed in one transaction.
const AT_ONCE: i64 = 100;
/// How many runs an export holds.
const MOST_EXPORTED: i64 = 10_000;

impl PersonalRows for AgentRuns {
    fn forget(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Forgotten, PersonalError>> {
        Box::pin(async move {
            let db = &self.0.parts.db;
            for id in rows::open_of_end_user(db, scope.project, end_user).await? {
                match self.cancel(scope, id).await {
                    Ok(_) | Err(RunError::Ended(_) | RunError::NotFound) => {}
                    Err(error) => return Err(PersonalError::Failed(error.to_string())),
                }
            }
            let mut forgotten = 0;
            loop {
                let ids = rows::of_end_user(db, scope.project, end_user, AT_ONCE).await?;
                if ids.is_empty() {
                    break;
                }
                forgotten += self.remove(scope.project, &ids).await?;
            }
            let sessions = "delete from agent_sessions where project_id = $1 and session_id like $2 escape '\\'";
            db.execute(sessions, args![scope.project, store::holding(&in_session_of(end_user, ""))]).await?;
            Ok(Forgotten::from([("agent_runs", forgotten)]))
        })
    }

    fn export(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Export, PersonalError>> {
        Box::pin(async move {
            let mut runs = Vec::new();
            for id in rows::of_end_user(&self.0.parts.db, scope.project, end_user, MOST_EXPORTED).await? {
                runs.extend(rows::by_id(&self.0.parts.db, scope.project, id).await?.map(|run| exported(&run)));
            }
            Ok(Export::from([("agent_runs", Value::from(runs))]))
        })
    }
}

fn exported(run: &rows::AgentRun) -> Value {
    json!({"id": run.id, "state": run.state.name(), "session_id": run.session, "inputs": run.inputs, "outputs": run.outputs,
        "created_at": run.created_at.to_string()})
}
