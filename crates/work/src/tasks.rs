//! Tasks over large things, on async workers of their own. What such a task does between its waits (copies, texts, what it drops) is
//! nobody's measured work, and would keep whoever shares its thread waiting all the same.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::Poll;

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

use crate::SMALL;

/// How many threads these tasks have, and how many more for what waits or works in place: were they all at work at once, the scheduler would
/// give them a good part of the processors, however little each may have.
const THREADS: usize = 2;
const MORE_THREADS: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct TaskThreads(OnceLock<Option<Runtime>>);

impl TaskThreads {
    /// Where such tasks run: the threads for them, started when they are first needed.
    pub(crate) fn handle(&self) -> Option<Handle> {
        let start = || {
            let mut threads = Builder::new_multi_thread();
            threads
                .worker_threads(THREADS)
                .max_blocking_threads(MORE_THREADS)
                .thread_name("large-tasks")
                .on_thread_start(crate::pool::stand_back)
                .enable_all();
            let started = threads.build();
            started.inspect_err(|error| tracing::error!(%error, "the threads for large tasks could not be started")).ok()
        };
        self.0.get_or_init(start).as_ref().map(|runtime| runtime.handle().clone())
    }
}

impl Drop for TaskThreads {
    fn drop(&mut self) {
        // Waiting for it would block the thread of whoever drops this.
        if let Some(runtime) = self.0.take().flatten() {
            runtime.shutdown_background();
        }
    }
}

/// Does work over about `size` bytes on the thread that asks. Where that is much, the thread hands its other tasks to another one first.
pub fn in_place<T>(size: usize, work: impl FnOnce() -> T) -> T {
    let hands_over = size > SMALL && Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if hands_over { tokio::task::block_in_place(work) } else { work() }
}

/// Where a hosted task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// On those that answer requests.
    Answers,
    /// On those for large tasks.
    Large,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It is not hosted, and stays where it is.
    Fixed,
    On(Threads),
    /// It goes to the other threads once it waits.
    Leaving,
}

thread_local! {
    /// Where the task is that is under way on this thread.
    static PLACE: Cell<Place> = const { Cell::new(Place::Fixed) };
}

/// Goes on where large tasks run: what follows is over more than `SMALL` bytes.
pub async fn go_large() {
    go_to(Threads::Large).await;
}

/// Goes on where requests are answered: what follows holds something that others wait for. Whether it was among the large tasks before.
pub async fn go_back() -> bool {
    go_to(Threads::Answers).await
}

async fn go_to(threads: Threads) -> bool {
    let is_elsewhere = matches!(PLACE.get(), Place::On(now) if now != threads);
    if is_elsewhere {
        PLACE.set(Place::Leaving);
        tokio::task::yield_now().await;
    }
    is_elsewhere
}

/// Works on a task until it ends, or wants to go to the other threads.
pub(crate) async fn stay<T>(threads: Threads, task: &mut Pin<Box<dyn Future<Output = T> + Send>>) -> Option<T> {
    poll_fn(|context| {
        let around = PLACE.replace(Place::On(threads));
        let polled = task.as_mut().poll(context);
        match (polled, PLACE.replace(around)) {
            (Poll::Ready(done), _) => Poll::Ready(Some(done)),
            (Poll::Pending, Place::Leaving) => Poll::Ready(None),
            (Poll::Pending, _) => Poll::Pending,
        }
    })
    .await
}
