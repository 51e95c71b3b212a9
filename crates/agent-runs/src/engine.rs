//! The engine: takes runs that are due, works on them, and gives them back. A node that dies loses its runs when its leases run out.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::{ProjectId, RunId, Timestamp};
use store::StoreError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::AgentRuns;
use crate::drive::Halt;
use crate::rows::{self, AgentRun, Rest};

/// How often a node looks for work that nobody told it about.
const LOOK: Duration = Duration::from_millis(500);
/// How often one that has nothing to do, and is told by others what there is.
const IDLE: Duration = Duration::from_secs(2);
/// How many projects with work are looked at in one round.
const PROJECTS: i64 = 64;
/// How far back decisions are looked for again: nodes' clocks differ, and a run may begin to wait just after one.
const OVERLAP: Duration = Duration::from_mins(1);
/// How far back at the start.
const ALL_DECISIONS: Duration = Duration::from_hours(25);
/// When a run is tried again that failed by our own fault.
const AGAIN: Duration = Duration::from_secs(2);
/// How long calls have to end when the node stops.
const GRACE: Duration = Duration::from_secs(20);
/// How many ended runs are told to their deliveries at once.
const TOLD: i64 = 100;

/// What this node works on, for which project, and how to call it off.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<HashMap<RunId, (ProjectId, CancellationToken)>>);

impl Running {
    pub(crate) fn held(&self) -> MutexGuard<'_, HashMap<RunId, (ProjectId, CancellationToken)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, project: ProjectId) -> usize {
        self.held().values().filter(|(other, _)| *other == project).count()
    }

    pub(crate) fn total(&self) -> usize {
        self.held().len()
    }

    /// Ends the work on a run that is no longer this node's.
    pub(crate) fn call_off(&self, run: RunId) {
        if let Some((_, cancelled)) = self.held().get(&run) {
            cancelled.cancel();
        }
    }

    /// Of those that were known, ends the work on all that are not held any more.
    pub(crate) fn keep_only_of(&self, known: &[RunId], held: &[RunId]) {
        for run in known.iter().filter(|run| !held.contains(run)) {
            self.call_off(*run);
        }
    }
}

/// The place of one run, given back however the work on it ends.
#[derive(Debug)]
pub(crate) struct RunSlot {
    runs: AgentRuns,
    id: RunId,
    cancelled: CancellationToken,
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        self.runs.0.running.held().remove(&self.id);
        self.runs.0.wake.notify_one();
    }
}

impl AgentRuns {
    /// A place for a run, if there is one free for its project.
    pub(crate) fn occupy(&self, project: ProjectId, id: RunId) -> Option<RunSlot> {
        let settings = &self.0.parts.settings;
        let mut held = self.0.running.held();
        let of_project = held.values().filter(|(other, _)| *other == project).count();
        if self.0.stop.is_cancelled() || held.len() >= settings.concurrency || of_project >= settings.project_concurrency {
            return None;
        }
        let cancelled = CancellationToken::new();
        held.insert(id, (project, cancelled.clone()));
        Some(RunSlot { runs: self.clone(), id, cancelled })
    }

    /// Works on a run that is this node's, in a task of its own.
    pub(crate) fn spawn(&self, run: AgentRun, slot: RunSlot) {
        let this = self.clone();
        self.0.tasks.spawn(async move {
            let stopping = this.0.stop.clone();
            // A node that stops lets calls under way come to their end, for a while, and gives its runs back.
            let halt = {
                let mut work = pin!(slot.cancelled.run_until_cancelled(this.drive(&run)));
                tokio::select! {
                    halt = &mut work => halt,
                    () = stopping.cancelled() => timeout(GRACE, &mut work).await.unwrap_or(Some(Halt::Stopped)),
                }
            };
            if let Some(Halt::Stopped) = halt {
                if let Err(error) = rows::let_go(&this.0.parts.db, this.0.node, run.id).await {
                    tracing::debug!(run = %run.id, %error, "a run could not be given back; its lease runs out");
                }
                this.tell_others();
            }
            if let Some(Halt::Broken(error)) = halt {
                tracing::error!(run = %run.id, project = %run.project, %error, "a run of an agent was interrupted; it is tried again");
                this.try_later(&run).await;
            }
            drop(slot);
        });
    }

    async fn try_later(&self, run: &AgentRun) {
        let now = self.0.parts.clock.now();
        let again = async {
            let mut tx = self.0.parts.db.begin().await?;
            rows::rest(&mut tx, run.project, run.id, self.0.node, Rest::Later(now.plus(AGAIN)), run.tries, now).await?;
            tx.commit().await
        };
        if let Err(error) = again.await {
            tracing::debug!(run = %run.id, %error, "a run could not be given back; its lease runs out");
        }
        let this = self.clone();
        self.0.tasks.spawn(async move {
            if this.0.stop.run_until_cancelled(tokio::time::sleep(AGAIN)).await.is_some() {
                this.0.wake.notify_one();
            }
        });
    }

