//! What a connection is doing: whether a request is under way on it, and since when it has been of no use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::ConnectionLimits;

/// What one connection is doing.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    evicted: Notify,
}

#[derive(Debug)]
struct State {
    /// Requests that have not been answered to the end.
    under_way: usize,
    /// Those of them whose body has not come to its end.
    receiving: usize,
    has_asked: bool,
    /// When the last request began or ended.
    since: Instant,
    /// Since when the other side takes nothing.
    blocked: Option<Instant>,
}

/// How much of a loss a connection would be, the smallest first: one that never asked, one that asks nothing now, one that still sends its
/// request; then the longest first.
pub(super) type Loss = (u8, Instant);

impl Activity {
    pub(super) fn new(now: Instant) -> Self {
        let state = State { under_way: 0, receiving: 0, has_asked: false, since: now, blocked: None };
        Self { state: Mutex::new(state), evicted: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request came.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        let mut state = self.state();
        state.under_way += 1;
        state.has_asked = true;
        state.since = Instant::now();
        drop(state);
        UnderWay(self.clone())
    }

    /// Whether the other side takes what it is sent.
    pub(super) fn wrote(&self, is_taken: bool) {
        let mut state = self.state();
        if is_taken {
            state.blocked = None;
        } else if state.blocked.is_none() {
            state.blocked = Some(Instant::now());
        }
    }

    /// When to look again, or nothing where the connection has been of no use for too long.
    pub(super) fn look(&self, limits: &ConnectionLimits, now: Instant) -> Option<Instant> {
        let state = self.state();
        let end = match (state.blocked, state.under_way) {
            (Some(blocked), _) => blocked + limits.idle,
            (None, 0) if state.has_asked => state.since + limits.idle,
            (None, 0) => state.since + limits.header,
            (None, _) => return Some(now + limits.idle),
        };
        (end > now).then_some(end)
    }

    /// Whether the other side takes nothing of what it is sent.
    pub(super) fn is_blocked(&self) -> bool {
        self.state().blocked.is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state().under_way == 0
    }

    /// What would be lost with this connection; nothing where a request is at work.
    pub(super) fn loss(&self) -> Option<Loss> {
        let state = self.state();
        match (state.under_way, state.receiving) {
            (0, _) => Some((u8::from(state.has_asked), state.since)),
            (all, receiving) if all == receiving => Some((2, state.since)),
            _ => None,
        }
    }

    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

/// One request, until its answer was sent or given up.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Activity>);

impl UnderWay {
    /// Its body is on the way.
    pub(super) fn receiving(&self) -> Receiving {
        self.0.state().receiving += 1;
        Receiving(self.0.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.under_way -= 1;
        state.since = Instant::now();
    }
}

/// One request's body, until it is here or nobody wants it any more.
#[derive(Debug)]
pub(super) struct Receiving(Arc<Activity>);

impl Drop for Receiving {
    fn drop(&mut self) {
        self.0.state().receiving -= 1;
    }
}
