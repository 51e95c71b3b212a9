//! What a webhook is told besides events of triggers: a row before it is sent, taken by a lease, tried again with longer and longer waits,
//! kept for a while when it is over.

use std::time::Duration;

use connections::{Connection, HookEvent, Listener};
use end_users::{Export, Forgotten, PersonalError, PersonalRows};
use futures_util::future::{BoxFuture, join_all};
use kernel::{DeliveryId, EndUserId, HookMessageId, ProjectId, Scope};
use serde_json::{Value, json};
use store::{StoreError, args, row};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ACCOUNT_EXPIRED;
use super::envelope::other_body;
use super::send::project_metadata;
use crate::{ApiError, ComposioApi, ids};

/// How long somebody who took a message has for it.
const LEASE: Duration = Duration::from_mins(1);
const MAX_ERROR: usize = 500;
/// How many are sent at the same time.
const AT_ONCE: i64 = 16;
/// How often a node looks by itself, for what others wrote and what is due again.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long is waited after each try; nobody tries any more after the last.
const WAITS: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(6),
    Duration::from_hours(12),
];
/// How long a message that is over stays.
const KEPT_FOR: Duration = Duration::from_hours(24 * 30);

/// The task that sends.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    /// Rung when there is something to tell.
    told: Notify,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A message that was taken.
struct Taken {
    project: ProjectId,
    id: HookMessageId,
    body: String,
    attempts: i64,
}

/// The id as receivers see it.
fn shown(id: HookMessageId) -> String {
    ids::MESSAGE.show(DeliveryId::from(id.uuid()))
}

impl ComposioApi {
    /// Starts to send messages.
    pub fn start(&self) {
        let (this, stop) = (self.clone(), self.sending().stop.clone());
        let sending = async move {
            loop {
                match this.send_due().await {
                    Ok(0) => {
                        tokio::select! {
                            () = this.sending().told.notified() => {}
                            () = tokio::time::sleep(LOOK_EVERY) => {}
                        }
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "webhooks cannot be told now");
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                }
            }
        };
        self.sending().tasks.spawn(async move { stop.run_until_cancelled(sending).await });
    }

    /// Sends nothing more.
    #[kernel::boxed]
    pub async fn drain(&self) {
        self.sending().stop.cancel();
        self.sending().tasks.close();
        self.sending().tasks.wait().await;
    }

    /// Writes down what a webhook is to be told.
    pub(super) async fn write_down(
        &self,
        project: ProjectId,
        end_user: Option<EndUserId>,
        event: &'static str,
        metadata: &Value,
        data: &Value,
    ) -> Result<(), ApiError> {
        let (id, now) = (HookMessageId::new(), self.parts().clock.now());
        let row = row! {
            project_id: project,
            id: id,
            end_user_id: end_user,
            event: event,
            body: other_body(event, &shown(id), now, metadata, data).to_string(),
            state: "waiting",
            attempts: 0_i64,
            due_at: now,
            created_at: now,
            updated_at: now,
        };
        self.parts().db.insert("composio_messages", row).await?;
        self.sending().told.notify_one();
        Ok(())
    }

    /// Sends what is due; how many were tried.
    #[kernel::boxed]
    pub async fn send_due(&self) -> Result<usize, StoreError> {
        let (db, now) = (&self.parts().db, self.parts().clock.now());
        let sql = "select project_id, id, body, attempts from composio_messages where state = 'waiting' and due_at <= $1 \
                   and (lease_until is null or lease_until < $1) order by due_at limit $2";
        let mut taken = Vec::new();
        for row in db.all(sql, args![now, AT_ONCE]).await? {
            let message =
                Taken { project: row.get("project_id")?, id: row.get("id")?, body: row.get("body")?, attempts: row.get("attempts")? };
            let sql = "update composio_messages set lease_until = $3 where project_id = $1 and id = $2 and state = 'waiting' \
                       and (lease_until is null or lease_until < $4)";
            if db.execute(sql, args![message.project, message.id, now.plus(LEASE), now]).await? == 1 {
                taken.push(message);
            }
        }
        join_all(taken.iter().map(|message| self.send_message(message))).await;
        Ok(taken.len())
    }

