//! What a call says before its result. A client that reads slowly hears the newest steps; every question is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

/// How many steps wait to be read.
const MAX_STEPS: usize = 32;

/// Messages that wait for a client; its clones are one box.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    waiting: Mutex<VecDeque<QueuedMessage>>,
    news: Notify,
}

#[derive(Debug)]
struct QueuedMessage {
    message: Value,
    is_step: bool,
}

impl Outbox {
    /// Says how far the call is; the oldest step makes room.
    pub(crate) fn tell(&self, message: Value) {
        let mut waiting = self.waiting();
        if waiting.iter().filter(|said| said.is_step).count() >= MAX_STEPS
            && let Some(oldest) = waiting.iter().position(|said| said.is_step)
        {
            waiting.remove(oldest);
        }
        waiting.push_back(QueuedMessage { message, is_step: true });
        self.0.news.notify_one();
    }

    /// Asks something; calls ask few questions, and none is lost.
    pub(crate) fn ask(&self, message: Value) {
        self.waiting().push_back(QueuedMessage { message, is_step: false });
        self.0.news.notify_one();
    }

    /// The next message, when there is one.
    pub(crate) async fn next(&self) -> Value {
        loop {
            if let Some(message) = self.take() {
                return message;
            }
            self.0.news.notified().await;
        }
    }

    pub(crate) fn take(&self) -> Option<Value> {
        self.waiting().pop_front().map(|said| said.message)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<QueuedMessage>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_newest_steps_and_every_question_are_kept() {
        let outbox = Outbox::default();
        assert!(outbox.next().now_or_never().is_none());
        outbox.ask(json!("first"));
        (0..1000).for_each(|step| outbox.tell(json!(step)));
        outbox.ask(json!("second"));
        let read: Vec<Value> = std::iter::from_fn(|| outbox.take()).collect();
        assert_eq!(read.len(), MAX_STEPS + 2);
        assert_eq!((&read[0], &read[1]), (&json!("first"), &json!(1000 - MAX_STEPS)));
        assert_eq!((&read[MAX_STEPS], &read[MAX_STEPS + 1]), (&json!(999), &json!("second")));
        assert!(outbox.is_empty());
        outbox.tell(json!(7));
        assert_eq!(outbox.next().await, 7);
    }
}
