//! The audit trail: a row for every call, written in batches so that many calls share one commit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use connections::Consumer;
use futures_util::future::BoxFuture;
use kernel::{AgentId, CallId, CallRef, ConnectionId, KeyId, Origin, ProjectId, Timestamp, UserId, suggest};
use store::{Arg, Db, PageSize, Row, StoreError, args};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::call::tool_name;
use crate::{CallError, Tools};

const QUEUE: usize = 4096;
const BATCH: usize = 256;
const MAX_MESSAGE: usize = 500;
/// How long a row waits for others to share its commit. A commit at once would compete with the answer on its way out.
const LINGER: Duration = Duration::from_millis(5);

macro_rules! columns {
    () => {
        "project_id, id, key_id, user_id, call_ref, connection_id, outcome, message, duration_us, created_at, tool, agent_id, run_id, step, \
         delivery_id"
    };
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tool ran and succeeded.
    Ok,
    /// The tool ran and said no.
    Error,
    /// The tool did not run, or not to its end.
    Failed,
}

impl Outcome {
    pub const ALL: [Self; 3] = [Self::Ok, Self::Error, Self::Failed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Failed => "failed",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "ok" => Self::Ok,
            "error" => Self::Error,
            _ => Self::Failed,
        }
    }
}

/// One call, for the record. It holds no arguments and no results.
#[derive(Clone, Debug)]
pub struct CallRecord {
    pub id: CallId,
    pub project: ProjectId,
    pub key: KeyId,
    pub user: Option<UserId>,
    /// As it was called.
    pub call_ref: String,
    /// The one name of the tool, however it was called; nothing where the name means none.
    pub tool: Option<String>,
    pub origin: Origin,
    pub connection: Option<ConnectionId>,
    pub outcome: Outcome,
    pub message: Option<String>,
    pub duration: Duration,
    pub created_at: Timestamp,
}

impl CallRecord {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let micros: i64 = row.get("duration_us")?;
        Ok(Self {
            id: row.get("id")?,
            project: row.get("project_id")?,
            key: row.get("key_id")?,
            user: row.get("user_id")?,
            call_ref: row.get("call_ref")?,
            tool: row.get("tool")?,
            origin: Origin {
                agent: row.get("agent_id")?,
                run: row.get("run_id")?,
                step: row.get("step")?,
                delivery: row.get("delivery_id")?,
            },
            connection: row.get("connection_id")?,
            outcome: Outcome::parse(&row.get::<String>("outcome")?),
            message: row.get("message")?,
            duration: Duration::from_micros(u64::try_from(micros).unwrap_or(0)),
            created_at: row.get("created_at")?,
        })
    }

    fn args(&self) -> [Arg<'_>; COLUMNS] {
        let message = self.message.as_ref().map(|text| text.chars().filter(|c| *c != '\0').take(MAX_MESSAGE).collect::<String>());
        let micros = i64::try_from(self.duration.as_micros()).unwrap_or(i64::MAX);
        args![
            self.project,
            self.id,
            self.key,
            self.user,
            self.call_ref.as_str(),
            self.connection,
            self.outcome.name(),
            message,
            micros,
            self.created_at,
            self.tool.as_deref(),
            self.origin.agent,
            self.origin.run,
            self.origin.step.as_deref(),
            self.origin.delivery
        ]
    }
}

const COLUMNS: usize = 15;

