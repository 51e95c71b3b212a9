//! Sending what hooks are to be told: taken by a lease, tried again with longer and longer waits, kept for a while when it is over.

use std::time::Duration;

use egress::webhook;
use futures_util::future::join_all;
use kernel::{HookId, HookMessageId, ProjectId};
use store::{StoreError, args};

use super::place;
use crate::Connections;

/// How long somebody who took a message has for it.
const LEASE: Duration = Duration::from_mins(1);
const TIMEOUT: Duration = Duration::from_secs(10);
/// As much of an answer as is read; nothing is done with it.
const MAX_ANSWER: usize = 4 << 10;
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
/// How long a message that is over stays in the log.
const KEPT_FOR: Duration = Duration::from_hours(24 * 30);

/// A message that was taken.
struct Taken {
    project: ProjectId,
    id: HookMessageId,
    hook: HookId,
    url: String,
    secret: Vec<u8>,
    body: String,
    attempts: i64,
}

impl Connections {
    /// Starts to send what hooks are to be told.
    pub fn start_hooks(&self) {
        let (this, stop) = (self.clone(), self.0.stop.clone());
        let sending = async move {
            loop {
                match this.send_due().await {
                    Ok(0) => {
                        tokio::select! {
                            () = this.0.told.notified() => {}
                            () = tokio::time::sleep(LOOK_EVERY) => {}
                        }
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "hooks cannot be told now");
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                }
            }
        };
        self.0.tasks.spawn(async move { stop.run_until_cancelled(sending).await });
    }

    /// Sends what is due; how many were tried.
    #[kernel::boxed]
    pub async fn send_due(&self) -> Result<usize, StoreError> {
        let now = self.0.clock.now();
        let sql = "select m.project_id, m.id, m.hook_id, m.body, m.attempts, h.url, h.secret from connection_messages m \
                   join connection_hooks h on h.project_id = m.project_id and h.id = m.hook_id \
                   where m.state = 'waiting' and m.due_at <= $1 and (m.lease_until is null or m.lease_until < $1) order by m.due_at limit $2";
        let mut taken = Vec::new();
        for row in self.0.db.all(sql, args![now, AT_ONCE]).await? {
            let message = Taken {
                project: row.get("project_id")?,
                id: row.get("id")?,
                hook: row.get("hook_id")?,
                url: row.get("url")?,
                secret: row.get("secret")?,
                body: row.get("body")?,
                attempts: row.get("attempts")?,
            };
            let sql = "update connection_messages set lease_until = $3 where project_id = $1 and id = $2 and state = 'waiting' \
                       and (lease_until is null or lease_until < $4)";
            if self.0.db.execute(sql, args![message.project, message.id, now.plus(LEASE), now]).await? == 1 {
                taken.push(message);
            }
        }
        join_all(taken.iter().map(|message| self.send(message))).await;
        Ok(taken.len())
    }

    async fn send(&self, message: &Taken) {
        let (status, error) = match self.post(message).await {
            Ok(status) if (200..300).contains(&status) => (Some(i64::from(status)), None),
            Ok(status) => (Some(i64::from(status)), Some(format!("the receiver answered with status {status}"))),
            Err(error) => (None, Some(error)),
        };
        let error = error.map(|error| error.chars().filter(|c| !c.is_control()).take(MAX_ERROR).collect::<String>());
        let (now, attempts) = (self.0.clock.now(), message.attempts + 1);
        let wait = usize::try_from(message.attempts).ok().and_then(|tries| WAITS.get(tries));
        let (state, due) = match (&error, wait) {
            (None, _) => ("done", now),
            (Some(_), Some(wait)) => ("waiting", now.plus(*wait)),
            (Some(_), None) => ("dead", now),
        };
        let sql = "update connection_messages set state = $3, attempts = $4, due_at = $5, lease_until = null, status = $6, error = $7, \
                   updated_at = $8 where project_id = $1 and id = $2";
        let written = self.0.db.execute(sql, args![message.project, message.id, state, attempts, due, status, error, now]).await;
        if let Err(error) = written {
            tracing::warn!(message = %message.id, %error, "what became of a message to a hook could not be written; it will be sent again");
        }
    }

    async fn post(&self, message: &Taken) -> Result<u16, String> {
        let secret = self.0.sealer.open(&message.secret, place(message.hook)).map_err(|error| error.to_string())?;
        let secret = String::from_utf8(secret).map_err(|_| "the secret of the hook is damaged".to_owned())?;
        let url = message.url.parse().map_err(|_| "the address of the hook is none".to_owned())?;
        let seconds = self.0.clock.now().seconds();
        let request = webhook::post(url, &secret, &message.id.to_string(), seconds, message.body.clone());
        let request = request.timeout(TIMEOUT).max_response(MAX_ANSWER);
        self.0.egress.send(request).await.map(|response| response.status.as_u16()).map_err(|error| error.to_string())
    }

    /// Removes messages that were over long ago; how many.
    #[kernel::boxed]
    pub async fn forget_messages(&self) -> Result<u64, StoreError> {
        let sql = "delete from connection_messages where state <> 'waiting' and updated_at < $1";
        self.0.db.execute(sql, args![self.0.clock.now().minus(KEPT_FOR)]).await
    }
}
