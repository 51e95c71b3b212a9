//! What calls were made with and what they came to, for projects that keep it: sealed, for some days, written after the answer.

use std::time::Duration;

use kernel::json::{size, size_of_members};
use kernel::seal::{SealError, SealedColumn, Sealer};
use kernel::{Budget, CallId, ProjectId, Scope, Timestamp};
use serde_json::{Map, Value, json};
use store::{Db, StoreError, Usage, args, row};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;
use work::{WorkError, Workers};

use crate::{CallError, CallRecord, CallReply, Calls};

/// What is larger than this is not kept, and a note says so.
const LARGEST: usize = 256 << 10;
const MAX_DAYS: i64 = 90;
const DAY: Duration = Duration::from_hours(24);
/// How many calls may wait to be written.
const QUEUE: usize = 256;
/// How many rows are dropped, or sealed again, at a time.
const BATCH: i64 = 200;
/// How much of it a project keeps, in bytes; beyond that, calls are made and not kept until older ones are dropped.
const MOST: i64 = 1 << 30;
pub(crate) const KEPT: &str = "kept_calls";

/// Arguments and result of a call.
#[derive(Clone, Debug)]
pub struct KeptCall {
    pub arguments: Value,
    pub result: Value,
    /// When it is dropped.
    pub until: Timestamp,
}

/// A call on its way to its row.
#[derive(Debug)]
struct Content {
    project: ProjectId,
    call: CallId,
    arguments: Value,
    result: Value,
    created_at: Timestamp,
}

#[derive(Debug)]
enum Entry {
    Call(Box<Content>),
    /// Everything before this is written, or was tried.
    Barrier(oneshot::Sender<()>),
}

/// Where arguments and results are kept.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    queue: mpsc::Sender<Entry>,
}

impl Keeper {
    pub(crate) fn start(db: Db, sealer: Sealer, workers: Workers) -> Self {
        let (queue, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(write(db, sealer, workers, receiver));
        Self { queue }
    }

    fn keep(&self, content: Content) {
        let call = content.call;
        if self.queue.try_send(Entry::Call(Box::new(content))).is_err() {
            tracing::warn!(%call, "arguments and result of a call are not kept: too many wait to be written");
        }
    }

    /// Waits until everything handed over so far is written.
    pub(crate) async fn settled(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.send(Entry::Barrier(done)).await.is_ok() {
            let _ = written.await;
        }
    }
}

async fn write(db: Db, sealer: Sealer, workers: Workers, mut receiver: mpsc::Receiver<Entry>) {
    while let Some(entry) = receiver.recv().await {
        match entry {
            Entry::Call(content) => {
                let call = content.call;
                if let Err(error) = write_one(&db, &sealer, &workers, *content).await {
                    tracing::warn!(%call, %error, "arguments and result of a call are not kept");
                }
            }
            Entry::Barrier(done) => {
                let _ = done.send(());
            }
        }
    }
}

async fn write_one(db: &Db, sealer: &Sealer, workers: &Workers, content: Content) -> Result<(), CallError> {
    let Content { project, call, arguments, result, created_at } = content;
    let (sealer, weight) = (sealer.clone(), size(&arguments, LARGEST) + size(&result, LARGEST));
    let seal = move |_: &Budget| {
        let written = json!({"arguments": arguments, "result": result}).to_string();
        Ok::<_, WorkError>(sealer.seal(written.as_bytes(), place(call)))
    };
    if db.usage(project, KEPT).await?.bytes >= MOST {
        tracing::debug!(%call, "arguments and result of a call are not kept: the project keeps as much as it may");
        return Ok(());
    }
    let content = workers.run(project, weight, seal).await?;
    let size = Usage::row(content.len());
    let mut tx = db.begin().await?;
    let row = row! { project_id: project, id: call, content: content, created_at: created_at, size: size.bytes };
    tx.insert("kept_calls", row).await?;
    tx.count(project, KEPT, size).await?;
    Ok(tx.commit().await?)
}

fn place(call: CallId) -> SealedColumn<'static> {
    SealedColumn { table: "kept_calls", column: "content", row: call.uuid() }
}

/// A value, or a note that it is too large; measured before it is copied.
fn kept(bytes: usize, what: &str, value: impl FnOnce() -> Value) -> Value {
    if bytes < LARGEST { value() } else { json!({"note": format!("The {what} had more than {} KiB, so it was not kept.", LARGEST >> 10)}) }
}

impl Calls {
    /// For how many days the project keeps arguments and results; 0 is not at all.
    #[kernel::boxed]
    pub async fn keeping(&self, project: ProjectId) -> Result<i64, StoreError> {
        let read = || async {
            let row = self.0.db.optional("select days from call_keeping where project_id = $1", args![project]).await?;
            row.map_or(Ok(0), |row| row.get("days"))
        };
        self.0.keepings.or_read(project, read).await
    }

