//! The servers in use: one conversation for each import and account, however many call; kept while it is used, started again when it
//! breaks, but not again and again without a pause.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use http::HeaderMap;
use imports::Changed;
use kernel::{ConnectionId, ImportId, ProjectId};
use tokio::sync::mpsc::UnboundedSender;

use crate::OnChange;
use crate::fault::ServerError;
use crate::session::{Ground, Session};
use crate::target::{Server, ServerTarget};

/// How long a server may take until it can be asked something.
pub(crate) const START: Duration = Duration::from_secs(40);
/// A server that ended sooner than this after its start did not really work.
const SHORT_LIFE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// How many programs run here at once.
const MAX_PROGRAMS: usize = 100;

/// Who is served: those without a credential share one.
type Key = (ProjectId, ImportId, Option<ConnectionId>);

/// Every conversation under way.
#[derive(Debug)]
pub(crate) struct Sessions {
    ground: Ground,
    changes: UnboundedSender<Changed>,
    slots: Mutex<HashMap<Key, Arc<SessionSlot>>>,
    started: Instant,
}

/// The place of one conversation.
#[derive(Debug, Default)]
struct SessionSlot {
    /// When it was last asked for, in milliseconds since the start.
    used: AtomicU64,
    /// Held while one is started, so that it is started once.
    state: Arc<tokio::sync::Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    live: Option<Live>,
    failures: u32,
    /// Not before this is it started again, and why.
    pause: Option<(Instant, String)>,
}

#[derive(Debug)]
struct Live {
    session: Arc<Session>,
    target: ServerTarget,
    since: Instant,
}

impl State {
    fn failed(&mut self, why: String) {
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.failures.saturating_sub(1).min(10));
        let pause = if self.failures == 0 { Duration::ZERO } else { pause.min(LONGEST_PAUSE) };
        self.failures = self.failures.saturating_add(1);
        self.pause = Some((Instant::now() + pause, why));
    }

    async fn start(
        &mut self,
        project: ProjectId,
        target: ServerTarget,
        account: HeaderMap,
        ground: &Ground,
        on_change: OnChange,
    ) -> Result<Arc<Session>, ServerError> {
        let late = || ServerError::NotStarted(format!("it was not ready within {} s", START.as_secs()));
        let opened = tokio::time::timeout(START, Session::open(project, &target, account, ground, on_change)).await;
        match opened.unwrap_or_else(|_| Err(late())) {
            Ok(session) => {
                let session = Arc::new(session);
                self.live = Some(Live { session: session.clone(), target, since: Instant::now() });
                Ok(session)
            }
            Err(fault) => {
                if matches!(target, ServerTarget::Program(_)) {
                    self.failed(fault.to_string());
                }
                Err(fault)
            }
        }
    }

    fn may_start(&self) -> Result<(), ServerError> {
        match &self.pause {
            Some((until, why)) if *until > Instant::now() => {
                let seconds = until.saturating_duration_since(Instant::now()).as_secs() + 1;
                Err(ServerError::NotStarted(format!("it failed {} times, next try in {seconds} s ({why})", self.failures)))
            }
            _ => Ok(()),
        }
    }
}

