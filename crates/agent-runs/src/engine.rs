//! The engine: takes runs that are due, works on them, and gives them back. A node that dies loses its runs when its leases run out.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{ProjectId, RunId, Timestamp};
use store::{Db, StoreError};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::AgentRuns;
use crate::drive::Halt;
use crate::rows::{self, AgentRun, Rest};

/// How often a node looks for work that nobody told it about.
const LOOK: Duration = Duration::from_millis(500);
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
const CHANNEL: &str = "toolyard_agent_runs";
/// Others are told so often at most, however much happens.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// What this node works on, for which project, and how to call it off.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<HashMap<RunId, (ProjectId, CancellationToken)>>);

impl Running {
    fn held(&self) -> MutexGuard<'_, HashMap<RunId, (ProjectId, CancellationToken)>> {
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
    fn keep_only_of(&self, known: &[RunId], held: &[RunId]) {
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
        let settings = &self.0.settings;
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
                if let Err(error) = rows::let_go(&this.0.db, this.0.node, run.id).await {
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
        let now = self.0.clock.now();
        let again = async {
            let mut tx = self.0.db.begin().await?;
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
        let (mut after, mut since) = (Uuid::nil(), self.0.clock.now().minus(ALL_DECISIONS));
        let mut looked: Option<Instant> = None;
        while !stop.is_cancelled() {
            let look = async {
                if looked.is_none_or(|at| at.elapsed() >= LOOK) {
                    looked = Some(Instant::now());
                    since = self.wake_the_decided(since).await?;
                    self.tell_deliveries().await?;
                }
                self.round(&mut after).await
            };
            if let Err(error) = look.await {
                tracing::error!(%error, "runs of agents could not be looked for");
                tokio::time::sleep(LOOK).await;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.0.wake.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Gives free places to projects in turn, so that a busy one waits for the others and not they for it.
    async fn round(&self, after: &mut Uuid) -> Result<(), StoreError> {
        let now = self.0.clock.now();
        rows::take_back(&self.0.db, now).await?;
        loop {
            let mut free = self.0.settings.concurrency.saturating_sub(self.0.running.total());
            if free == 0 || self.0.stop.is_cancelled() {
                return Ok(());
            }
            let projects = rows::with_work(&self.0.db, *after, now, PROJECTS).await?;
            let mut leased = 0;
            for project in &projects {
                let share = self.0.settings.project_concurrency.saturating_sub(self.0.running.of(*project)).min(free);
                if share == 0 {
                    continue;
                }
                let until = now.plus(self.0.settings.lease);
                for run in rows::lease(&self.0.db, *project, share, now, until, self.0.node).await? {
                    leased += 1;
                    free = free.saturating_sub(1);
                    match self.occupy(run.project, run.id) {
                        Some(slot) => self.spawn(run, slot),
                        None => rows::let_go(&self.0.db, self.0.node, run.id).await?,
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
        let now = self.0.clock.now();
        let decided = self.0.calls.decided_since(since).await?;
        rows::ready_decided(&self.0.db, &decided, now).await?;
        Ok(now.minus(OVERLAP))
    }

    /// Tells deliveries how the runs ended that they wait for.
    async fn tell_deliveries(&self) -> Result<(), StoreError> {
        let Some(deliveries) = self.0.deliveries.get() else { return Ok(()) };
        for run in rows::untold(&self.0.db, TOLD).await? {
            let Some(delivery) = run.delivery else { continue };
            if deliveries.ended(&run, delivery).await? {
                rows::told(&self.0.db, run.project, run.id).await?;
            }
        }
        Ok(())
    }

    /// Keeps alive the leases of what this node works on, and lets go of what it took and lost sight of.
    pub(crate) async fn beat(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.0.settings.lease / 3) => {}
            }
            let until = self.0.clock.now().plus(self.0.settings.lease);
            let known: Vec<RunId> = self.0.running.held().keys().copied().collect();
            match rows::beat(&self.0.db, self.0.node, until).await {
                Ok(held) => {
                    self.0.running.keep_only_of(&known, &held);
                    for lost in held.iter().filter(|run| !known.contains(run) && !self.0.running.held().contains_key(run)) {
                        if let Err(error) = rows::let_go(&self.0.db, self.0.node, *lost).await {
                            tracing::warn!(%error, "a run could not be given back");
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "leases of runs could not be extended"),
            }
        }
    }

    /// Somebody may have cancelled a run that this node works on.
    async fn look_for_cancelled(&self) {
        let known: Vec<RunId> = self.0.running.held().keys().copied().collect();
        if known.is_empty() {
            return;
        }
        match rows::held(&self.0.db, self.0.node).await {
            Ok(held) => self.0.running.keep_only_of(&known, &held),
            Err(error) => tracing::debug!(%error, "runs of this node could not be looked at"),
        }
    }

    /// There is news for other nodes: a run that is due, or one that was cancelled.
    pub(crate) fn tell_others(&self) {
        self.0.wake.notify_one();
        self.0.news.notify_one();
    }

    pub(crate) async fn run_telling(self, stop: CancellationToken) {
        let tell = async {
            loop {
                self.0.news.notified().await;
                if let Err(error) = self.0.db.tell(CHANNEL).await {
                    tracing::debug!(%error, "other nodes could not be told of runs; they find them by themselves");
                }
                tokio::time::sleep(TELL_EVERY).await;
            }
        };
        stop.run_until_cancelled(tell).await;
    }

    pub(crate) async fn run_listening(self, stop: CancellationToken) {
        let heard = tokio::sync::Notify::new();
        let listen = async {
            loop {
                if let Err(error) = self.0.db.listen(CHANNEL, || heard.notify_one()).await {
                    tracing::debug!(%error, "other nodes are not heard now; their runs are found by looking");
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let act = async {
            loop {
                heard.notified().await;
                self.0.wake.notify_one();
                self.look_for_cancelled().await;
            }
        };
        stop.run_until_cancelled(Box::pin(async { tokio::join!(listen, act) })).await;
    }

    /// Whether nodes have to be told of things through the database.
    pub(crate) fn has_other_nodes(&self) -> bool {
        matches!(self.0.db, Db::Postgres(_))
    }
}
