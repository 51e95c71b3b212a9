//! The runs that were made for an end user, as what is kept about them.

use end_users::{Export, Forgotten, PersonalError, PersonalRows};
use futures_util::future::BoxFuture;
use kernel::{EndUserId, Scope};
use serde_json::{Value, json};
use store::{Row, StoreError, args};
use uuid::Uuid;

use crate::Workflows;
use crate::retention::RUNS;

/// How many runs an export holds.
const MOST_EXPORTED: i64 = 10_000;

impl PersonalRows for Workflows {
    fn forget(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Forgotten, PersonalError>> {
        Box::pin(async move {
            let sql = "select id from workflow_runs where project_id = $1 and end_user_id = $2";
            let rows = self.0.db.all(sql, args![scope.project, end_user]).await?;
            let ids = rows.iter().map(|row| row.get("id")).collect::<Result<Vec<Uuid>, StoreError>>()?;
            let delete = "delete from workflow_runs where project_id = $1 and id = $2 returning size";
            let gone = self.0.db.remove_counted(scope.project, Some(RUNS), delete, &ids).await?;
            Ok(Forgotten::from([("runs", gone)]))
        })
    }

    fn export(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Export, PersonalError>> {
        Box::pin(async move {
            let sql = "select id, workflow_id, code, inputs, outputs, created_at from workflow_runs \
                       where project_id = $1 and end_user_id = $2 order by id desc limit $3";
            let rows = self.0.db.all(sql, args![scope.project, end_user, MOST_EXPORTED]).await?;
            let runs = rows.iter().map(run).collect::<Result<Vec<Value>, StoreError>>()?;
            Ok(Export::from([("runs", runs.into())]))
        })
    }
}

fn run(row: &Row) -> Result<Value, StoreError> {
    let at: kernel::Timestamp = row.get("created_at")?;
    Ok(json!({
        "id": row.get::<Uuid>("id")?, "workflow_id": row.get::<Uuid>("workflow_id")?, "code": row.get::<i64>("code")?,
        "inputs": row.get::<Value>("inputs")?, "outputs": row.get::<Option<Value>>("outputs")?, "created_at": at.to_string(),
    }))
}