    async fn send_message(&self, message: &Taken) {
        let (status, error) = match self.tell(message).await {
            Ok(Ok(status)) if (200..300).contains(&status) => (Some(i64::from(status)), None),
            Ok(Ok(status)) => (Some(i64::from(status)), Some(format!("the receiver answered with status {status}"))),
            Ok(Err(why)) => (None, Some(why)),
            Err(error) => (None, Some(error.to_string())),
        };
        let error = error.map(|error| error.chars().filter(|c| !c.is_control()).take(MAX_ERROR).collect::<String>());
        let (now, attempts) = (self.parts().clock.now(), message.attempts + 1);
        let wait = usize::try_from(message.attempts).ok().and_then(|tries| WAITS.get(tries));
        let (state, due) = match (&error, wait) {
            (None, _) => ("done", now),
            (Some(_), Some(wait)) => ("waiting", now.plus(*wait)),
            (Some(_), None) => ("dead", now),
        };
        let sql = "update composio_messages set state = $3, attempts = $4, due_at = $5, lease_until = null, status = $6, error = $7, \
                   updated_at = $8 where project_id = $1 and id = $2";
        let written = self.parts().db.execute(sql, args![message.project, message.id, state, attempts, due, status, error, now]).await;
        if let Err(error) = written {
            tracing::warn!(message = %message.id, %error, "what became of a message to a webhook could not be written; it will be sent again");
        }
    }

    async fn tell(&self, message: &Taken) -> Result<Result<u16, String>, ApiError> {
        let Some(webhook) = self.webhook(message.project).await? else { return Ok(Err("the webhook is gone".to_owned())) };
        self.post(&webhook, &shown(message.id), message.attempts + 1, message.body.clone()).await
    }

    /// Removes messages that were over long ago; how many.
    #[kernel::boxed]
    pub async fn forget_messages(&self) -> Result<u64, StoreError> {
        let sql = "delete from composio_messages where state <> 'waiting' and updated_at < $1";
        self.parts().db.execute(sql, args![self.parts().clock.now().minus(KEPT_FOR)]).await
    }

    async fn tell_expired(&self, connection: &Connection) -> Result<(), ApiError> {
        let project = connection.project;
        if !self.webhook(project).await?.is_some_and(|webhook| webhook.takes(ACCOUNT_EXPIRED)) {
            return Ok(());
        }
        // As it is now, with why it does not work.
        let connection = self.parts().connections.get(project, connection.id).await?;
        let mut data = json!(self.account_bodies(Scope::operator(project), std::slice::from_ref(&connection)).await?.first());
        // A credential that its service refuses may work again, so its row stays; the message is about this moment.
        for place in ["/status", "/state/val/status"] {
            if let Some(status) = data.pointer_mut(place) {
                *status = json!("EXPIRED");
            }
        }
        self.write_down(project, connection.owner.end_user(), ACCOUNT_EXPIRED, &project_metadata(project), &data).await
    }
}

impl Listener for ComposioApi {
    fn heard<'a>(&'a self, connection: &'a Connection, event: HookEvent, _: Option<&'a str>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            if !matches!(event, HookEvent::Expired | HookEvent::Broken) {
                return Ok(());
            }
            match self.tell_expired(connection).await {
                Err(ApiError::Store(error)) => Err(error),
                Err(error) => {
                    tracing::error!(connection = %connection.id, %error, "a webhook could not be told that an account expired");
                    Ok(())
                }
                Ok(()) => Ok(()),
            }
        })
    }
}

/// Messages hold what an account or a trigger of an end user is called.
impl PersonalRows for ComposioApi {
    fn forget(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Forgotten, PersonalError>> {
        Box::pin(async move {
            let sql = "delete from composio_messages where project_id = $1 and end_user_id = $2";
            let gone = self.parts().db.execute(sql, args![scope.project, end_user]).await?;
            Ok(Forgotten::from([("webhook_messages", gone)]))
        })
    }

    fn export(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Export, PersonalError>> {
        Box::pin(async move {
            let sql = "select event, body, state, created_at from composio_messages where project_id = $1 and end_user_id = $2 \
                       order by id desc limit 10000";
            let rows = self.parts().db.all(sql, args![scope.project, end_user]).await?;
            let shown = |row: &store::Row| {
                let (event, body, state): (String, Value, String) = (row.get("event")?, row.get("body")?, row.get("state")?);
                let at: kernel::Timestamp = row.get("created_at")?;
                Ok(json!({"event": event, "body": body, "state": state, "created_at": at.to_string()}))
            };
            let rows = rows.iter().map(shown).collect::<Result<Vec<Value>, StoreError>>()?;
            Ok(Export::from([("webhook_messages", rows.into())]))
        })
    }
}
