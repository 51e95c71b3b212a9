//! What the handlers and the tests share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::edge::{self, Api, Recorded};
use crate::faults::Rule;
use crate::world::World;
use crate::{accounts, auth, control, execute, page, sessions, toolkits, tools, triggers, webhooks};

#[derive(Debug)]
pub(crate) struct Shared {
    /// Scheme, host and port.
    pub(crate) origin: String,
    pub(crate) client: reqwest::Client,
    pub(crate) arrivals: AtomicU64,
    world: Mutex<World>,
    faults: Mutex<Vec<Rule>>,
    requests: Mutex<Vec<Recorded>>,
    minute: Mutex<(Instant, u64)>,
}

pub(crate) type SharedState = axum::extract::State<Arc<Shared>>;

impl Shared {
    pub(crate) fn new(origin: String) -> Self {
        // Somebody else in the process may have chosen a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().expect("a plain client can be made");
        Self {
            origin,
            client,
            arrivals: AtomicU64::new(0),
            world: Mutex::new(World::new()),
            faults: Mutex::default(),
            requests: Mutex::default(),
            minute: Mutex::new((Instant::now(), 0)),
        }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        let mut world = lock(&self.world);
        world.lapse();
        world
    }

    pub(crate) fn faults(&self) -> MutexGuard<'_, Vec<Rule>> {
        lock(&self.faults)
    }

    pub(crate) fn requests(&self) -> MutexGuard<'_, Vec<Recorded>> {
        lock(&self.requests)
    }

    /// Counts a request in the window of a minute.
    pub(crate) fn used_this_minute(&self) -> u64 {
        let mut minute = lock(&self.minute);
        if minute.0.elapsed() >= Duration::from_mins(1) {
            *minute = (Instant::now(), 0);
        }
        minute.1 += 1;
        minute.1
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .nest("/api/v3.1", api(shared, Api::V3_1))
        .nest("/api/v3", api(shared, Api::V3))
        .merge(page::routes())
        .nest("/fake", control::routes())
        .with_state(Arc::clone(shared))
}

fn api(shared: &Arc<Shared>, version: Api) -> Router<Arc<Shared>> {
    Router::new()
        .merge(toolkits::routes())
        .merge(tools::routes())
        .merge(execute::routes())
        .merge(auth::routes())
        .merge(accounts::routes())
        .merge(triggers::routes())
        .merge(webhooks::routes())
        .merge(sessions::routes())
        .fallback(edge::nothing_here)
        .layer(from_fn_with_state((Arc::clone(shared), version), edge::pass))
}
