//! Run records: what was run, with what, and how it ended.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures_util::future::BoxFuture;
use kernel::seal::{SealedColumn, Sealer};
use kernel::{ApprovalId, ArtifactId, EndUserId, KeyId, ProjectId, RevisionId, RunId, Scope, Timestamp, json};
use serde_json::Value;
use store::{Db, Grouped, Many, PageSize, Row, StoreError, Tx, Usage, args, page_bytes, page_sql, row};
use uuid::Uuid;

use crate::retention::RUNS;
use crate::{RowKind, StepRecord, WorkflowError, Workflows};

/// The code of a run whose caller went away.
pub(crate) const CANCELLED: i64 = 499;
/// How many runs are sealed again at a time.
const RESEALED: i64 = 200;

macro_rules! columns {
    () => {
        "project_id, id, workflow_id, revision_id, key_id, code, message, inputs, outputs, duration_us, created_at, waits_for, end_user_id"
    };
}

/// How a run stands, from its row; the same as `Run::state`.
macro_rules! state_sql {
    () => {
        "case when waits_for is not null then 'waiting' when code >= 200 and code < 300 then 'succeeded' when code = 499 then 'cancelled' \
         else 'failed' end"
    };
}

pub(crate) use state_sql;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    Succeeded,
    Failed,
    /// A step asks a person first; the run goes on with its next try.
    Waiting,
    /// The caller went away.
    Cancelled,
}

impl RunState {
    pub const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::Waiting, Self::Cancelled];

    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == text)
    }
}

/// A page of the runs that the filters leave.
macro_rules! page_where {
    ($workflow:literal) => {
        page_sql!(
            select columns!(),
            bytes "octet_length(inputs) + coalesce(octet_length(outputs), 0) + coalesce(octet_length(message), 0)",
            from "workflow_runs",
            where concat!("project_id = $1 and ", $workflow, " and ($3 is null or id < $3) and ($5 is null or ", state_sql!(), " = $5) and ($6 is null or end_user_id = $6)"),
            by id "desc",
            limit "$4"
        )
    };
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    pub id: RunId,
    pub project: ProjectId,
    pub workflow: ArtifactId,
    pub revision: RevisionId,
    pub key: KeyId,
    /// Whom it was made for.
    pub end_user: Option<EndUserId>,
    pub code: i64,
    pub message: Option<String>,
    pub inputs: Value,
    pub outputs: Option<Value>,
    pub duration: Duration,
    pub created_at: Timestamp,
    /// The approval that a step waits for, where it stopped there.
    pub waits_for: Option<ApprovalId>,
    /// What its steps did; lists leave it out.
    pub steps: Vec<StepRecord>,
}

impl Run {
    pub fn state(&self) -> RunState {
        match self.code {
            _ if self.waits_for.is_some() => RunState::Waiting,
            200..300 => RunState::Succeeded,
            CANCELLED => RunState::Cancelled,
            _ => RunState::Failed,
        }
    }
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub workflow: Option<ArtifactId>,
    pub state: Option<RunState>,
    pub end_user: Option<EndUserId>,
    pub limit: Option<i64>,
    pub cursor: Option<Uuid>,
}

/// One page of runs, newest first.
#[derive(Clone, Debug)]
pub struct RunPage {
    pub runs: Vec<Run>,
    pub cursor: Option<String>,
}

fn read(row: &Row) -> Result<Run, StoreError> {
    let micros: i64 = row.get("duration_us")?;
    Ok(Run {
        id: row.get("id")?,
        project: row.get("project_id")?,
        workflow: row.get("workflow_id")?,
        revision: row.get("revision_id")?,
        key: row.get("key_id")?,
        end_user: row.get("end_user_id")?,
        code: row.get("code")?,
        message: row.get("message")?,
        inputs: row.get("inputs")?,
        outputs: row.get("outputs")?,
        duration: Duration::from_micros(u64::try_from(micros).unwrap_or(0)),
        created_at: row.get("created_at")?,
        waits_for: row.get("waits_for")?,
        steps: Vec::new(),
    })
}

fn place(run: RunId) -> SealedColumn<'static> {
    SealedColumn { table: "workflow_runs", column: "steps", row: run.uuid() }
}

/// Seals the steps of every run with the current key; a run is never changed otherwise.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, WorkflowError> {
    let mut resealed = 0;
    let mut last = (Uuid::nil(), Uuid::nil());
    loop {
        let sql = "select project_id, id, steps from workflow_runs where (project_id > $1 or (project_id = $1 and id > $2)) \
                   and steps is not null order by project_id, id limit $3";
        let rows = db.all(sql, args![last.0, last.1, RESEALED]).await?;
        let Some(end) = rows.last() else { return Ok(resealed) };
        last = (end.get("project_id")?, end.get("id")?);
        for row in &rows {
            let (project, id, old): (ProjectId, RunId, Vec<u8>) = (row.get("project_id")?, row.get("id")?, row.get("steps")?);
            if !sealer.is_current(&old) {
                let new = sealer.seal(&sealer.open(&old, place(id))?, place(id));
                let sql = "update workflow_runs set steps = $3 where project_id = $1 and id = $2";
                resealed += db.execute(sql, args![project, id, new]).await?;
            }
        }
    }
}

impl Workflows {
    /// Writes a run, once: a caller that goes away may make a second try of it.
    pub(crate) async fn record(&self, run: &Run) -> Result<(), StoreError> {
        self.0.run_rows.write(self.written_run(run)).await
    }

