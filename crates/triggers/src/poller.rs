//! The poller: asks for what is new where a provider does not send it. Events and the place to go on from are written together.

use std::time::Duration;

use kernel::{ProjectId, SubscriptionId, Timestamp};
use serde_json::{Value, json};
use store::{Db, StoreError, args};
use tokio_util::sync::CancellationToken;

use crate::ingress::receive::delivery_of;
use crate::model::{EventRow, Subscription};
use crate::port::{PolledItem, WatchMethod};
use crate::store::{self as rows, NewDelivery, NewEvent};
use crate::{TriggerError, Triggers};

const LOOK: Duration = Duration::from_secs(1);
const AT_ONCE: i64 = 16;
/// A poll that takes longer than this is given up, and somebody else tries.
const LEASE: Duration = Duration::from_mins(1);

impl Triggers {
    pub(crate) async fn run_poller(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            if let Err(error) = self.poll_due().await {
                tracing::error!(%error, "subscriptions could not be polled");
            }
        }
    }

    /// Polls every subscription whose time has come.
    #[kernel::boxed]
    pub async fn poll_due(&self) -> Result<(), StoreError> {
        loop {
            let due = self.lease_polls(self.0.clock.now()).await?;
            if due.is_empty() {
                return Ok(());
            }
            futures_util::future::join_all(due.into_iter().map(|(project, id)| self.poll_one(project, id))).await;
        }
    }

    async fn lease_polls(&self, now: Timestamp) -> Result<Vec<(ProjectId, SubscriptionId)>, StoreError> {
        macro_rules! lease {
            ($lock:literal) => {
                concat!(
                    "select project_id, id from trigger_subscriptions where poll_at is not null and poll_at <= $1 order by poll_at limit $2",
                    $lock
                )
            };
        }
        let any = "select 1 as found from trigger_subscriptions where poll_at is not null and poll_at <= $1 order by poll_at limit 1";
        if self.0.db.optional(any, args![now]).await?.is_none() {
            return Ok(Vec::new());
        }
        let sql = match &self.0.db {
            Db::Sqlite(_) => lease!(""),
            Db::Postgres(_) => lease!(" for update skip locked"),
        };
        let mut tx = self.0.db.begin().await?;
        let mut due = Vec::new();
        for row in &tx.all(sql, args![now, AT_ONCE]).await? {
            let (project, id): (ProjectId, SubscriptionId) = (row.get("project_id")?, row.get("id")?);
            let sql = "update trigger_subscriptions set poll_at = $3 where project_id = $1 and id = $2";
            tx.execute(sql, args![project, id, now.plus(LEASE)]).await?;
            due.push((project, id));
        }
        tx.commit().await?;
        Ok(due)
    }

    async fn poll_one(&self, project: ProjectId, id: SubscriptionId) {
        let outcome = match tokio::time::timeout(LEASE, self.poll_now(project, id)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(TriggerError::Upstream("the poll took too long".to_owned())),
        };
        if let Err(error) = outcome {
            tracing::warn!(subscription = %id, %error, "a poll failed; it is tried again");
            let sql = "update trigger_subscriptions set reason = $3 where project_id = $1 and id = $2 and deleted_at is null";
            let reason: String = error.to_string().replace('\0', "").chars().take(500).collect();
            if let Err(error) = self.0.db.execute(sql, args![project, id, reason]).await {
                tracing::error!(subscription = %id, %error, "the failure of a poll could not be kept");
            }
        }
    }

    async fn poll_now(&self, project: ProjectId, id: SubscriptionId) -> Result<(), TriggerError> {
        let Some(row) = rows::subscription_by_id(&self.0.db, project, id).await? else { return Ok(()) };
        let Some(watched) = self.watched_by(&row).await? else { return Ok(()) };
        let WatchMethod::Poll(every) = watched.method else { return Ok(()) };
        let polled = self.poll(&watched, &row).await?;
        let now = self.0.clock.now();
        let mut tx = self.0.db.begin_durable().await?;
        // Whoever holds the row writes; one that was stopped or changed meanwhile is left alone.
        let sql = "update trigger_subscriptions set poll_cursor = $3, poll_at = $4, reason = null where project_id = $1 and id = $2 \
                   and poll_at is not null and event_key = $5 and deleted_at is null";
        let args = args![project, id, &polled.cursor, now.plus(every), row.event_key.as_str()];
        if tx.execute(sql, args).await? == 0 {
            return Ok(());
        }
        let events: Vec<EventRow> = polled.items.iter().map(|item| event_of(&row, item, now)).collect();
        let deliveries: Vec<NewDelivery> = events.iter().map(|event| delivery_of(&row, event)).collect();
        let events: Vec<NewEvent> = events.into_iter().map(NewEvent::from).collect();
        let is_new = rows::insert_events(&mut tx, &events.iter().collect::<Vec<_>>()).await?;
        let deliveries: Vec<&NewDelivery> =
            deliveries.iter().zip(is_new).filter_map(|(delivery, is_new)| is_new.then_some(delivery)).collect();
        rows::insert_deliveries(&mut tx, &deliveries).await?;
        tx.commit().await?;
        if !polled.items.is_empty() {
            self.wake_all();
            self.0.arrived.notify_waiters();
        }
        Ok(())
    }
}

fn event_of(row: &Subscription, item: &PolledItem, now: Timestamp) -> EventRow {
    EventRow {
        body: item.payload.to_string().into_bytes(),
        attributes: match &item.payload {
            Value::Object(_) => item.payload.clone(),
            other => json!({"value": other}),
        },
        ..EventRow::of(row, item.id.clone(), now)
    }
}