/// Statements that insert this many rows at once, the largest first: a trip to the database costs more than a row.
static INSERTS: LazyLock<[(usize, &'static str); 4]> = LazyLock::new(|| [64, 16, 4, 1].map(|rows| (rows, insert(rows))));

fn insert(rows: usize) -> &'static str {
    let row = |row: usize| {
        let places: Vec<String> = (1..=COLUMNS).map(|column| format!("${}", row * COLUMNS + column)).collect();
        format!("({})", places.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    let columns = columns!();
    String::leak(format!("insert into tool_calls ({columns}) values {}", rows.join(", ")))
}

/// What the writer is told, in order.
#[derive(Debug)]
enum Entry {
    Record(Box<CallRecord>),
    /// Everything before this is written.
    Barrier(oneshot::Sender<()>),
}

/// Where calls are recorded. A call is answered without waiting for its row, which follows within a moment; whoever reads the record, and
/// whoever stops the server, waits for the rows that are on their way.
#[derive(Clone, Debug)]
pub struct Audit {
    queue: mpsc::Sender<Entry>,
    counts: Arc<[AtomicU64; Outcome::ALL.len()]>,
}

impl Audit {
    pub(crate) fn start(db: Db) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(write(db, receiver));
        Self { queue: sender, counts: Arc::default() }
    }

    /// How many calls of this process ended how.
    pub fn counts(&self) -> [(Outcome, u64); Outcome::ALL.len()] {
        Outcome::ALL.map(|outcome| (outcome, self.counts[outcome as usize].load(Ordering::Relaxed)))
    }

    fn count(&self, record: &CallRecord) {
        self.counts[record.outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A place for one row; when the writer cannot keep up, calls wait here.
    pub(crate) async fn place(&self) -> Option<Place<'_>> {
        let place = self.queue.reserve().await.inspect_err(|_| tracing::error!("a call could not be recorded: the writer is gone"));
        place.ok().map(|place| Place { audit: self, place })
    }

    /// Hands a call to the writer without waiting, for calls that are dropped in the middle.
    pub(crate) fn record_now(&self, record: CallRecord) {
        let id = record.id;
        self.count(&record);
        if self.queue.try_send(Entry::Record(Box::new(record))).is_err() {
            tracing::error!(call = %id, "a call could not be recorded: the writer is behind or gone");
        }
    }

    /// Waits until everything recorded so far is written.
    pub(crate) async fn settled(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.send(Entry::Barrier(done)).await.is_ok() {
            let _ = written.await;
        }
    }
}

/// A place in the writer's queue.
pub(crate) struct Place<'a> {
    audit: &'a Audit,
    place: mpsc::Permit<'a, Entry>,
}

impl Place<'_> {
    pub(crate) fn record(self, record: CallRecord) {
        self.audit.count(&record);
        self.place.send(Entry::Record(Box::new(record)));
    }
}

async fn write(db: Db, mut receiver: mpsc::Receiver<Entry>) {
    let mut entries = Vec::with_capacity(BATCH);
    let (mut batch, mut barriers) = (Vec::with_capacity(BATCH), Vec::new());
    while receiver.recv_many(&mut entries, BATCH).await > 0 {
        linger(&mut receiver, &mut entries).await;
        for entry in entries.drain(..) {
            match entry {
                Entry::Record(record) => batch.push(record),
                Entry::Barrier(done) => barriers.push(done),
            }
        }
        if let Err(error) = write_together(&db, &batch).await {
            tracing::debug!(%error, "a batch of audit rows failed; writing them one by one");
            for record in &batch {
                if let Err(error) = write_together(&db, std::slice::from_ref(record)).await {
                    tracing::error!(call = %record.id, call_ref = record.call_ref, %error, "a call could not be recorded");
                }
            }
        }
        batch.clear();
        for done in barriers.drain(..) {
            let _ = done.send(());
        }
    }
}

/// Gathers more for a moment, unless somebody waits for what is there.
async fn linger(receiver: &mut mpsc::Receiver<Entry>, entries: &mut Vec<Entry>) {
    let until = Instant::now() + LINGER;
    while entries.len() < BATCH && !entries.iter().any(|entry| matches!(entry, Entry::Barrier(_))) {
        let room = BATCH - entries.len();
        match timeout_at(until, receiver.recv_many(entries, room)).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

async fn write_together(db: &Db, batch: &[Box<CallRecord>]) -> Result<(), StoreError> {
    let mut rest = batch;
    if rest.is_empty() {
        return Ok(());
    }
    if INSERTS.iter().any(|(rows, _)| *rows == rest.len()) {
        let (sql, args) = next(&mut rest);
        return db.execute(sql, args).await.map(|_| ());
    }
    let mut tx = db.begin().await?;
    while !rest.is_empty() {
        let (sql, args) = next(&mut rest);
        tx.execute(sql, args).await?;
    }
    tx.commit().await
}

/// The largest statement that the rest fills, with its arguments.
fn next<'a>(rest: &mut &'a [Box<CallRecord>]) -> (&'static str, Vec<Arg<'a>>) {
    let (rows, sql) = INSERTS.iter().find(|(rows, _)| *rows <= rest.len()).copied().unwrap_or(INSERTS[INSERTS.len() - 1]);
    let (now, later) = rest.split_at(rows.min(rest.len()));
    *rest = later;
    (sql, now.iter().flat_map(|record| record.args()).collect())
}

/// Which calls to list.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    pub connection: Option<ConnectionId>,
    pub outcome: Option<String>,
    /// A ref in any of its forms, or a pattern in which `*` stands for any text.
    pub tool: Option<String>,
    pub agent: Option<AgentId>,
    pub since: Option<Timestamp>,
    pub limit: Option<i64>,
    pub cursor: Option<String>,
}

/// The tool that a filter means, as it is compared.
fn wanted(tool: &str) -> Result<String, CallError> {
    if tool.contains('*') {
        return Ok(store::fitting(tool));
    }
    let target: CallRef = tool
        .parse()
        .map_err(|_| CallError::BadFilter(format!("`tool`: `{tool}` is no ref. Give one, or a pattern; did you mean `*.{tool}.*`?")))?;
    Ok(store::fitting(&tool_name(&target)))
}

/// One page of calls, newest first.
#[derive(Clone, Debug)]
pub struct CallPage {
    pub calls: Vec<CallRecord>,
    pub cursor: Option<String>,
}

impl Tools {
    pub async fn calls(&self, project: ProjectId, filter: &CallFilter) -> Result<CallPage, CallError> {
        let outcomes = Outcome::ALL.map(Outcome::name);
        if let Some(outcome) = filter.outcome.as_deref().filter(|outcome| !outcomes.contains(outcome)) {
            let nearest = suggest::did_you_mean(outcome, outcomes);
            return Err(CallError::BadFilter(format!("`{outcome}` is not an outcome; there are ok, error and failed.{nearest}")));
        }
        let tool = filter.tool.as_deref().map(wanted).transpose()?;
        self.audit.settled().await;
        let page = PageSize::asked(filter.limit);
        let before: Option<CallId> = match filter.cursor.as_deref() {
            None | Some("") => None,
            Some(cursor) => Some(cursor.parse().map_err(|_| CallError::BadCursor)?),
        };
        let sql = concat!(
            "select ",
            columns!(),
            " from tool_calls where project_id = $1 and ($2 is null or id < $2) and ($3 is null or connection_id = $3) \
             and ($4 is null or outcome = $4) and ($5 is null or lower(coalesce(tool, call_ref)) like $5 escape '\\') \
             and ($6 is null or agent_id = $6) and ($7 is null or created_at >= $7) order by id desc limit $8"
        );
        let args = args![project, before, filter.connection, filter.outcome.as_deref(), tool, filter.agent, filter.since, page.rows()];
        let rows = self.db.all(sql, args).await?;
        let mut calls: Vec<CallRecord> = rows.iter().map(CallRecord::read).collect::<Result<_, _>>()?;
        let cursor = page.cut(&mut calls, |last| last.id.to_string());
        Ok(CallPage { calls, cursor })
    }
}

/// The calls made through a connection count as its use.
impl Consumer for Tools {
    fn kind(&self) -> &'static str {
        "tools"
    }

    fn count(&self, project: ProjectId, connection: ConnectionId) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(async move {
            self.audit.settled().await;
            let sql = "select count(*) as calls from tool_calls where project_id = $1 and connection_id = $2";
            let row = self.db.optional(sql, args![project, connection]).await?;
            row.map_or(Ok(0), |row| row.get("calls"))
        })
    }
}
