//! The journal of a run: a row for each turn of the model and each call, and what happened for whoever follows. Texts are sealed, since they
//! hold what accounts hold.

use std::time::Duration;

use kernel::seal::{SealedColumn, Sealer};
use kernel::{ProjectId, RunId, Timestamp};
use models::{Message, Reply, ToolCall};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Db, Many, Row, StoreError, Tx, args, row};
use uuid::Uuid;

use crate::conversation::{CallOutcome, Kept, LeftOut, Purpose};
use crate::error::RunError;
use crate::events::{NumberedEvent, RunEvent};

/// How many event rows are read at once.
const ROWS: i64 = 200;

/// What a step is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// What the run began with: the messages of its session and what was left out of them, its own, and the instructions as they were filled in.
    Begun {
        system: String,
        history: Vec<Message>,
        #[serde(default)]
        left_out: LeftOut,
        first: Vec<Message>,
    },
    /// The model answered.
    Turn { purpose: Purpose, reply: Reply },
    /// The model wants a tool to be called.
    Call { call: ToolCall },
    /// The answer did not fit the schema of the outputs.
    Unfit { why: String },
    /// Older results became stubs.
    Stubbed,
}

impl Entry {
    fn kind(&self) -> &'static str {
        match self {
            Self::Begun { .. } => "begun",
            Self::Turn { .. } => "turn",
            Self::Call { .. } => "call",
            Self::Unfit { .. } => "unfit",
            Self::Stubbed => "stubbed",
        }
    }
}

/// One row of the journal.
#[derive(Clone, Debug)]
pub(crate) struct JournalRow {
    pub(crate) number: i64,
    pub(crate) entry: Entry,
    /// What came of a call.
    pub(crate) outcome: Option<CallOutcome>,
    pub(crate) began_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
}

