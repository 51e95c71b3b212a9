//! What is kept about an end user of calls and approvals.

use end_users::{Export, Forgotten, PersonalError, PersonalRows};
use futures_util::future::BoxFuture;
use kernel::{EndUserId, ProjectId, Scope};
use serde_json::{Value, json};
use store::{Row, StoreError, args};
use uuid::Uuid;

use crate::Calls;
use crate::audit::KEPT;
use crate::retention::APPROVALS;

/// How many rows of a kind an export holds.
const MOST_EXPORTED: i64 = 10_000;

impl PersonalRows for Calls {
    /// Removes approvals, what calls were made with and what they came to, and what the record says in words. That a call was made stays, for an
    /// end user without a name.
    fn forget(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Forgotten, PersonalError>> {
        Box::pin(async move {
            self.0.audit.settled().await;
            let (db, project) = (&self.0.db, scope.project);
            let approvals = self.ids("select id from tool_approvals where project_id = $1 and end_user_id = $2", project, end_user).await?;
            let delete = "delete from tool_approvals where project_id = $1 and id = $2 returning size";
            let approvals = db.remove_counted(project, Some(APPROVALS), delete, &approvals).await?;
            let kept = "select k.id from kept_calls k join tool_calls c on c.project_id = k.project_id and c.id = k.id \
                        where c.project_id = $1 and c.end_user_id = $2";
            let kept = self.ids(kept, project, end_user).await?;
            let delete = "delete from kept_calls where project_id = $1 and id = $2 returning size";
            let results = db.remove_counted(project, Some(KEPT), delete, &kept).await?;
            let replies = "delete from tool_idempotency where project_id = $1 and name like $2";
            db.execute(replies, args![project, format!("%/{end_user}:%")]).await?;
            let said = "update tool_calls set message = null where project_id = $1 and end_user_id = $2";
            let calls = db.execute(said, args![project, end_user]).await?;
            Ok(Forgotten::from([("approvals", approvals), ("results", results), ("calls", calls)]))
        })
    }

    fn export(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Export, PersonalError>> {
        Box::pin(async move {
            self.0.audit.settled().await;
            let sql = "select id, call_ref, connection_id, outcome, message, created_at from tool_calls \
                       where project_id = $1 and end_user_id = $2 order by id desc limit $3";
            let rows = self.0.db.all(sql, args![scope.project, end_user, MOST_EXPORTED]).await?;
            let calls = rows.iter().map(called).collect::<Result<Vec<Value>, StoreError>>()?;
            let sql = "select id, call_ref, arguments, status, note, created_at from tool_approvals \
                       where project_id = $1 and end_user_id = $2 order by id desc limit $3";
            let rows = self.0.db.all(sql, args![scope.project, end_user, MOST_EXPORTED]).await?;
            let approvals = rows.iter().map(asked).collect::<Result<Vec<Value>, StoreError>>()?;
            Ok(Export::from([("calls", calls.into()), ("approvals", approvals.into())]))
        })
    }
}

impl Calls {
    async fn ids(&self, sql: &'static str, project: ProjectId, end_user: EndUserId) -> Result<Vec<Uuid>, StoreError> {
        self.0.db.all(sql, args![project, end_user]).await?.iter().map(|row| row.get("id")).collect()
    }
}

fn called(row: &Row) -> Result<Value, StoreError> {
    let at: kernel::Timestamp = row.get("created_at")?;
    Ok(json!({
        "id": row.get::<Uuid>("id")?, "call_ref": row.get::<String>("call_ref")?, "connection_id": row.get::<Option<Uuid>>("connection_id")?,
        "outcome": row.get::<String>("outcome")?, "message": row.get::<Option<String>>("message")?, "created_at": at.to_string(),
    }))
}

fn asked(row: &Row) -> Result<Value, StoreError> {
    let at: kernel::Timestamp = row.get("created_at")?;
    Ok(json!({
        "id": row.get::<Uuid>("id")?, "call_ref": row.get::<String>("call_ref")?, "arguments": row.get::<Value>("arguments")?,
        "status": row.get::<String>("status")?, "note": row.get::<Option<String>>("note")?, "created_at": at.to_string(),
    }))
}