    /// A run as it is written, for `WrittenRun::insert`.
    pub fn written_run(&self, run: &Run) -> WrittenRun {
        let steps = if run.steps.is_empty() { None } else { serde_json::to_vec(&run.steps).ok() };
        WrittenRun {
            id: run.id,
            project: run.project,
            workflow: run.workflow,
            revision: run.revision,
            key: run.key,
            end_user: run.end_user,
            code: run.code,
            message: run.message.as_ref().map(|text| text.replace('\0', "")),
            inputs: json::text(&run.inputs),
            outputs: run.outputs.as_ref().map(json::text),
            micros: i64::try_from(run.duration.as_micros()).unwrap_or(i64::MAX),
            created_at: run.created_at,
            waits_for: run.waits_for,
            steps: steps.map(|steps| self.0.sealer.seal(&steps, place(run.id))),
        }
    }
}

/// A run with its texts, which are made before the database is held.
#[derive(Debug)]
pub struct WrittenRun {
    id: RunId,
    project: ProjectId,
    workflow: ArtifactId,
    revision: RevisionId,
    key: KeyId,
    end_user: Option<EndUserId>,
    code: i64,
    message: Option<String>,
    inputs: String,
    outputs: Option<String>,
    micros: i64,
    created_at: Timestamp,
    waits_for: Option<ApprovalId>,
    /// Sealed.
    steps: Option<Vec<u8>>,
}

impl WrittenRun {
    /// Writes it as part of what somebody writes.
    pub async fn insert(self, tx: &mut Tx) -> Result<(), StoreError> {
        Self::insert_all(tx, &[&self]).await
    }

    /// Writes runs, and counts those that are new.
    async fn insert_all(tx: &mut Tx, runs: &[&Self]) -> Result<(), StoreError> {
        // A second try may come in the same breath as the first.
        let mut seen = HashSet::new();
        let runs: Vec<&Self> = runs.iter().copied().filter(|run| seen.insert(run.id)).collect();
        let rows = runs.iter().map(|run| {
            row! {
                project_id: run.project,
                id: run.id,
                workflow_id: run.workflow,
                revision_id: run.revision,
                key_id: run.key,
                end_user_id: run.end_user,
                code: run.code,
                message: run.message.as_deref(),
                inputs: run.inputs.as_str(),
                outputs: run.outputs.as_deref(),
                duration_us: run.micros,
                created_at: run.created_at,
                waits_for: run.waits_for,
                steps: run.steps.as_deref(),
                size: run.usage().bytes,
            }
        });
        let written = tx.write_each(Many::insert("workflow_runs", rows, "on conflict do nothing"), &["id"]).await?;
        // In the same order on every node, so that no two wait for each other.
        let mut new = BTreeMap::<Uuid, Usage>::new();
        for (run, _) in runs.iter().zip(written).filter(|(_, written)| *written) {
            let (of_project, usage) = (new.entry(run.project.uuid()).or_default(), run.usage());
            of_project.rows += usage.rows;
            of_project.bytes += usage.bytes;
        }
        for (project, usage) in new {
            tx.count(project.into(), RUNS, usage).await?;
        }
        Ok(())
    }

    /// What it counts for.
    fn usage(&self) -> Usage {
        Usage::row(self.bytes())
    }
}

impl Grouped for WrittenRun {
    type Outcome = ();

    const IS_DURABLE: bool = false;

    fn bytes(&self) -> usize {
        self.inputs.len() + self.outputs.as_ref().map_or(0, String::len) + self.steps.as_ref().map_or(0, Vec::len)
    }

    fn write<'a>(tx: &'a mut Tx, all: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<()>, StoreError>> {
        Box::pin(async move { Self::insert_all(tx, all).await.map(|()| vec![(); all.len()]) })
    }
}

impl Workflows {
    #[kernel::boxed]
    pub async fn runs(&self, scope: Scope, filter: &RunFilter) -> Result<RunPage, WorkflowError> {
        let page = PageSize::asked(filter.limit);
        // A workflow may have few runs among many, so they are found by their own index.
        let sql = match filter.workflow {
            Some(_) => page_where!("workflow_id = $2"),
            None => page_where!("($2 is null or workflow_id = $2)"),
        };
        let args = args![
            scope.project,
            filter.workflow,
            filter.cursor,
            page.rows(),
            filter.state.map(RunState::name),
            scope.end_user().or(filter.end_user)
        ];
        let rows = self.0.db.all(sql, args).await?;
        let page = self.0.workers.run(scope.project, page_bytes(&rows), move |_| Ok::<_, WorkflowError>(page.read(&rows, read)?)).await?;
        let cursor = page.cursor(|last| last.id.to_string());
        Ok(RunPage { runs: page.rows, cursor })
    }

    /// One run, with its steps.
    #[kernel::boxed]
    pub async fn run(&self, scope: Scope, id: RunId) -> Result<Run, WorkflowError> {
        let sql = concat!("select ", columns!(), ", steps from workflow_runs where project_id = $1 and id = $2");
        let row = self
            .0
            .db
            .optional(sql, args![scope.project, id])
            .await?
            .ok_or_else(|| WorkflowError::not_found(RowKind::Run, "Run".to_owned()))?;
        let mut run = read(&row)?;
        if !scope.sees(run.end_user.into()) {
            return Err(WorkflowError::not_found(RowKind::Run, "Run".to_owned()));
        }
        if let Some(sealed) = row.get::<Option<Vec<u8>>>("steps")? {
            let steps = self.0.sealer.open(&sealed, place(id))?;
            run.steps = serde_json::from_slice(&steps).unwrap_or_default();
        }
        Ok(run)
    }
}
