//! What is under way in this process: calls that can be cancelled, and questions that clients have not answered yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Calls and questions under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    calls: HashMap<CallKey, CancellationToken>,
    questions: HashMap<(Uuid, String), oneshot::Sender<Option<Value>>>,
}

/// A call by who made it, in which session and under which id. Without a session, ids of different clients could be the same.
pub(crate) type CallKey = (Uuid, String, String);

impl Live {
    /// Makes a call cancellable for as long as the guard lives.
    pub(crate) fn call(&self, key: CallKey) -> Cancellable {
        let token = CancellationToken::new();
        self.open().calls.insert(key.clone(), token.clone());
        Cancellable { live: self.clone(), key, token }
    }

    pub(crate) fn cancel(&self, key: &CallKey) {
        if let Some(token) = self.open().calls.get(key) {
            token.cancel();
        }
    }

    /// A question to a client: its id, and the answer when it comes.
    pub(crate) fn question(&self, caller: Uuid) -> Question {
        let id = Uuid::new_v4().to_string();
        let (sender, answer) = oneshot::channel();
        self.open().questions.insert((caller, id.clone()), sender);
        Question { live: self.clone(), caller, id, answer }
    }

    /// Hands an answer to whoever waits for it; only the caller that was asked can answer.
    pub(crate) fn answer(&self, caller: Uuid, id: &Value, result: Option<Value>) -> bool {
        let Some(id) = id.as_str() else { return false };
        let waiting = self.open().questions.remove(&(caller, id.to_owned()));
        waiting.is_some_and(|waiting| waiting.send(result).is_ok())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way.
#[derive(Debug)]
pub(crate) struct Cancellable {
    live: Live,
    key: CallKey,
    pub(crate) token: CancellationToken,
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        self.live.open().calls.remove(&self.key);
    }
}

/// A question that waits for its answer.
#[derive(Debug)]
pub(crate) struct Question {
    live: Live,
    caller: Uuid,
    pub(crate) id: String,
    pub(crate) answer: oneshot::Receiver<Option<Value>>,
}

impl Drop for Question {
    fn drop(&mut self) {
        self.live.open().questions.remove(&(self.caller, std::mem::take(&mut self.id)));
    }
}
