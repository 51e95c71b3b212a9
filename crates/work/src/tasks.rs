//! Tasks over large things, on async workers of their own. What such a task does between its waits (copies, texts, what it drops) is
//! nobody's measured work, and would keep whoever shares its thread waiting all the same.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

use crate::SMALL;

/// How many threads these tasks have.
const THREADS: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct TaskThreads(OnceLock<Option<Runtime>>);

impl TaskThreads {
    /// Where such tasks run: the threads for them, started when they are first needed.
    pub(crate) fn handle(&self) -> Option<Handle> {
        let start = || {
            let mut threads = Builder::new_multi_thread();
            threads.worker_threads(THREADS).thread_name("large-tasks").on_thread_start(crate::pool::stand_back).enable_all();
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