impl JournalRow {
    pub(crate) fn took(&self) -> Duration {
        let micros = self.began_at.zip(self.ended_at).map_or(0, |(began, ended)| ended.micros().saturating_sub(began.micros()));
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

/// What is written together.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    pub(crate) new: Vec<JournalRow>,
    /// Calls that came to something.
    pub(crate) ended: Vec<(i64, CallOutcome, Timestamp)>,
}

fn place<'a>(table: &'a str, column: &'a str, row: Uuid) -> SealedColumn<'a> {
    SealedColumn { table, column, row }
}

const STEPS: &str = "agent_run_steps";
const EVENTS: &str = "agent_run_events";
const SESSIONS: &str = "agent_sessions";

fn seal<T: Serialize>(sealer: &Sealer, value: &T, place: SealedColumn<'_>) -> Result<Vec<u8>, RunError> {
    let text = serde_json::to_vec(value).map_err(|error| RunError::Broken(error.to_string()))?;
    Ok(sealer.seal(&text, place))
}

fn open<T: DeserializeOwned>(sealer: &Sealer, sealed: &[u8], place: SealedColumn<'_>) -> Result<T, RunError> {
    serde_json::from_slice(&sealer.open(sealed, place)?).map_err(|error| RunError::Broken(error.to_string()))
}

/// The id of a step's row, by which its texts are sealed: no two rows have the same.
fn step_id(run: RunId, number: i64) -> Uuid {
    let mut bytes = *run.uuid().as_bytes();
    for (byte, part) in bytes.iter_mut().rev().zip(number.to_le_bytes()) {
        *byte ^= part;
    }
    Uuid::from_bytes(bytes)
}

pub(crate) async fn write(tx: &mut Tx, sealer: &Sealer, project: ProjectId, run: RunId, writing: &Writing) -> Result<(), RunError> {
    let mut rows = Vec::with_capacity(writing.new.len());
    for new in &writing.new {
        let id = step_id(run, new.number);
        let ended = new.outcome.as_ref().map(|outcome| seal(sealer, outcome, place(STEPS, "ended", id))).transpose()?;
        rows.push(row! {
            project_id: project,
            run_id: run,
            number: new.number,
            id: id,
            kind: new.entry.kind(),
            begun: seal(sealer, &new.entry, place(STEPS, "begun", id))?,
            ended: ended,
            began_at: new.began_at,
            ended_at: new.ended_at,
        });
    }
    if !rows.is_empty() {
        tx.write_many(Many::insert(STEPS, rows, "")).await?;
    }
    for (number, outcome, at) in &writing.ended {
        let sealed = seal(sealer, outcome, place(STEPS, "ended", step_id(run, *number)))?;
        let sql = "update agent_run_steps set ended = $4, ended_at = $5 where project_id = $1 and run_id = $2 and number = $3";
        tx.execute(sql, args![project, run, *number, sealed, *at]).await?;
    }
    Ok(())
}

/// Notes that calls are about to be made.
pub(crate) async fn begin_calls(tx: &mut Tx, project: ProjectId, run: RunId, numbers: &[i64], now: Timestamp) -> Result<(), StoreError> {
    let rows = numbers.iter().map(|number| row! { project_id: project, run_id: run, number: *number, now: now });
    let sql = "update agent_run_steps as s set began_at = v.now from v \
               where s.project_id = v.project_id and s.run_id = v.run_id and s.number = v.number and s.began_at is null";
    tx.write_many(Many::with(rows, sql)).await?;
    Ok(())
}

/// The whole journal of a run, in its order.
pub(crate) async fn read(db: &Db, sealer: &Sealer, project: ProjectId, run: RunId) -> Result<Vec<JournalRow>, RunError> {
    let sql = "select number, begun, ended, began_at, ended_at from agent_run_steps where project_id = $1 and run_id = $2 order by number";
    let rows = db.all(sql, args![project, run]).await?;
    let read = |row: &Row| {
        let number: i64 = row.get("number")?;
        let id = step_id(run, number);
        let ended: Option<Vec<u8>> = row.get("ended")?;
        Ok(JournalRow {
            number,
            entry: open(sealer, &row.get::<Vec<u8>>("begun")?, place(STEPS, "begun", id))?,
            outcome: ended.map(|ended| open(sealer, &ended, place(STEPS, "ended", id))).transpose()?,
            began_at: row.get("began_at")?,
            ended_at: row.get("ended_at")?,
        })
    };
    work::in_place(rows.len() * 4096, || rows.iter().map(read).collect())
}

/// Writes events from a number on.
pub(crate) async fn write_events(
    tx: &mut Tx,
    sealer: &Sealer,
    project: ProjectId,
    run: RunId,
    first: i64,
    events: &[RunEvent],
    now: Timestamp,
) -> Result<(), RunError> {
    let id = step_id(run, -first);
    let row = row! {
        project_id: project,
        run_id: run,
        number: first,
        last_number: first + i64::try_from(events.len()).unwrap_or(1) - 1,
        id: id,
        events: seal(sealer, &events, place(EVENTS, "events", id))?,
        created_at: now,
    };
    Ok(tx.insert(EVENTS, row).await?)
}

/// The number of the last event of a run.
pub(crate) async fn last_event(db: &Db, project: ProjectId, run: RunId) -> Result<i64, StoreError> {
    let sql = "select max(last_number) as last from agent_run_events where project_id = $1 and run_id = $2";
    let row = db.optional(sql, args![project, run]).await?;
    Ok(row.map_or(Ok(None), |row| row.get::<Option<i64>>("last"))?.unwrap_or(0))
}

/// Events after a number, in their order; some of them where there are many.
pub(crate) async fn events_after(
    db: &Db,
    sealer: &Sealer,
    project: ProjectId,
    run: RunId,
    after: i64,
) -> Result<Vec<NumberedEvent>, RunError> {
    let sql =
        "select number, events from agent_run_events where project_id = $1 and run_id = $2 and last_number > $3 order by number limit $4";
    let mut found = Vec::new();
    for row in db.all(sql, args![project, run, after, ROWS]).await? {
        let first: i64 = row.get("number")?;
        let events: Vec<RunEvent> = open(sealer, &row.get::<Vec<u8>>("events")?, place(EVENTS, "events", step_id(run, -first)))?;
        let numbered = (first..).zip(events).map(|(number, event)| NumberedEvent { number, event });
        found.extend(numbered.filter(|event| event.number > after));
    }
    Ok(found)
}

/// What a run leaves to its session.
#[derive(Debug)]
pub(crate) struct SessionPart<'a> {
    pub(crate) project: ProjectId,
    pub(crate) workflow: kernel::ArtifactId,
    pub(crate) session: &'a str,
    pub(crate) run: RunId,
    pub(crate) kept: Kept<'a>,
}