    #[kernel::boxed]
    pub async fn set_keeping(&self, scope: Scope, days: i64) -> Result<i64, CallError> {
        if !(0..=MAX_DAYS).contains(&days) {
            return Err(CallError::BadFilter(format!("`days` must be between 0 and {MAX_DAYS}.")));
        }
        let sql = "insert into call_keeping (project_id, days, updated_at, updated_by_id) values ($1, $2, $3, $4) on conflict (project_id) \
                   do update set days = excluded.days, updated_at = excluded.updated_at, updated_by_id = excluded.updated_by_id";
        self.0.db.execute(sql, args![scope.project, days, self.0.clock.now(), scope.author()]).await?;
        Ok(days)
    }

    /// Keeps what a call was made with and what it came to, where the project wants that. It is written later.
    pub(crate) async fn keep(
        &self,
        project: ProjectId,
        call: CallId,
        arguments: &Map<String, Value>,
        reply: &Result<CallReply, CallError>,
    ) {
        match self.keeping(project).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%call, %error, "whether a call is to be kept could not be read");
                return;
            }
        }
        let arguments = kept(size_of_members(arguments, LARGEST), "arguments", || Value::Object(arguments.clone()));
        let result = reply.as_ref().map_or(Value::Null, |reply| {
            let data = &reply.result.data;
            kept(size(data, LARGEST), "result", || data.clone())
        });
        self.0.keeper.keep(Content { project, call, arguments, result, created_at: self.0.clock.now() });
    }

    /// What is kept of a call, if anything is.
    #[kernel::boxed]
    pub async fn kept_call(&self, record: &CallRecord) -> Result<Option<KeptCall>, CallError> {
        let days = self.keeping(record.project).await?;
        self.0.keeper.settled().await;
        let sql = "select content, created_at from kept_calls where project_id = $1 and id = $2";
        let Some(row) = self.0.db.optional(sql, args![record.project, record.id]).await? else { return Ok(None) };
        let until = until(row.get("created_at")?, days);
        if until <= self.0.clock.now() {
            return Ok(None);
        }
        let (sealer, call, sealed): (_, _, Vec<u8>) = (self.0.sealer.clone(), record.id, row.get("content")?);
        let weight = sealed.len();
        let open = move |_: &Budget| Ok::<_, CallError>(serde_json::from_slice(&sealer.open(&sealed, place(call))?).unwrap_or_default());
        let mut content: Value = self.0.workers.run(record.project, weight, open).await?;
        Ok(Some(KeptCall { arguments: content["arguments"].take(), result: content["result"].take(), until }))
    }

    /// Drops what was kept for as long as the project wants by now, or for as long as the record of its call is.
    pub(crate) async fn forget_kept(&self, project: ProjectId, record: Duration) -> Result<u64, StoreError> {
        let days = self.keeping(project).await?;
        let now = self.0.clock.now();
        let before = if days == 0 { Timestamp::from_micros(i64::MAX) } else { now.minus(age(days).min(record)) };
        let sql = "select id from kept_calls where project_id = $1 and created_at <= $2 order by created_at limit $3";
        let delete = "delete from kept_calls where project_id = $1 and id = $2 returning size";
        let mut forgotten = 0;
        loop {
            let rows = self.0.db.all(sql, args![project, before, BATCH]).await?;
            let old: Vec<Uuid> = rows.iter().map(|row| row.get("id")).collect::<Result<_, _>>()?;
            if old.is_empty() {
                return Ok(forgotten);
            }
            forgotten += self.0.db.remove_counted(project, Some(KEPT), delete, &old).await?;
        }
    }
}

fn age(days: i64) -> Duration {
    DAY * u32::try_from(days).unwrap_or(0)
}

fn until(created_at: Timestamp, days: i64) -> Timestamp {
    created_at.plus(age(days))
}

/// Seals what is kept, and the secrets of notices, with the current key.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, ResealError> {
    let mut resealed = crate::notices::reseal(db, sealer).await?;
    let mut last = (Uuid::nil(), Uuid::nil());
    loop {
        let sql = "select project_id, id, content from kept_calls where project_id > $1 or (project_id = $1 and id > $2) \
                   order by project_id, id limit $3";
        let rows = db.all(sql, args![last.0, last.1, BATCH / 10]).await?;
        let Some(end) = rows.last() else { return Ok(resealed) };
        last = (end.get("project_id")?, end.get("id")?);
        for row in &rows {
            let (project, id, old): (ProjectId, CallId, Vec<u8>) = (row.get("project_id")?, row.get("id")?, row.get("content")?);
            if !sealer.is_current(&old) {
                let new = sealer.seal(&sealer.open(&old, place(id))?, place(id));
                resealed +=
                    db.execute("update kept_calls set content = $3 where project_id = $1 and id = $2", args![project, id, new]).await?;
            }
        }
    }
}

/// Why rows could not be sealed again.
#[derive(Debug, thiserror::Error)]
pub enum ResealError {
    #[error(transparent)]
    Sealed(#[from] SealError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
