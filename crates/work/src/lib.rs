//! Work of unknown size, off the async workers: a few threads, a share of them for each project, and a budget for each piece of work. It
//! must never know what the work is.

mod pool;
mod tasks;

use std::num::NonZero;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kernel::ProjectId;
pub use kernel::{Budget, Exceeded, Limits};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use self::pool::Pool;
use self::tasks::{TaskThreads, Threads, stay};

pub use self::tasks::{go_back, go_large, in_place};

/// Work over this many bytes leaves the async workers; what is smaller is done sooner than it could be handed over.
pub const SMALL: usize = 32 << 10;

/// Where measuring may stop: it is surely not small.
pub const LARGE: usize = SMALL + 1;

/// How many pieces of work of one project may wait.
const MAX_WAITING: usize = 64;

/// Why work was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    #[error("Too much is going on in this project at once: {MAX_WAITING} large pieces of work wait already. Try again in a moment.")]
    Busy,
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    #[error("the work broke off")]
    Broken,
}

/// Where work of unknown size is done; clones share the threads.
#[derive(Clone, Debug)]
pub struct Workers(Arc<Pool>, Arc<TaskThreads>);

impl Default for Workers {
    /// Threads for several projects at once, and for one of them no more than half of the cores.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, NonZero::get);
        Self::new((2 * cores).max(4), (cores / 2).max(1))
    }
}

impl Workers {
    /// So many threads, and so many of them for one project.
    pub fn new(threads: usize, share: usize) -> Self {
        Self(Arc::new(Pool::new(threads, share)), Arc::default())
    }

    /// Does work whose size is about `size` bytes: here if that is little, else on a thread of its own, when it is the project's turn.
    /// Dropping the future ends work under way at its next look at the budget.
    pub async fn run<T, E>(
        &self,
        project: ProjectId,
        size: usize,
        work: impl FnOnce(&Budget) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<WorkError> + Send + 'static,
    {
        self.within(Limits::USUAL, project, size, work).await
    }

    /// Runs a whole task whose size is about `size` bytes: here if that is little, else where other large tasks run. It may change that with
    /// `go_large` and `go_back`, and ends with whoever waits for it.
    pub async fn host<T: Send + 'static>(&self, size: usize, mut task: Pin<Box<dyn Future<Output = T> + Send>>) -> T {
        let mut is_large = size > SMALL;
        loop {
            if !is_large && let Some(done) = stay(Threads::Answers, &mut task).await {
                return done;
            }
            let Some(threads) = self.1.handle() else { return task.await };
            let work = async move { (stay(Threads::Large, &mut task).await, task) };
            let stayed = AbortOnDropHandle::new(threads.spawn(work.in_current_span())).await;
            let (done, left) = stayed.unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => std::panic::panic_any(format!("a large task was ended: {error}")),
            });
            if let Some(done) = done {
                return done;
            }
            (task, is_large) = (left, false);
        }
    }

    /// The same for work over something borrowed, which is cloned only where the work goes to a thread of its own.
    pub async fn over<I, T, E>(
        &self,
        project: ProjectId,
        size: usize,
        input: &I,
        work: impl FnOnce(&I, &Budget) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        I: Clone + Send + 'static,
        T: Send + 'static,
        E: From<WorkError> + Send + 'static,
    {
        if size <= SMALL {
            return work(input, &Budget::default());
        }
        let input = input.clone();
        self.run(project, size, move |budget| work(&input, budget)).await
    }

    /// The same within limits of its own.
    pub async fn within<T, E>(
        &self,
        limits: Limits,
        project: ProjectId,
        size: usize,
        work: impl FnOnce(&Budget) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<WorkError> + Send + 'static,
    {
        if size <= SMALL {
            return work(&Budget::new(limits));
        }
        // What comes of it is large as well.
        go_large().await;
        let waiting = Waiting(Arc::default());
        let abandoned = waiting.0.clone();
        let (done, result) = oneshot::channel();
        let job = move || {
            if !abandoned.load(Ordering::Relaxed) {
                let _ = done.send(work(&Budget::watching(limits, abandoned)));
            }
        };
        self.0.submit(project, MAX_WAITING, Box::new(job))?;
        result.await.unwrap_or_else(|_| Err(WorkError::Broken.into()))
    }
}

/// Whoever waits for work; when they go, nobody needs it.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
