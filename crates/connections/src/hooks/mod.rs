//! Hooks: who is told that an account was connected, broke, expired or was removed. What is to be told is a row before it is sent.

mod send;

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use egress::webhook;
use futures_util::future::BoxFuture;
use kernel::key::random_bytes;
use kernel::seal::{SealedColumn, Sealer};
use kernel::{HookId, HookMessageId, ProjectId, Scope, Timestamp};
use serde_json::json;
use store::{Db, PageSize, Row, StoreError, args, page_sql, row};
use url::Url;

use crate::{Connection, ConnectionError, Connections};

/// How many hooks a project may have, which is also what one list shows.
const MOST: i64 = 5;
const MAX_URL: usize = 2000;

/// What happened to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// It can be used, for the first time or again.
    Connected,
    /// Its service refuses the credential.
    Broken,
    /// Its authorization ended at the provider.
    Expired,
    /// It was revoked or deleted here.
    Removed,
}

impl HookEvent {
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connection.connected",
            Self::Broken => "connection.broken",
            Self::Expired => "connection.expired",
            Self::Removed => "connection.removed",
        }
    }
}

/// Who is told besides the addresses of a project, and says it in words of their own.
pub trait Listener: Send + Sync + Debug {
    fn heard<'a>(&'a self, connection: &'a Connection, event: HookEvent, reason: Option<&'a str>) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The listener, who may hold connections and so is not held here.
#[derive(Debug, Default)]
pub(crate) struct Listening(RwLock<Option<Weak<dyn Listener>>>);

/// An address that is told.
#[derive(Clone, Debug)]
pub struct Hook {
    pub id: HookId,
    pub url: String,
    pub created_at: Timestamp,
}

/// Something that is told to an address, and how far that is.
#[derive(Clone, Debug)]
pub struct HookMessage {
    pub id: HookMessageId,
    pub event: String,
    /// What is posted.
    pub body: String,
    /// `waiting`, `done` or `dead`.
    pub state: String,
    pub attempts: i64,
    /// When it is tried next, while it waits.
    pub due_at: Timestamp,
    /// What the last try was answered with.
    pub status: Option<i64>,
    /// Why the last try failed.
    pub error: Option<String>,
    pub created_at: Timestamp,
}

fn read_message(row: &Row) -> Result<HookMessage, StoreError> {
    Ok(HookMessage {
        id: row.get("id")?,
        event: row.get("event")?,
        body: row.get("body")?,
        state: row.get("state")?,
        attempts: row.get("attempts")?,
        due_at: row.get("due_at")?,
        status: row.get("status")?,
        error: row.get("error")?,
        created_at: row.get("created_at")?,
    })
}

pub(crate) fn place(id: HookId) -> SealedColumn<'static> {
    SealedColumn { table: "connection_hooks", column: "secret", row: id.uuid() }
}

/// Seals the secrets of hooks with the current key; a secret is never changed otherwise.
pub(crate) async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, ConnectionError> {
    let mut resealed = 0;
    for row in db.all("select project_id, id, secret from connection_hooks", args![]).await? {
        let (project, id, old): (ProjectId, HookId, Vec<u8>) = (row.get("project_id")?, row.get("id")?, row.get("secret")?);
        if !sealer.is_current(&old) {
            let new = sealer.seal(&sealer.open(&old, place(id))?, place(id));
            let sql = "update connection_hooks set secret = $3 where project_id = $1 and id = $2";
            resealed += db.execute(sql, args![project, id, new]).await?;
        }
    }
    Ok(resealed)
}

impl Connections {
    /// The hooks of a project, the oldest first.
    #[kernel::boxed]
    pub async fn hooks(&self, project: ProjectId) -> Result<Vec<Hook>, ConnectionError> {
        let sql = "select id, url, created_at from connection_hooks where project_id = $1 order by id";
        let hook = |row: &Row| Ok(Hook { id: row.get("id")?, url: row.get("url")?, created_at: row.get("created_at")? });
        Ok(self.0.db.all(sql, args![project]).await?.iter().map(hook).collect::<Result<_, StoreError>>()?)
    }

    /// Has an address told from now on. Its secret is shown once.
    #[kernel::boxed]
    pub async fn create_hook(&self, scope: Scope, url: &str) -> Result<(Hook, String), ConnectionError> {
        if url.len() > MAX_URL {
            return Err(ConnectionError::Words(format!("`url` may have {MAX_URL} characters")));
        }
        let address: Url = url.parse().map_err(|_| ConnectionError::Words("`url` is no address; begin it with `https://`".to_owned()))?;
        self.0.egress.check_url(&address).map_err(|error| ConnectionError::Words(format!("`url`: {error}")))?;
        let (hook, secret) =
            (Hook { id: HookId::new(), url: url.to_owned(), created_at: self.0.clock.now() }, webhook::secret(&random_bytes()));
        let row = row! {
            project_id: scope.project,
            id: hook.id,
            url: url,
            secret: self.0.sealer.seal(secret.as_bytes(), place(hook.id)),
            created_at: hook.created_at,
            created_by_id: scope.author(),
        };
        let mut tx = self.0.db.begin().await?;
        let many = tx.optional("select count(*) as many from connection_hooks where project_id = $1", args![scope.project]).await?;
        if many.map_or(Ok(0), |row| row.get::<i64>("many"))? >= MOST {
            return Err(ConnectionError::TooManyHooks(MOST));
        }
        tx.insert("connection_hooks", row).await?;
        tx.commit().await?;
        Ok((hook, secret))
    }

