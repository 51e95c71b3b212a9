//! The threads, and whose work they take next.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::ProjectId;

use crate::WorkError;

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// How long a thread without work is kept.
const IDLE: Duration = Duration::from_secs(10);
const STACK: usize = 4 << 20;
/// How far these threads stand back behind those that answer.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    arrived: Condvar,
    threads: usize,
    /// How many threads one project may have.
    share: usize,
}

#[derive(Default)]
struct State {
    waiting: HashMap<ProjectId, VecDeque<Job>>,
    /// The projects whose work waits, the next one first.
    turns: VecDeque<ProjectId>,
    running: HashMap<ProjectId, usize>,
    started: usize,
    idle: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("started", &self.started).field("idle", &self.idle).finish_non_exhaustive()
    }
}

impl State {
    /// The next project in turn that has less than its share.
    fn next(&self, share: usize) -> Option<usize> {
        self.turns.iter().position(|project| self.running.get(project).is_none_or(|running| *running < share))
    }

    /// The next piece of work.
    fn take(&mut self, share: usize) -> Option<(ProjectId, Job)> {
        let at = self.next(share)?;
        let project = self.turns.remove(at)?;
        let jobs = self.waiting.get_mut(&project)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.waiting.remove(&project);
        } else {
            self.turns.push_back(project);
        }
        *self.running.entry(project).or_default() += 1;
        Some((project, job))
    }

    fn ended(&mut self, project: ProjectId) {
        if let Some(running) = self.running.get_mut(&project) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(&project);
            }
        }
    }
}

/// Has this thread stand back behind those that answer.
pub(crate) fn stand_back() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
}

impl Pool {
    pub(crate) fn new(threads: usize, share: usize) -> Self {
        Self { state: Mutex::default(), arrived: Condvar::new(), threads, share }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much of a project's work is under way, and how much waits.
    #[cfg(test)]
    pub(crate) fn count(&self, project: ProjectId) -> (usize, usize) {
        let state = self.lock();
        (state.running.get(&project).copied().unwrap_or(0), state.waiting.get(&project).map_or(0, VecDeque::len))
    }

    /// Lets a piece of work wait for its turn, behind at most `most` others of its project.
    pub(crate) fn submit(self: &Arc<Self>, project: ProjectId, most: usize, job: Job) -> Result<(), WorkError> {
        let mut state = self.lock();
        let jobs = state.waiting.entry(project).or_default();
        if jobs.len() >= most {
            return Err(WorkError::Busy);
        }
        jobs.push_back(job);
        if jobs.len() == 1 {
            state.turns.push_back(project);
        }
        self.call_for_hands(&mut state);
        Ok(())
    }

    /// Sees that somebody takes what can be taken now.
    fn call_for_hands(self: &Arc<Self>, state: &mut State) {
        if state.next(self.share).is_none() {
            return;
        }
        if state.idle > 0 {
            self.arrived.notify_one();
        } else if state.started < self.threads {
            let pool = self.clone();
            match std::thread::Builder::new().name("work".to_owned()).stack_size(STACK).spawn(move || pool.serve()) {
                Ok(_) => state.started += 1,
                Err(error) => tracing::error!(%error, "a thread could not be started"),
            }
        }
    }

    /// Works until there has been nothing to do for a while.
    fn serve(self: Arc<Self>) {
        stand_back();
        let mut state = self.lock();
        loop {
            if let Some((project, job)) = state.take(self.share) {
                self.call_for_hands(&mut state);
                drop(state);
                if std::panic::catch_unwind(AssertUnwindSafe(job)).is_err() {
                    tracing::error!(%project, "a piece of work panicked");
                }
                state = self.lock();
                state.ended(project);
                continue;
            }
            state.idle += 1;
            let (held, waited) = self.arrived.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = held;
            state.idle -= 1;
            if waited.timed_out() && state.turns.is_empty() {
                state.started -= 1;
                return;
            }
        }
    }
}
