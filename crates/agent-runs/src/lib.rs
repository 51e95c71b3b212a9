//! Runs of agents: a durable loop that asks a model, calls tools and waits for people. It must never know HTTP, how a model API is written
//! (`models` does), or which tools an agent may use (`agents` does).

mod asking;
mod begin;
mod calling;
mod config;
mod conversation;
mod drive;
mod ending;
mod engine;
mod error;
mod events;
mod journal;
mod limits;
mod log;
mod nodes;
mod otlp;
mod personal;
mod prompt;
mod rows;
pub mod stream;
mod tools;
mod turn;
mod view;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use accounts::Accounts;
use agents::Agents;
use calls::{Calls, OwnRoutes};
use catalog::Catalog;
use connections::Connections;
use egress::Egress;
use futures_util::future::BoxFuture;
use kernel::seal::Sealer;
use kernel::{Clock, DeliveryId, Scope, Shared};
use secrets::Secrets;
use store::{Db, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;
use work::Workers;
use workflows::Workflows;

pub use error::RunError;
pub use events::{NumberedEvent, RunEvent, RunState};
pub use journal::reseal;
pub use limits::{Limits, Prices, Used};
pub use otlp::Collector;
pub use rows::AgentRun;
pub use view::{AgentRunFilter, AgentRunPage};

/// How runs behave on this node.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many runs a node works on at once.
    pub concurrency: usize,
    /// How many of them for one project.
    pub project_concurrency: usize,
    /// How long a node that says nothing keeps its runs.
    pub lease: Duration,
    /// How many runs of a project may be open at once, those that wait for people too.
    pub open_runs: i64,
    /// Whether nothing runs here.
    pub paused: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { concurrency: 512, project_concurrency: 256, lease: Duration::from_secs(30), open_runs: 20_000, paused: false }
    }
}

/// Hears how the runs of deliveries ended.
pub trait Deliveries: Send + Sync + std::fmt::Debug {
    /// Whether the delivery knows now; else it is told again a little later.
    fn ended<'a>(&'a self, run: &'a AgentRun, delivery: DeliveryId) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// Leads to our own routes, for platform ops among the tools.
pub trait RoutesFor: Send + Sync + std::fmt::Debug {
    fn routes(&self, scope: Scope) -> Box<dyn OwnRoutes>;
}

/// The runs of agents of a deployment.
#[derive(Clone, Debug)]
pub struct AgentRuns(Shared<Inner>);

/// What runs of agents are made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub workers: Workers,
    pub egress: Egress,
    pub accounts: Accounts,
    pub catalog: Catalog,
    pub connections: Connections,
    pub secrets: Secrets,
    pub workflows: Workflows,
    pub calls: Calls,
    pub agents: Agents,
    pub settings: Settings,
    /// Where traces go, if anywhere.
    pub collector: Option<Collector>,
}

#[derive(Debug)]
struct Inner {
    parts: Parts,
    deliveries: OnceLock<Arc<dyn Deliveries>>,
    routes: OnceLock<Arc<dyn RoutesFor>>,
    /// This process, as the owner of leases.
    node: Uuid,
    running: engine::Running,
    followers: log::Followers,
    ended: Ended,
    wake: Notify,
    /// Wakes whoever looks after runs and deliveries that wait.
    attend: Notify,
    news: nodes::News,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// How many runs of this process ended how.
#[derive(Debug, Default)]
struct Ended([AtomicU64; RunState::ALL.len()]);

impl Ended {
    fn add(&self, state: RunState) {
        if let Some(at) = RunState::ALL.iter().position(|other| *other == state) {
            self.0[at].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AgentRuns {
    pub fn new(parts: Parts) -> Self {
        let runs = Self(Shared::new(Inner {
            parts,
            deliveries: OnceLock::new(),
            routes: OnceLock::new(),
            node: Uuid::now_v7(),
            running: engine::Running::default(),
            followers: log::Followers::default(),
            ended: Ended::default(),
            wake: Notify::new(),
            attend: Notify::new(),
            news: nodes::News::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }));
        runs.0.parts.workflows.set_agents(Arc::new(begin::Beginner::new(&runs)));
        runs
    }

    /// Names who hears how the runs of deliveries ended.
    pub fn set_deliveries(&self, deliveries: Arc<dyn Deliveries>) {
        let _ = self.0.deliveries.set(deliveries);
    }

    /// Names what leads to our own routes; they come last in the house.
    pub fn set_routes(&self, routes: Arc<dyn RoutesFor>) {
        let _ = self.0.routes.set(routes);
    }

    fn routes(&self, scope: Scope) -> Box<dyn OwnRoutes> {
        self.0.routes.get().map_or_else(|| Box::new(tools::NoRoutes) as Box<dyn OwnRoutes>, |routes| routes.routes(scope))
    }

    /// Starts to take runs that nobody works on, unless nothing shall run here. What people decide here is told to other nodes either way.
    #[kernel::boxed]
    pub async fn start(&self) -> Result<(), StoreError> {
        let (tasks, stop) = (&self.0.tasks, &self.0.stop);
        if self.has_other_nodes() {
            tasks.spawn(self.clone().run_telling(stop.clone()));
            tasks.spawn(self.clone().run_listening(stop.clone()));
        }
        tasks.spawn(self.clone().run_attending(stop.clone()));
        if self.0.parts.settings.paused {
            return Ok(());
        }
        rows::reclaim(&self.0.parts.db, self.0.node).await?;
        tasks.spawn(self.clone().run_engine(stop.clone()));
        tasks.spawn(self.clone().beat(stop.clone()));
        Ok(())
    }

    /// Takes no more runs and gives back those under way; they go on at the next start, or on another node.
    #[kernel::boxed]
    pub async fn drain(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// How many runs of this process ended how.
    pub fn ended(&self) -> impl Iterator<Item = (RunState, u64)> {
        RunState::ALL
            .into_iter()
            .zip(&self.0.ended.0)
            .filter(|(state, _)| state.is_over())
            .map(|(state, count)| (state, count.load(Ordering::Relaxed)))
    }
}
