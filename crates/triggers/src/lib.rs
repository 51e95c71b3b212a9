//! Events and clocks that start workflows: subscriptions, schedules, ingress, deliveries and the engine that runs them. It must never know
//! what a tool is, nor how a provider writes its requests.

mod approvals;
pub mod backoff;
mod clock;
mod consumer;
mod context;
mod deliveries;
mod engine;
mod error;
mod hub;
mod inbox;
pub mod ingress;
mod leftovers;
pub mod mapping;
mod model;
mod overview;
mod personal;
mod poller;
mod port;
mod provider;
mod replan;
pub mod schedule;
mod schedules;
mod spread;
mod stats;
mod store;
mod subscriptions;
mod target;
mod test_mode;
mod wake;
mod webhook;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::store::{Db, Quota, Remembered, StoreError};
use accounts::Accounts;
use catalog::Catalog;
use connections::Connections;
use kernel::seal::Sealer;
use kernel::{Clock, KeyId, Keyed, ProjectId, Shared};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;
use work::Workers;
use workflows::{Runs, Workflows};

pub use deliveries::{Completion, DeliveryQuery};
pub use error::{RowKind, TriggerError};
pub use hub::TidiedTriggers;
pub use ingress::receive::{Received, Request};
pub use leftovers::Leftovers;
pub use model::{
    Actor, Attempt, Delivery, DeliveryLabels, EventRow, Labels, Lifecycle, Parent, Schedule, State, Subscription, TargetKind, WEBHOOK,
    WEBHOOK_EVENT,
};
pub use overview::{Bucket, Overview};
pub use port::{
    Answer, EventSource, Hub, HubMessage, Incoming, Judged, Polled, PolledItem, Refusal, Registered, RemoteTrigger, Signed, Verified,
    Watch, WatchError, WatchMethod,
};
pub use provider::reseal;
pub use schedules::NewSchedule;
pub use stats::{EndedDeliveries, Stats};
pub use store::ParentQuery;
pub use subscriptions::{Made, NewSubscription};
pub use webhook::{ProjectWebhook, Sent, WebhookEvent, WebhookTriggers};

const PAUSED: &str = "Triggers are paused on this server: it was started with `paused`.";
/// How many triggers are remembered.
const MAX_REMEMBERED: usize = 4096;
const FORGET_EVERY: Duration = Duration::from_mins(5);

/// How triggers behave on this node.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many runs a node makes at once.
    pub concurrency: usize,
    /// How many of them for one project.
    pub project_concurrency: usize,
    /// How long a node that says nothing keeps its work.
    pub lease: Duration,
    /// When failed runs are tried again.
    pub backoff: backoff::Backoff,
    /// How long ended deliveries and their events are kept.
    pub retention: Duration,
    /// Whether nothing runs here: events are stored, and wait.
    pub paused: bool,
    /// How many schedules a project may have.
    pub schedules: Quota,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 64,
            project_concurrency: 32,
            lease: Duration::from_secs(30),
            backoff: backoff::Backoff::default(),
            retention: Duration::from_hours(30 * 24),
            paused: false,
            schedules: Quota {
                what: "schedules",
                rows: 10_000,
                bytes: 64 << 20,
                rows_setting: "schedules_per_project",
                bytes_setting: "schedule_bytes_per_project",
                remedy: "Delete some that you do not need",
            },
        }
    }
}

/// The triggers of a deployment.
#[derive(Clone, Debug)]
pub struct Triggers(Shared<Inner>);

