//! Requests that wait for their answers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use calls::{Progress, ProgressStep};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::fault::ServerError;

/// What waits at one server.
#[derive(Debug, Default)]
pub(crate) struct Pending(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, Waiter>,
    /// Why nothing is answered any more.
    ended: Option<String>,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Result<Value, ServerError>>,
    progress: Progress,
}

impl Pending {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, id: u64, progress: Progress) -> Result<oneshot::Receiver<Result<Value, ServerError>>, ServerError> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(why) = &state.ended {
            return Err(ServerError::Gone(why.clone()));
        }
        state.waiting.insert(id, Waiter { answer, progress });
        Ok(receiver)
    }

    /// Takes a request back; says whether it still waited.
    pub(crate) fn remove(&self, id: u64) -> bool {
        self.state().waiting.remove(&id).is_some()
    }

    pub(crate) fn settle(&self, id: u64, result: Result<Value, ServerError>) {
        let waiter = self.state().waiting.remove(&id);
        if let Some(waiter) = waiter {
            // Whoever waited may have left.
            let _ = waiter.answer.send(result);
        }
    }

    pub(crate) fn progress(&self, id: u64, step: ProgressStep) {
        let progress = self.state().waiting.get(&id).map(|waiter| waiter.progress.clone());
        if let Some(progress) = progress {
            progress.tell(step);
        }
    }

    /// Fails everything that waits.
    pub(crate) fn fail_all(&self, fault: &ServerError) {
        let waiting = std::mem::take(&mut self.state().waiting);
        for waiter in waiting.into_values() {
            let _ = waiter.answer.send(Err(fault.clone()));
        }
    }

    /// Fails everything that waits and everything that comes later.
    pub(crate) fn end(&self, why: &str) {
        self.state().ended.get_or_insert_with(|| why.to_owned());
        self.fail_all(&ServerError::Gone(why.to_owned()));
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state().ended.is_some()
    }
}
