//! The triggers of an end user, with what came in for them, as what is kept about them.

use end_users::{Export, Forgotten, PersonalError, PersonalRows};
use futures_util::future::BoxFuture;
use kernel::{EndUserId, Scope, SubscriptionId};
use serde_json::{Value, json};
use store::{Row, StoreError, args};
use uuid::Uuid;

use crate::{TriggerError, Triggers};

/// Everything that hangs on a trigger, then the triggers, in an order in which nothing is left over.
const PARTS: [&str; 4] = [
    "delete from trigger_attempts where project_id = $1 and delivery_id in (select id from trigger_deliveries where project_id = $1 \
     and (subscription_id in (select id from trigger_subscriptions where project_id = $1 and end_user_id = $2) \
     or schedule_id in (select id from trigger_schedules where project_id = $1 and end_user_id = $2)))",
    "delete from trigger_deliveries where project_id = $1 \
     and (subscription_id in (select id from trigger_subscriptions where project_id = $1 and end_user_id = $2) \
     or schedule_id in (select id from trigger_schedules where project_id = $1 and end_user_id = $2))",
    "delete from trigger_events where project_id = $1 \
     and subscription_id in (select id from trigger_subscriptions where project_id = $1 and end_user_id = $2)",
    "delete from trigger_signatures where project_id = $1 \
     and subscription_id in (select id from trigger_subscriptions where project_id = $1 and end_user_id = $2)",
];

impl PersonalRows for Triggers {
    /// Ends them at their providers first, then removes them with all that came in.
    fn forget(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Forgotten, PersonalError>> {
        Box::pin(async move {
            let sql = "select id from trigger_subscriptions where project_id = $1 and end_user_id = $2 and deleted_at is null";
            for row in self.0.db.all(sql, args![scope.project, end_user]).await? {
                match self.unsubscribe(scope, row.get::<SubscriptionId>("id")?).await {
                    Ok(()) | Err(TriggerError::NotFound(_)) => {}
                    Err(TriggerError::Store(error)) => return Err(error.into()),
                    Err(error) => return Err(PersonalError::Failed(error.to_string())),
                }
            }
            let mut tx = self.0.db.begin().await?;
            for part in PARTS {
                tx.execute(part, args![scope.project, end_user]).await?;
            }
            let sql = "delete from trigger_subscriptions where project_id = $1 and end_user_id = $2";
            let subscriptions = tx.execute(sql, args![scope.project, end_user]).await?;
            let schedules = tx
                .execute("delete from trigger_schedules where project_id = $1 and end_user_id = $2", args![scope.project, end_user])
                .await?;
            tx.commit().await?;
            Ok(Forgotten::from([("subscriptions", subscriptions), ("schedules", schedules)]))
        })
    }

    fn export(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Export, PersonalError>> {
        Box::pin(async move {
            let sql = "select id, name, event_key, data, is_active, created_at from trigger_subscriptions where project_id = $1 and end_user_id = $2 order by id";
            let rows = self.0.db.all(sql, args![scope.project, end_user]).await?;
            let subscriptions = rows.iter().map(shown).collect::<Result<Vec<Value>, StoreError>>()?;
            let sql = "select id, name, event_key, data, is_active, created_at from trigger_schedules where project_id = $1 and end_user_id = $2 order by id";
            let rows = self.0.db.all(sql, args![scope.project, end_user]).await?;
            let schedules = rows.iter().map(shown).collect::<Result<Vec<Value>, StoreError>>()?;
            Ok(Export::from([("subscriptions", subscriptions.into()), ("schedules", schedules.into())]))
        })
    }
}

fn shown(row: &Row) -> Result<Value, StoreError> {
    let at: kernel::Timestamp = row.get("created_at")?;
    Ok(json!({
        "id": row.get::<Uuid>("id")?, "name": row.get::<Option<String>>("name")?, "event_key": row.get::<String>("event_key")?,
        "data": row.get::<Value>("data")?, "is_active": row.get::<bool>("is_active")?, "created_at": at.to_string(),
    }))
}
