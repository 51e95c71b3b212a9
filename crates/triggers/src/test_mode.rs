//! Test mode: a subscription of its own waits for one event, shows it, and is gone again, whatever happens.

use std::time::Duration;

use kernel::{ProjectId, Scope, SubscriptionId};
use store::{StoreError, args};

use crate::model::Delivery;
use crate::store::{self as rows, delivery_columns};
use crate::{NewSubscription, TriggerError, Triggers};

/// How often the database is asked, besides when something arrives here.
const LOOK: Duration = Duration::from_secs(1);
/// No test is older; one that is was left behind by a crash.
const OLDEST: Duration = Duration::from_mins(30);

/// Removes the test when it ends, also when its caller goes away.
struct Cleanup {
    triggers: Triggers,
    scope: Scope,
    id: SubscriptionId,
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let (triggers, scope, id) = (self.triggers.clone(), self.scope, self.id);
        self.triggers.0.tasks.spawn(async move {
            if let Err(error) = triggers.end_test(scope, id).await {
                tracing::warn!(subscription = %id, %error, "a test could not be removed; it is removed later");
            }
        });
    }
}

impl Triggers {
    /// Waits for the first event of what would be subscribed to; none when none comes in time. No connection to the database is held.
    #[kernel::boxed]
    pub async fn test_subscription(&self, scope: Scope, new: NewSubscription, wait: Duration) -> Result<Option<Delivery>, TriggerError> {
        self.require_running()?;
        let made = self.subscribe(scope, NewSubscription { is_test: true, is_active: true, is_valid: true, ..new }).await?;
        let cleanup = Cleanup { triggers: self.clone(), scope, id: made.subscription.id };
        let found = tokio::time::timeout(wait, self.first_delivery(scope.project, cleanup.id)).await;
        match found {
            Ok(found) => found.map(Some),
            Err(_) => Ok(None),
        }
    }

    async fn first_delivery(&self, project: ProjectId, id: SubscriptionId) -> Result<Delivery, TriggerError> {
        let sql = concat!(
            "select ",
            delivery_columns!(),
            " from trigger_deliveries where project_id = $1 and subscription_id = $2 and state = 'done' order by id limit 1"
        );
        loop {
            let arrived = self.0.arrived.notified();
            if let Some(row) = self.0.db.optional(sql, args![project, id]).await? {
                return Ok(rows::delivery(&row)?);
            }
            tokio::select! {
                () = arrived => tokio::time::sleep(Duration::from_millis(50)).await,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    async fn end_test(&self, scope: Scope, id: SubscriptionId) -> Result<(), TriggerError> {
        self.unsubscribe(scope, id).await?;
        Ok(self.purge(scope.project, id).await?)
    }

    /// Removes a test and all it caught.
    async fn purge(&self, project: ProjectId, id: SubscriptionId) -> Result<(), StoreError> {
        let mut tx = self.0.db.begin().await?;
        for sql in [
            "delete from trigger_attempts where project_id = $1 and delivery_id in (select id from trigger_deliveries where project_id = $1 and subscription_id = $2)",
            "delete from trigger_deliveries where project_id = $1 and subscription_id = $2",
            "delete from trigger_events where project_id = $1 and subscription_id = $2",
            "delete from trigger_signatures where project_id = $1 and subscription_id = $2",
            "delete from trigger_subscriptions where project_id = $1 and id = $2 and is_test",
        ] {
            tx.execute(sql, args![project, id]).await?;
        }
        tx.commit().await
    }

    /// Removes tests that a crash left behind.
    pub(crate) async fn purge_tests(&self) -> Result<(), StoreError> {
        let sql = "select project_id, id from trigger_subscriptions where is_test and created_at < $1 limit 100";
        for row in self.0.db.all(sql, args![self.0.clock.now().minus(OLDEST)]).await? {
            let (project, id): (ProjectId, SubscriptionId) = (row.get("project_id")?, row.get("id")?);
            if let Some(old) = rows::subscription_by_id(&self.0.db, project, id).await? {
                let watched = self.watched_by(&old).await.ok().flatten();
                self.end(&old, watched.as_ref()).await;
            }
            self.purge(project, id).await?;
        }
        Ok(())
    }
}
