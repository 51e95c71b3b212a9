//! Sentences that somebody waits for, worked off by a few threads.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use crate::model;
use crate::recent::Recent;

/// More threads would take the processor from everything else.
const MOST_THREADS: usize = 4;
/// When more are waiting, the oldest goes without: whoever asked for it has given up by then.
const MOST_WAITING: usize = 256;

struct Job {
    sentence: String,
    at: usize,
    reply: Sender<(usize, Option<Vec<f32>>)>,
}

struct Shared {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
}

/// The line, and those who work on it once the first sentence is in it.
pub(crate) struct Queue {
    shared: Arc<Shared>,
    started: Once,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("started", &self.started.is_completed()).finish_non_exhaustive()
    }
}

impl Queue {
    pub(crate) fn new(recent: Recent) -> Self {
        let shared = Shared { waiting: Mutex::default(), wake: Condvar::new(), recent: Mutex::new(recent) };
        Self { shared: Arc::new(shared), started: Once::new() }
    }

    pub(crate) fn remembered(&self, sentence: &str) -> Option<Vec<f32>> {
        locked(&self.shared.recent).get(sentence)
    }

    /// The answer comes with `at`, if it comes.
    pub(crate) fn add(&self, sentence: &str, at: usize, reply: Sender<(usize, Option<Vec<f32>>)>) {
        self.started.call_once(|| self.start());
        let mut waiting = locked(&self.shared.waiting);
        if waiting.jobs.len() >= MOST_WAITING {
            waiting.jobs.pop_front();
        }
        waiting.jobs.push_back(Job { sentence: sentence.to_owned(), at, reply });
        drop(waiting);
        self.shared.wake.notify_one();
    }

    fn start(&self) {
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        for number in 0..threads {
            let shared = self.shared.clone();
            let work = move || model::on_this_thread(|| shared.work());
            if let Err(error) = thread::Builder::new().name(format!("sentences-{number}")).spawn(work) {
                tracing::error!(%error, "no thread for the sentence model");
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        locked(&self.shared.waiting).closed = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        while let Some(job) = self.next() {
            let known = locked(&self.recent).get(&job.sentence);
            let vector = known.or_else(|| model::embed(&job.sentence));
            if let Some(vector) = &vector {
                locked(&self.recent).put(job.sentence, vector.clone());
            }
            // Whoever asked may have given up.
            let _ = job.reply.send((job.at, vector));
        }
    }

    fn next(&self) -> Option<Job> {
        let waiting = locked(&self.waiting);
        let mut waiting =
            self.wake.wait_while(waiting, |waiting| waiting.jobs.is_empty() && !waiting.closed).unwrap_or_else(PoisonError::into_inner);
        if waiting.closed { None } else { waiting.jobs.pop_front() }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