/// What triggers are made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub catalog: Catalog,
    pub connections: Connections,
    /// What targets are looked up in.
    pub workflows: Workflows,
    /// Runs them, under the project's rules.
    pub runs: Arc<dyn Runs>,
    pub accounts: Accounts,
    /// Where mappings are filled in and large events are read.
    pub workers: Workers,
    /// By provider.
    pub sources: HashMap<&'static str, Arc<dyn EventSource>>,
    /// Where providers reach us.
    pub public_url: String,
    /// The address to which a provider with one address for all sends, where it is not the usual one.
    pub hub_url: Option<String>,
    pub settings: Settings,
}

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    sealer: Sealer,
    catalog: Catalog,
    connections: Connections,
    /// What targets are looked up in.
    workflows: Workflows,
    /// Runs them, under the project's rules.
    runs: Arc<dyn Runs>,
    accounts: Accounts,
    workers: Workers,
    /// By provider.
    sources: HashMap<&'static str, Arc<dyn EventSource>>,
    /// Where providers reach us.
    public_url: String,
    /// The address to which a provider with one address for all sends, where it is not the usual one.
    hub_url: Option<String>,
    settings: Settings,
    /// This process, as the owner of leases.
    node: Uuid,
    inbox: inbox::Inbox,
    ended: stats::Ended,
    wake: Notify,
    /// For other nodes.
    news: Notify,
    /// A schedule was saved, whose slot may come before the one that the clock waits for.
    scheduled: Notify,
    arrived: Notify,
    running: engine::Running,
    /// What room each project has for large events.
    large_events: Keyed<ProjectId, Semaphore>,
    /// Subscriptions that events come in for, by their token. Their secrets are sealed.
    watched: Remembered<String, Arc<Subscription>>,
    /// What runs when a trigger fires.
    fired: Remembered<(ProjectId, Parent), Arc<engine::ActiveTrigger>>,
    throttle: ingress::receive::Throttle,
    hub: hub::Remembered,
    hub_turn: tokio::sync::Mutex<()>,
    /// Who keeps the webhooks of projects.
    webhook: webhook::Keeper,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Triggers {
    pub fn new(parts: Parts) -> Self {
        let Parts { db, clock, sealer, catalog, connections, workflows, runs, accounts, workers, sources, public_url, hub_url, settings } =
            parts;
        let inbox = inbox::Inbox::start(db.clone());
        let watched = Remembered::new(&db, &["trigger_subscriptions"], MAX_REMEMBERED);
        let fired = Remembered::new(&db, &["trigger_subscriptions", "trigger_schedules"], MAX_REMEMBERED);
        Self(Shared::new(Inner {
            db,
            clock,
            sealer,
            catalog,
            connections,
            workflows,
            runs,
            accounts,
            workers,
            sources,
            public_url,
            hub_url,
            settings,
            node: Uuid::now_v7(),
            inbox,
            ended: stats::Ended::default(),
            wake: Notify::new(),
            news: Notify::new(),
            scheduled: Notify::new(),
            arrived: Notify::new(),
            running: engine::Running::default(),
            large_events: Keyed::default(),
            watched,
            fired,
            throttle: ingress::receive::Throttle::default(),
            hub: hub::Remembered::default(),
            hub_turn: tokio::sync::Mutex::default(),
            webhook: webhook::Keeper::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Starts the engine, the clock and the poller, unless they are paused.
    #[kernel::boxed]
    pub async fn start(&self) -> Result<(), StoreError> {
        if self.0.settings.paused {
            tracing::warn!("triggers are paused: events are stored, and nothing runs, fires or polls until a start without `paused`");
            return Ok(());
        }
        self.reclaim().await?;
        let stop = &self.0.stop;
        let tasks = &self.0.tasks;
        tasks.spawn(self.clone().run_engine(stop.clone()));
        tasks.spawn(self.clone().beat(stop.clone()));
        tasks.spawn(self.clone().run_clock(stop.clone()));
        tasks.spawn(self.clone().run_poller(stop.clone()));
        tasks.spawn(self.clone().run_forgetting(stop.clone()));
        if let Db::Postgres(_) = &self.0.db {
            tasks.spawn(self.clone().run_telling(stop.clone()));
            tasks.spawn(self.clone().run_listening(stop.clone()));
        }
        Ok(())
    }

    /// Whether nothing runs here: events are stored, and wait.
    pub fn is_paused(&self) -> bool {
        self.0.settings.paused
    }

    /// Whether a trigger acts in the name of this key, membership or grant.
    #[kernel::boxed]
    pub async fn act_by(&self, project: ProjectId, key: KeyId) -> Result<bool, StoreError> {
        store::act_by(&self.0.db, project, key).await
    }

    pub(crate) fn require_running(&self) -> Result<(), TriggerError> {
        if self.0.settings.paused { Err(TriggerError::State(PAUSED.to_owned())) } else { Ok(()) }
    }

    /// Takes no more work and waits for what is under way.
    #[kernel::boxed]
    pub async fn drain(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    async fn run_forgetting(self, stop: CancellationToken) {
        loop {
            for result in [self.forget().await, self.purge_tests().await] {
                if let Err(error) = result {
                    tracing::warn!(%error, "old deliveries could not be forgotten");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(FORGET_EVERY) => {}
            }
        }
    }
}
