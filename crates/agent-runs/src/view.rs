//! Reading runs, following and cancelling them.

use std::time::Duration;

use kernel::{ArtifactId, DeliveryId, EndUserId, ProjectId, RunId, Scope, Timestamp, json};
use serde_json::{Value, json};
use store::{PageSize, StoreError, args, page_bytes};
use tokio::time::timeout;
use workflows::{MAX_STEP_BYTES, Run, StepRecord, StepState};

use crate::conversation::{OutcomeKind, Purpose};
use crate::error::RunError;
use crate::events::{NumberedEvent, RunEvent, RunState};
use crate::journal::{self, Entry, JournalRow};
use crate::log::EventLog;
use crate::rows::{self, AgentRun, End};
use crate::tools::read_arguments;
use crate::{AgentRuns, Used};

const CANCELLED: i64 = 499;
/// How often somebody looks who follows a run, although nobody told of it.
const LOOK: Duration = Duration::from_secs(2);
/// How many runs are dropped in one go.
const BATCH: i64 = 200;

/// Which runs to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentRunFilter {
    /// Those that have not ended, if nothing is said.
    pub state: Option<RunState>,
    pub workflow: Option<ArtifactId>,
    pub end_user: Option<EndUserId>,
    pub limit: Option<i64>,
    pub cursor: Option<RunId>,
}

/// One page of runs, newest first.
#[derive(Clone, Debug)]
pub struct AgentRunPage {
    pub runs: Vec<AgentRun>,
    pub cursor: Option<RunId>,
}

impl AgentRuns {
    #[kernel::boxed]
    pub async fn get(&self, scope: Scope, id: RunId) -> Result<AgentRun, RunError> {
        let run = rows::by_id(&self.0.parts.db, scope.project, id).await?;
        run.filter(|run| scope.sees(run.end_user.into())).ok_or(RunError::NotFound)
    }

    /// Where the person decides that a run waits for.
    #[kernel::boxed]
    pub async fn approval_url(&self, run: &AgentRun) -> Result<Option<String>, RunError> {
        match run.approval {
            Some(approval) => Ok(Some(self.0.parts.calls.page_of(run.project, approval).await?)),
            None => Ok(None),
        }
    }

    /// What a run did so far: its turns and calls, with their times.
    #[kernel::boxed]
    pub async fn steps(&self, scope: Scope, id: RunId) -> Result<Vec<StepRecord>, RunError> {
        let rows = journal::read(&self.0.parts.db, &self.0.parts.sealer, scope.project, id).await?;
        Ok(work::in_place(rows.len() * 4096, || steps(&rows)))
    }

    #[kernel::boxed]
    pub async fn list(&self, scope: Scope, filter: &AgentRunFilter) -> Result<AgentRunPage, RunError> {
        let size = PageSize::asked(filter.limit);
        let end_user = scope.end_user().or(filter.end_user);
        let rows = rows::page(&self.0.parts.db, scope.project, filter.state, filter.workflow, end_user, filter.cursor, size).await?;
        let bytes = page_bytes(&rows);
        let page = self.0.parts.workers.run(scope.project, bytes, move |_| Ok::<_, RunError>(size.read(&rows, rows::read)?)).await?;
        let cursor = page.cursor(|last| last.id);
        Ok(AgentRunPage { runs: page.rows, cursor })
    }

    /// Ends a run that has not ended, at once and wherever it is worked on. A call that is under way runs to its end, and nobody hears of it.
    #[kernel::boxed]
    pub async fn cancel(&self, scope: Scope, id: RunId) -> Result<AgentRun, RunError> {
        let run = self.get(scope, id).await?;
        let end = End { state: RunState::Cancelled, code: CANCELLED, message: "The run was cancelled.".to_owned(), outputs: None };
        let mut log = EventLog::after(journal::last_event(&self.0.parts.db, scope.project, id).await?);
        // Whoever works on it may write an event meanwhile, which takes the number of the last one.
        let mut ended = self.finish(&run, None, &end, &run.used, &mut log, None).await;
        if ended.is_err() {
            self.0.running.call_off(id);
            log = EventLog::after(journal::last_event(&self.0.parts.db, scope.project, id).await?);
            ended = self.finish(&run, None, &end, &run.used, &mut log, None).await;
        }
        if !ended? {
            return Err(RunError::Ended(self.get(scope, id).await?.state.name()));
        }
        self.0.running.call_off(id);
        self.tell_others();
        tracing::info!(run = %id, project = %scope.project, by = %scope.author(), "a run of an agent was cancelled");
        self.get(scope, id).await
    }