    pub(crate) async fn run_engine(self, stop: CancellationToken) {
        let mut after = Uuid::nil();
        while !stop.is_cancelled() {
            if let Err(error) = self.round(&mut after).await {
                tracing::error!(%error, "runs of agents could not be looked for");
                tokio::time::sleep(LOOK).await;
            }
            // Where others tell of their runs, what is left to find has lost its node.
            let may_rest = self.0.running.total() == 0 && self.has_other_nodes();
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.0.wake.notified() => {}
                () = tokio::time::sleep(if may_rest { IDLE } else { LOOK }) => {}
            }
        }
    }

    /// Looks after runs that wait for people, and deliveries that wait for runs: when a person decides, when a run begins to wait or ends
    /// for a delivery, and now and then, because another node may have stopped before it told anybody.
    pub(crate) async fn run_attending(self, stop: CancellationToken) {
        let mut decisions = self.0.parts.calls.decisions();
        let mut since = self.0.parts.clock.now().minus(ALL_DECISIONS);
        while !stop.is_cancelled() {
            let look = async {
                since = self.wake_the_decided(since).await?;
                self.tell_deliveries().await
            };
            let again = match look.await {
                Ok(true) => IDLE,
                Ok(false) => LOOK,
                Err(error) => {
                    tracing::error!(%error, "runs that wait could not be looked after");
                    LOOK
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.0.attend.notified() => {}
                Ok(()) = decisions.changed() => {}
                () = tokio::time::sleep(again) => {}
            }
        }
    }

    /// Gives free places to projects in turn, so that a busy one waits for the others and not they for it.
    async fn round(&self, after: &mut Uuid) -> Result<(), StoreError> {
        let now = self.0.parts.clock.now();
        rows::take_back(&self.0.parts.db, now).await?;
        loop {
            let mut free = self.0.parts.settings.concurrency.saturating_sub(self.0.running.total());
            if free == 0 || self.0.stop.is_cancelled() {
                return Ok(());
            }
            let projects = rows::with_work(&self.0.parts.db, *after, now, PROJECTS).await?;
            let mut leased = 0;
            for project in &projects {
                let share = self.0.parts.settings.project_concurrency.saturating_sub(self.0.running.of(*project)).min(free);
                if share == 0 {
                    continue;
                }
                let until = now.plus(self.0.parts.settings.lease);
                for run in rows::lease(&self.0.parts.db, *project, share, now, until, self.0.node).await? {
                    leased += 1;
                    free = free.saturating_sub(1);
                    match self.occupy(run.project, run.id) {
                        Some(slot) => self.spawn(run, slot),
                        None => rows::let_go(&self.0.parts.db, self.0.node, run.id).await?,
                    }
                }
            }
            let more = i64::try_from(projects.len()).is_ok_and(|found| found == PROJECTS);
            *after = if more { projects.last().map_or(Uuid::nil(), |last| last.uuid()) } else { Uuid::nil() };
            if leased == 0 && !more {
                return Ok(());
            }
        }
    }

    /// Makes runs ready that wait for what somebody decided since; from when to look the next time.
    async fn wake_the_decided(&self, since: Timestamp) -> Result<Timestamp, StoreError> {
        let now = self.0.parts.clock.now();
        let decided = self.0.parts.calls.decided_since(since).await?;
        if rows::ready_decided(&self.0.parts.db, &decided, now).await? > 0 {
            self.tell_others();
        }
        Ok(now.minus(OVERLAP))
    }

    /// Tells deliveries how the runs ended that they wait for; whether all of them know.
    async fn tell_deliveries(&self) -> Result<bool, StoreError> {
        let Some(deliveries) = self.0.deliveries.get() else { return Ok(true) };
        let mut all_know = true;
        for run in rows::untold(&self.0.parts.db, TOLD).await? {
            let Some(delivery) = run.delivery else { continue };
            if deliveries.ended(&run, delivery).await? {
                rows::told(&self.0.parts.db, run.project, run.id).await?;
            } else {
                all_know = false;
            }
        }
        Ok(all_know)
    }

    /// Keeps alive the leases of what this node works on, and lets go of what it took and lost sight of.
    pub(crate) async fn beat(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.0.parts.settings.lease / 3) => {}
            }
            let until = self.0.parts.clock.now().plus(self.0.parts.settings.lease);
            let known: Vec<RunId> = self.0.running.held().keys().copied().collect();
            match rows::beat(&self.0.parts.db, self.0.node, until).await {
                Ok(held) => {
                    self.0.running.keep_only_of(&known, &held);
                    for lost in held.iter().filter(|run| !known.contains(run) && !self.0.running.held().contains_key(run)) {
                        if let Err(error) = rows::let_go(&self.0.parts.db, self.0.node, *lost).await {
                            tracing::warn!(%error, "a run could not be given back");
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "leases of runs could not be extended"),
            }
        }
    }
}