/// What was said in a session, and what was left out of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) messages: Vec<Message>,
    pub(crate) left_out: LeftOut,
}

/// A row of a session: what a run leaves to it, or, as the first version wrote it, the messages alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredPart {
    Whole(Said),
    Messages(Vec<Message>),
}

pub(crate) async fn keep_session(tx: &mut Tx, sealer: &Sealer, part: &SessionPart<'_>, now: Timestamp) -> Result<(), RunError> {
    let id = Uuid::now_v7();
    let row = row! {
        project_id: part.project,
        id: id,
        workflow_id: part.workflow,
        session_id: part.session,
        run_id: part.run,
        is_replacing: part.kept.is_replacing,
        messages: seal(sealer, &json!({"messages": part.kept.messages, "left_out": part.kept.left_out}), place(SESSIONS, "messages", id))?,
        created_at: now,
    };
    Ok(tx.insert(SESSIONS, row).await?)
}

/// What was said in a session so far.
pub(crate) async fn session(
    db: &Db,
    sealer: &Sealer,
    project: ProjectId,
    workflow: kernel::ArtifactId,
    session: &str,
) -> Result<Said, RunError> {
    let sql = "select id, messages from agent_sessions where project_id = $1 and workflow_id = $2 and session_id = $3 and id >= coalesce((select r.id \
               from agent_sessions r where r.project_id = $1 and r.workflow_id = $2 and r.session_id = $3 and r.is_replacing order by r.id desc limit 1), \
               (select f.id from agent_sessions f where f.project_id = $1 and f.workflow_id = $2 and f.session_id = $3 order by f.id limit 1)) order by id";
    let mut said = Said::default();
    for row in db.all(sql, args![project, workflow, session]).await? {
        let (id, sealed): (Uuid, Vec<u8>) = (row.get("id")?, row.get("messages")?);
        match open(sealer, &sealed, place(SESSIONS, "messages", id))? {
            StoredPart::Messages(messages) => said.messages.extend(messages),
            StoredPart::Whole(part) => {
                said.messages.extend(part.messages);
                said.left_out.extend(part.left_out);
            }
        }
    }
    Ok(said)
}

/// How many rows are sealed again at a time.
const RESEALED: i64 = 200;

/// A table, the statement that reads its rows on, and for each sealed column the one that writes it.
type Place = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Seals what runs and sessions hold with the current key.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, RunError> {
    let steps = "select project_id, id, begun, ended from agent_run_steps where project_id > $1 or (project_id = $1 and id > $2) order by project_id, id limit $3";
    let events = "select project_id, id, events from agent_run_events where project_id > $1 or (project_id = $1 and id > $2) order by project_id, id limit $3";
    let sessions = "select project_id, id, messages from agent_sessions where project_id > $1 or (project_id = $1 and id > $2) order by project_id, id limit $3";
    let places: [Place; 3] = [
        (
            STEPS,
            steps,
            &[
                ("begun", "update agent_run_steps set begun = $3 where project_id = $1 and id = $2"),
                ("ended", "update agent_run_steps set ended = $3 where project_id = $1 and id = $2"),
            ],
        ),
        (EVENTS, events, &[("events", "update agent_run_events set events = $3 where project_id = $1 and id = $2")]),
        (SESSIONS, sessions, &[("messages", "update agent_sessions set messages = $3 where project_id = $1 and id = $2")]),
    ];
    let mut resealed = 0;
    for (table, sql, columns) in places {
        let mut last = (Uuid::nil(), Uuid::nil());
        loop {
            let rows = db.all(sql, args![last.0, last.1, RESEALED]).await?;
            let Some(end) = rows.last() else { break };
            last = (end.get("project_id")?, end.get("id")?);
            for row in &rows {
                let (project, id): (ProjectId, Uuid) = (row.get("project_id")?, row.get("id")?);
                for (column, update) in columns {
                    let Some(old) = row.get::<Option<Vec<u8>>>(column)?.filter(|old| !sealer.is_current(old)) else { continue };
                    let new = sealer.seal(&sealer.open(&old, place(table, column, id))?, place(table, column, id));
                    resealed += db.execute(update, args![project, id, new]).await?;
                }
            }
        }
    }
    Ok(resealed)
}