    /// Deletes a hook, with what it was still to be told.
    #[kernel::boxed]
    pub async fn delete_hook(&self, scope: Scope, id: HookId) -> Result<(), ConnectionError> {
        let gone = self.0.db.execute("delete from connection_hooks where project_id = $1 and id = $2", args![scope.project, id]).await?;
        if gone == 0 { Err(ConnectionError::HookNotFound) } else { Ok(()) }
    }

    /// What was told to a hook, or is to be, newest first.
    #[kernel::boxed]
    pub async fn hook_messages(
        &self,
        project: ProjectId,
        hook: HookId,
        limit: Option<i64>,
        cursor: Option<HookMessageId>,
    ) -> Result<(Vec<HookMessage>, Option<HookMessageId>), ConnectionError> {
        if !self.hooks(project).await?.iter().any(|known| known.id == hook) {
            return Err(ConnectionError::HookNotFound);
        }
        let page = PageSize::asked(limit);
        let sql = page_sql!(
            select "project_id, id, event, body, state, attempts, due_at, status, error, created_at",
            bytes "octet_length(body) + coalesce(octet_length(error), 0)",
            from "connection_messages",
            where "project_id = $1 and hook_id = $2 and ($3 is null or id < $3)",
            by id "desc",
            limit "$4"
        );
        let rows = self.0.db.all(sql, args![project, hook, cursor, page.rows()]).await?;
        let page = page.read(&rows, read_message)?;
        let cursor = page.cursor(|last| last.id);
        Ok((page.rows, cursor))
    }

    /// Has a message sent once more that nobody tries any more.
    #[kernel::boxed]
    pub async fn retry_hook_message(&self, project: ProjectId, hook: HookId, id: HookMessageId) -> Result<(), ConnectionError> {
        let sql = "update connection_messages set state = 'waiting', attempts = 0, due_at = $4, lease_until = null, updated_at = $4 \
                   where project_id = $1 and hook_id = $2 and id = $3 and state = 'dead'";
        if self.0.db.execute(sql, args![project, hook, id, self.0.clock.now()]).await? == 0 {
            return Err(ConnectionError::HookNotFound);
        }
        self.0.told.notify_one();
        Ok(())
    }

    /// Writes down for every hook of the project what happened to a connection. What cannot be written is said in the log.
    pub(crate) async fn announce(&self, connection: &Connection, event: HookEvent, reason: Option<&str>) {
        if let Err(error) = self.write_down(connection, event, reason).await {
            tracing::error!(connection = %connection.id, event = event.name(), %error, "nobody could be told what happened to a connection");
        }
        let listener = self.0.listening.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(Weak::upgrade);
        if let Some(listener) = listener
            && let Err(error) = listener.heard(connection, event, reason).await
        {
            tracing::error!(connection = %connection.id, event = event.name(), %error, "a listener could not be told what happened to a connection");
        }
    }

    /// From now on the listener is told what happens to connections, as long as the caller keeps it.
    pub fn set_listener(&self, listener: &Arc<dyn Listener>) {
        *self.0.listening.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(listener));
    }

    async fn write_down(&self, connection: &Connection, event: HookEvent, reason: Option<&str>) -> Result<(), ConnectionError> {
        let hooks = self.hooks(connection.project).await?;
        if hooks.is_empty() {
            return Ok(());
        }
        let now = self.0.clock.now();
        let mut data = json!({
            "connection_id": connection.id, "slug": connection.slug, "provider_key": connection.provider,
            "integration_key": connection.integration,
        });
        if let Some(end_user) = connection.owner.end_user() {
            let names = self.0.end_users.names(connection.project, vec![end_user]).await;
            data["end_user_id"] = json!(end_user);
            data["end_user"] = json!(names.ok().and_then(|mut names| names.remove(&end_user)));
        }
        for (field, text) in [("alias", connection.alias.as_deref()), ("reason", reason)] {
            if let Some(text) = text {
                data[field] = json!(text);
            }
        }
        let body = json!({"type": event.name(), "timestamp": now.to_string(), "data": data}).to_string();
        let mut tx = self.0.db.begin().await?;
        for hook in hooks {
            let row = row! {
                project_id: connection.project,
                id: HookMessageId::new(),
                hook_id: hook.id,
                end_user_id: connection.owner.end_user(),
                event: event.name(),
                body: body.as_str(),
                state: "waiting",
                attempts: 0_i64,
                due_at: now,
                created_at: now,
                updated_at: now,
            };
            tx.insert("connection_messages", row).await?;
        }
        tx.commit().await?;
        self.0.told.notify_one();
        Ok(())
    }
}
