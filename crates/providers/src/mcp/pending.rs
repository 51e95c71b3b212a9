//! Requests that wait for their answers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;
use tools::{Progress, Step};

use super::fault::Fault;

/// What waits at one server.
#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, Waiter>,
    /// Why nothing is answered any more.
    ended: Option<String>,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Result<Value, Fault>>,
    progress: Progress,
}

impl Pending {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, id: u64, progress: Progress) -> Result<oneshot::Receiver<Result<Value, Fault>>, Fault> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(why) = &state.ended {
            return Err(Fault::Gone(why.clone()));
        }
        state.waiting.insert(id, Waiter { answer, progress });
        Ok(receiver)
    }

    /// Takes a request back; says whether it still waited.
    pub(super) fn remove(&self, id: u64) -> bool {
        self.state().waiting.remove(&id).is_some()
    }

    pub(super) fn settle(&self, id: u64, result: Result<Value, Fault>) {
        let waiter = self.state().waiting.remove(&id);
        if let Some(waiter) = waiter {
            // Whoever waited may have left.
            let _ = waiter.answer.send(result);
        }
    }

    pub(super) fn progress(&self, id: u64, step: Step) {
        let progress = self.state().waiting.get(&id).map(|waiter| waiter.progress.clone());
        if let Some(progress) = progress {
            progress.tell(step);
        }
    }

    /// Fails everything that waits.
    pub(super) fn fail_all(&self, fault: &Fault) {
        let waiting = std::mem::take(&mut self.state().waiting);
        for waiter in waiting.into_values() {
            let _ = waiter.answer.send(Err(fault.clone()));
        }
    }

    /// Fails everything that waits and everything that comes later.
    pub(super) fn end(&self, why: &str) {
        self.state().ended.get_or_insert_with(|| why.to_owned());
        self.fail_all(&Fault::Gone(why.to_owned()));
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state().ended.is_some()
    }
}