    /// Ends the runs of a delivery that was cancelled.
    #[kernel::boxed]
    pub async fn cancel_of(&self, scope: Scope, delivery: DeliveryId) -> Result<(), RunError> {
        for id in rows::of_delivery(&self.0.parts.db, scope.project, delivery).await? {
            match self.cancel(scope, id).await {
                Ok(_) | Err(RunError::Ended(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The events of a run after a number: at once where there are some, else when they come. None at the end of a run.
    #[kernel::boxed]
    pub async fn next_events(&self, scope: Scope, id: RunId, after: i64) -> Result<Vec<NumberedEvent>, RunError> {
        let mut heard = self.0.followers.follow(id);
        loop {
            let is_over = self.get(scope, id).await?.state.is_over();
            let events = journal::events_after(&self.0.parts.db, &self.0.parts.sealer, scope.project, id, after).await?;
            if !events.is_empty() || is_over {
                return Ok(events);
            }
            let _ = timeout(LOOK, heard.changed()).await;
        }
    }

    /// The number of the last event so far in which a person was asked; 0 where nobody was.
    #[kernel::boxed]
    pub async fn last_question(&self, scope: Scope, id: RunId) -> Result<i64, RunError> {
        self.get(scope, id).await?;
        let (mut seen, mut found) = (0, 0);
        loop {
            let events = journal::events_after(&self.0.parts.db, &self.0.parts.sealer, scope.project, id, seen).await?;
            let Some(last) = events.last() else { return Ok(found) };
            seen = last.number;
            found = events.iter().rfind(|told| matches!(told.event, RunEvent::ApprovalNeeded { .. })).map_or(found, |told| told.number);
        }
    }

    /// Drops runs that were kept for so long, with what they and their sessions hold; how many.
    #[kernel::boxed]
    pub async fn forget(&self, project: ProjectId, kept_for: Duration) -> Result<u64, StoreError> {
        let before = self.0.parts.clock.now().minus(kept_for);
        let mut forgotten = 0;
        loop {
            let sql =
                "select id from agent_runs where project_id = $1 and ended_at is not null and ended_at < $2 order by ended_at limit $3";
            let old: Vec<RunId> =
                self.0.parts.db.all(sql, args![project, before, BATCH]).await?.iter().map(|row| row.get("id")).collect::<Result<_, _>>()?;
            if old.is_empty() {
                break;
            }
            forgotten += self.remove(project, &old).await?;
        }
        self.0.parts.db.execute("delete from agent_sessions where project_id = $1 and created_at < $2", args![project, before]).await?;
        Ok(forgotten)
    }

    /// Removes runs with all that they hold; how many there were.
    pub(crate) async fn remove(&self, project: ProjectId, ids: &[RunId]) -> Result<u64, StoreError> {
        let (mut tx, mut removed) = (self.0.parts.db.begin().await?, 0);
        for id in ids {
            for sql in [
                "delete from agent_run_steps where project_id = $1 and run_id = $2",
                "delete from agent_run_events where project_id = $1 and run_id = $2",
            ] {
                tx.execute(sql, args![project, *id]).await?;
            }
            removed += tx.execute("delete from agent_runs where project_id = $1 and id = $2", args![project, *id]).await?;
        }
        tx.commit().await?;
        Ok(removed)
    }

    /// How many runs this node works on, and how many of its runs ended how.
    pub fn running(&self) -> u64 {
        self.0.running.total() as u64
    }

    /// The record of an ended run among the runs of workflows.
    pub(crate) async fn record(&self, run: &AgentRun, end: &End, used: &Used, now: Timestamp) -> Result<Run, RunError> {
        let rows = journal::read(&self.0.parts.db, &self.0.parts.sealer, run.project, run.id).await?;
        let steps = work::in_place(rows.len() * 4096, || steps(&rows));
        Ok(Run {
            id: run.id,
            project: run.project,
            workflow: run.workflow,
            revision: run.revision,
            key: run.key,
            end_user: run.end_user,
            code: end.code,
            message: Some(end.message.clone()),
            inputs: run.inputs.clone(),
            outputs: end.outputs.clone(),
            duration: used.active.max(Duration::from_micros(u64::try_from(now.micros() - run.created_at.micros()).unwrap_or(0))),
            created_at: run.created_at,
            steps,
            waits_for: None,
        })
    }
}

/// The journal as steps of a run.
fn steps(rows: &[JournalRow]) -> Vec<StepRecord> {
    let (mut records, mut left, mut turns) = (Vec::with_capacity(rows.len()), MAX_STEP_BYTES, 0);
    for row in rows {
        let began = row.began_at.unwrap_or(Timestamp::from_micros(0));
        let record = match &row.entry {
            Entry::Turn { purpose, reply } => {
                turns += 1;
                let name = match purpose {
                    Purpose::Work => format!("turn {turns}"),
                    Purpose::LastAnswer => format!("turn {turns}, the last answer"),
                    Purpose::Summary => format!("turn {turns}, a summary"),
                };
                let mut record = StepRecord::new(name, "model".to_owned(), StepState::Done, began, row.took());
                let calls: Vec<&str> = reply.calls.iter().map(|call| call.name.as_str()).collect();
                let said = json!({"text": reply.text, "tool_calls": calls, "usage": reply.usage, "stop": reply.stop});
                left = left.saturating_sub(record.keep("result", &said, left));
                record
            }
            Entry::Call { call } => {
                let state = match row.outcome.as_ref().map(|outcome| outcome.kind) {
                    Some(OutcomeKind::Done) => StepState::Done,
                    Some(OutcomeKind::Failed | OutcomeKind::Denied) => StepState::Failed,
                    Some(OutcomeKind::Unknown) => StepState::Unknown,
                    Some(OutcomeKind::NotMade) => StepState::Skipped,
                    None if row.began_at.is_none() => StepState::Waiting,
                    None => StepState::Unfinished,
                };
                let mut record = StepRecord::new(format!("{}.{}", row.number, call.name), call.name.clone(), state, began, row.took());
                let arguments = read_arguments(&call.arguments).map_or_else(|_| json!(call.arguments), Value::Object);
                left = left.saturating_sub(record.keep("arguments", &arguments, left));
                match &row.outcome {
                    Some(outcome) if outcome.is_error() => {
                        let end = outcome.content.floor_char_boundary(outcome.content.len().min(2000));
                        record.code = Some(if outcome.kind == OutcomeKind::Denied { 403 } else { 424 });
                        record.error = Some(outcome.content[..end].to_owned());
                    }
                    Some(outcome) => {
                        let result = readable(&outcome.content);
                        left = left.saturating_sub(record.keep("result", &result, left));
                    }
                    None => {}
                }
                record
            }
            Entry::Unfit { why } => {
                let mut record =
                    StepRecord::new(format!("{}.check", row.number), "schemas.outputs".to_owned(), StepState::Failed, began, row.took());
                record.error = Some(why.clone());
                record
            }
            Entry::Begun { .. } | Entry::Stubbed => continue,
        };
        records.push(record);
    }
    records
}

/// A result as JSON where it is that.
fn readable(content: &str) -> Value {
    let is_small = content.len() <= 64 << 10;
    let parsed = if is_small { serde_json::from_str::<Value>(content).ok() } else { None };
    parsed.filter(|value| !json::depth_exceeds(value, json::MAX_DEPTH)).unwrap_or_else(|| json!(content))
}
