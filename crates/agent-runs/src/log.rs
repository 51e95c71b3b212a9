//! The event log of a run on its way: what is told is collected for a moment and written together, and whoever follows is woken.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kernel::RunId;
use tokio::sync::watch;

use crate::events::RunEvent;

/// How long text is collected while somebody may be reading along.
const COLLECTED: Duration = Duration::from_millis(120);
/// How much of a result an event shows.
const SHOWN: usize = 16 << 10;

/// Events that are not written yet.
#[derive(Debug)]
pub(crate) struct EventLog {
    /// The number of the first of them.
    next: i64,
    pending: Vec<RunEvent>,
    since: Instant,
}

impl EventLog {
    pub(crate) fn after(last: i64) -> Self {
        Self { next: last + 1, pending: Vec::new(), since: Instant::now() }
    }

    pub(crate) fn is_new(&self) -> bool {
        self.next == 1 && self.pending.is_empty()
    }

    /// Adds an event; more of the same text goes to what waits already.
    pub(crate) fn push(&mut self, event: RunEvent) {
        if self.pending.is_empty() {
            self.since = Instant::now();
        }
        match (self.pending.last_mut(), event) {
            (Some(RunEvent::TextDelta { turn, text }), RunEvent::TextDelta { turn: same, text: more }) if *turn == same => {
                text.push_str(&more);
            }
            (Some(RunEvent::ReasoningDelta { turn, text }), RunEvent::ReasoningDelta { turn: same, text: more }) if *turn == same => {
                text.push_str(&more);
            }
            (Some(RunEvent::ToolCallArguments { id, text }), RunEvent::ToolCallArguments { id: same, text: more }) if *id == same => {
                text.push_str(&more);
            }
            (_, event) => self.pending.push(event),
        }
    }

    /// Whether what waits has waited long enough.
    pub(crate) fn is_due(&self) -> bool {
        !self.pending.is_empty() && self.since.elapsed() >= COLLECTED
    }

    /// What waits, and the number of its first event.
    pub(crate) fn pending(&self) -> Option<(i64, &[RunEvent])> {
        (!self.pending.is_empty()).then_some((self.next, &self.pending))
    }

    /// What waited is written.
    pub(crate) fn written(&mut self) {
        self.next += i64::try_from(self.pending.len()).unwrap_or(0);
        self.pending.clear();
    }
}

/// A result as an event shows it.
pub(crate) fn shown(content: &str) -> String {
    if content.len() <= SHOWN {
        return content.to_owned();
    }
    let end = content.floor_char_boundary(SHOWN);
    format!("{}… [{} bytes]", &content[..end], content.len())
}

/// Those who follow runs on this node.
#[derive(Debug, Default)]
pub(crate) struct Followers(Mutex<HashMap<RunId, watch::Sender<()>>>);

impl Followers {
    /// Hears of everything that is written about a run from now on.
    pub(crate) fn follow(&self, run: RunId) -> watch::Receiver<()> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, sender| sender.receiver_count() > 0);
        held.entry(run).or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// Something was written about a run.
    pub(crate) fn tell(&self, run: RunId) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = held.get(&run) {
            sender.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_collected_and_numbers_go_on() {
        let mut log = EventLog::after(4);
        for text in ["a", "b"] {
            log.push(RunEvent::TextDelta { turn: 1, text: text.to_owned() });
        }
        log.push(RunEvent::TextEnd { turn: 1 });
        log.push(RunEvent::TextDelta { turn: 2, text: "c".to_owned() });
        let (first, events) = log.pending().unwrap();
        assert_eq!((first, events.len(), &events[0]), (5, 3, &RunEvent::TextDelta { turn: 1, text: "ab".to_owned() }));
        log.written();
        assert!(log.pending().is_none());
        log.push(RunEvent::TextEnd { turn: 2 });
        assert_eq!(log.pending().unwrap().0, 8);
    }

    #[tokio::test]
    async fn whoever_follows_is_woken() {
        let followers = Followers::default();
        let run = RunId::new();
        let mut heard = followers.follow(run);
        followers.tell(RunId::new());
        assert!(!heard.has_changed().unwrap());
        followers.tell(run);
        heard.changed().await.unwrap();
    }
}
