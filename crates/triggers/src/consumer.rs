//! Subscriptions as users of connections: they stop with a connection that is revoked, start again with one that is back, and move with one
//! that got another account.

use ::store::{Row, StoreError, args};
use connections::{Connection, ConnectionUser, Consumer};
use futures_util::future::BoxFuture;
use kernel::{ConnectionId, ProjectId, SubscriptionId};

use crate::model::Subscription;
use crate::port::WatchMethod;
use crate::store::{self as rows, subscription_columns};
use crate::subscriptions::{fires, token};
use crate::target::read_event;
use crate::{TriggerError, Triggers};

/// The live subscriptions of a connection count as its use.
impl Consumer for Triggers {
    fn kind(&self) -> &'static str {
        "triggers"
    }

    fn count(&self, project: ProjectId, connection: ConnectionId) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(async move {
            let sql =
                "select count(*) as live from trigger_subscriptions where project_id = $1 and connection_id = $2 and deleted_at is null";
            let row = self.0.db.optional(sql, args![project, connection]).await?;
            row.map_or(Ok(0), |row| row.get("live"))
        })
    }

    fn users<'a>(&'a self, connection: &'a Connection) -> BoxFuture<'a, Result<Vec<ConnectionUser>, StoreError>> {
        Box::pin(async move {
            let sql = "select id, name, event_key from trigger_subscriptions where project_id = $1 and connection_id = $2 \
                       and deleted_at is null and not is_test order by id";
            let rows = self.0.db.all(sql, args![connection.project, connection.id]).await?;
            let user = |row: &Row| {
                let name: Option<String> = row.get("name")?;
                let name = name.map_or_else(|| row.get("event_key"), Ok)?;
                Ok(ConnectionUser { kind: "subscription", id: row.get::<SubscriptionId>("id")?.to_string(), name })
            };
            rows.iter().map(user).collect()
        })
    }

    fn released<'a>(&'a self, project: ProjectId, connection: ConnectionId, why: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.suspend(project, connection, why).await?;
            self.remove_remote(project, connection).await
        })
    }

    fn connected<'a>(&'a self, connection: &'a Connection, former: Option<&'a Connection>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            for row in rows::of_connection(&self.0.db, connection.project, connection.id).await? {
                let moves = former.is_some() && fires(&row);
                if (row.suspended_at.is_some() || moves)
                    && let Err(error) = self.watch_again(&row, former).await
                {
                    self.note_failure(&row, &error.to_string()).await?;
                }
            }
            Ok(())
        })
    }
}

impl Triggers {
    /// Stops the subscriptions of a connection that is revoked or gone, until it is back. Those that a person stopped are left alone.
    async fn suspend(&self, project: ProjectId, connection: ConnectionId, why: &str) -> Result<(), StoreError> {
        let sql = concat!(
            "update trigger_subscriptions set is_active = false, suspended_at = $4, poll_at = null, reason = $3, updated_at = $4 \
             where project_id = $1 and connection_id = $2 and deleted_at is null and is_active returning ",
            subscription_columns!()
        );
        let rows = self.0.db.returning_all(sql, args![project, connection, why, self.0.clock.now()]).await?;
        self.tell_disabled(&rows, why).await
    }

    /// Has the account that is connected now send what the subscription watches. `former` is the connection as it was with another account,
    /// which is told to stop.
    async fn watch_again(&self, old: &Subscription, former: Option<&Connection>) -> Result<(), TriggerError> {
        let Some(watched) = self.watched_by(old).await? else { return Ok(()) };
        match former {
            None => self.end(old, Some(&watched)).await,
            Some(former) => {
                let (event_key, config) = read_event(&old.data)?;
                let before = self.watched(old.project, former.clone(), &event_key, config).await?;
                self.end(old, Some(&before)).await;
            }
        }
        let mut row = Subscription { is_active: true, reason: None, ..old.clone() };
        row.life.updated_at = self.0.clock.now();
        if former.is_some() {
            row.poll_cursor = None;
            if matches!(watched.method, WatchMethod::Register) {
                // The other account may go on sending to the old address.
                row.token = token();
            }
        }
        self.save_started(row, Some(watched)).await.map(|_| ())
    }

    /// One that was stopped stays so until the connection is connected again; one that should go on is not valid.
    async fn note_failure(&self, row: &Subscription, why: &str) -> Result<(), StoreError> {
        tracing::warn!(subscription = %row.id, why, "a subscription could not be started with its connection");
        let sql = concat!(
            "update trigger_subscriptions set is_valid = is_valid and suspended_at is not null, reason = $3, updated_at = $4 \
             where project_id = $1 and id = $2 and deleted_at is null returning ",
            subscription_columns!()
        );
        let rows = self.0.db.returning_all(sql, args![row.project, row.id, why, self.0.clock.now()]).await?;
        // Who was told when it stopped is not told again.
        if fires(row) { self.tell_disabled(&rows, why).await } else { Ok(()) }
    }
}