impl Sessions {
    pub(crate) fn new(ground: Ground, idle: Duration, changes: UnboundedSender<Changed>) -> Arc<Self> {
        let sessions = Arc::new(Self { ground, changes, slots: Mutex::default(), started: Instant::now() });
        sessions.ground.tasks.spawn(sweep_on(Arc::downgrade(&sessions), sessions.ground.clone(), idle));
        sessions
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Key, Arc<SessionSlot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The conversation for an account, begun if there is none.
    pub(crate) async fn get(&self, server: &Server, connection: ConnectionId, account: HeaderMap) -> Result<Arc<Session>, ServerError> {
        let target = server.target.as_ref().map_err(|why| ServerError::NotStarted(why.clone()))?;
        let slot = self.slots().entry(key(server, connection, &account)).or_default().clone();
        slot.used.store(self.now(), Ordering::Relaxed);
        let mut state = slot.state.clone().lock_owned().await;
        if let Some(live) = &state.live {
            if !live.session.has_ended() && live.target == *target {
                live.session.act_as(account);
                return Ok(live.session.clone());
            }
            if live.session.has_ended() && live.since.elapsed() < SHORT_LIFE {
                state.failed("it ended soon after its start".to_owned());
            } else {
                (state.failures, state.pause) = (0, None);
            }
            state.live = None;
        }
        state.may_start()?;
        if matches!(target, ServerTarget::Program(_)) {
            self.make_room()?;
        }
        let (changes, project, import) = (self.changes.clone(), server.project, server.import);
        let on_change = OnChange(Arc::new(move || drop(changes.send(Changed { project, import, account: None }))));
        // A start goes on when whoever asked for it has no more time, so that the next finds the server ready.
        let (target, ground) = (target.clone(), self.ground.clone());
        let starting = self.ground.tasks.spawn(async move { state.start(project, target, account, &ground, on_change).await });
        let session = starting.await.unwrap_or_else(|error| Err(ServerError::NotStarted(error.to_string())))?;
        slot.used.store(self.now(), Ordering::Relaxed);
        Ok(session)
    }

    /// Lets go of a conversation that the server does not know any more.
    pub(crate) async fn forget(&self, server: &Server, connection: ConnectionId, account: &HeaderMap, session: &Arc<Session>) {
        let slot = self.slots().get(&key(server, connection, account)).cloned();
        if let Some(slot) = slot {
            let mut state = slot.state.lock().await;
            if state.live.as_ref().is_some_and(|live| Arc::ptr_eq(&live.session, session)) {
                state.live = None;
            }
        }
    }

    /// The conversation with the program of an import, if there is one.
    pub(crate) async fn running(&self, project: ProjectId, import: ImportId, target: &ServerTarget) -> Option<Arc<Session>> {
        let slot = self.slots().get(&(project, import, None)).cloned()?;
        let state = slot.state.lock().await;
        state.live.as_ref().filter(|live| !live.session.has_ended() && live.target == *target).map(|live| live.session.clone())
    }

    /// Ends what belongs to an import that is gone.
    pub(crate) fn drop_import(&self, project: ProjectId, import: ImportId) {
        self.slots().retain(|(of, id, _), _| (*of, *id) != (project, import));
    }

    pub(crate) fn clear(&self) {
        self.slots().clear();
    }

    fn make_room(&self) -> Result<(), ServerError> {
        if self.programs() >= MAX_PROGRAMS {
            self.sweep(Duration::ZERO);
        }
        let full = || ServerError::NotStarted(format!("{MAX_PROGRAMS} programs run here already; try again later"));
        if self.programs() < MAX_PROGRAMS { Ok(()) } else { Err(full()) }
    }

    fn programs(&self) -> usize {
        let runs = |state: &State| state.live.as_ref().is_some_and(|live| matches!(live.target, ServerTarget::Program(_)));
        self.slots().values().filter(|slot| slot.state.try_lock().is_ok_and(|state| runs(&state))).count()
    }

    /// Lets go of what nobody used for a while and nobody uses now.
    fn sweep(&self, idle: Duration) {
        let now = self.now();
        let idle = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        self.slots().retain(|_, slot| {
            let Ok(state) = slot.state.try_lock() else { return true };
            let is_used = state.live.as_ref().is_some_and(|live| Arc::strong_count(&live.session) > 1);
            // Somebody who has the slot in hand and waits for its state counts too.
            is_used || Arc::strong_count(slot) > 1 || now.saturating_sub(slot.used.load(Ordering::Relaxed)) < idle
        });
    }
}

fn key(server: &Server, connection: ConnectionId, account: &HeaderMap) -> Key {
    (server.project, server.import, (!account.is_empty()).then_some(connection))
}

async fn sweep_on(sessions: Weak<Sessions>, ground: Ground, idle: Duration) {
    let every = (idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(30));
    loop {
        tokio::select! {
            () = ground.stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
        match sessions.upgrade() {
            Some(sessions) => sessions.sweep(idle),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_followed_by_longer_and_longer_pauses() {
        let mut state = State::default();
        assert!(state.may_start().is_ok());
        state.failed("no".to_owned());
        assert!(state.may_start().is_ok(), "one failure may be chance");
        let mut last = Duration::ZERO;
        for _ in 0..12 {
            state.failed("no".to_owned());
            let pause = state.pause.as_ref().unwrap().0.saturating_duration_since(Instant::now());
            assert!(pause >= last && pause <= LONGEST_PAUSE);
            last = pause.saturating_sub(Duration::from_millis(50));
            assert!(matches!(state.may_start(), Err(ServerError::NotStarted(why)) if why.contains("no")));
        }
        assert!(last > Duration::from_secs(30));
    }
}
