//! Discovery: sentences in, tools or events out, with the state of their connections and what to do next; what a project learned from
//! calls that succeeded. It must never know how a tool is called, nor at which addresses the API is.

mod advisor;
mod answer;
mod discover;
mod error;
mod guidance;
mod learned;
mod lookups;
mod merge;
mod next_step;
mod offers;
mod parts;
mod port;
mod ranked;
mod recurring;
mod use_case;

use std::sync::Arc;

use catalog::Catalog;
use connections::Connections;
use kernel::{Clock, Shared};
use store::Db;
use tokio_util::task::TaskTracker;
use work::Workers;

pub use answer::{
    AlternativeEvent, AlternativeTool, ApiRequest, ConnectionState, DiscoveredEvents, DiscoveredTools, EventCapability, FoundEvent,
    FoundTool, IntegrationState, Readiness, Reasons, ToolCapability,
};
pub use discover::Discover;
pub use error::DiscoveryError;
pub use guidance::Guidance;
pub use learned::{LearnedPage, LearnedUseCase};
pub use next_step::{Addresses, ConnectDraft, NextStep, RequestDraft};
pub use offers::ActionName;
pub use port::{FindError, Finder, RecentCalls, SuggestedTool, Suggestion};

/// The search for tools and events of a deployment.
#[derive(Clone, Debug)]
pub struct Discovery(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    catalog: Catalog,
    connections: Connections,
    workers: Workers,
    addresses: Arc<dyn Addresses>,
    offers: offers::RecentOffers,
    advisors: Vec<Arc<advisor::Advisor>>,
    learned: learned::LearnedCache,
    recent_calls: Arc<dyn RecentCalls>,
    /// What is learned after a call was answered.
    tasks: TaskTracker,
}

/// What discovery is made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub catalog: Catalog,
    pub connections: Connections,
    pub workers: Workers,
    pub addresses: Arc<dyn Addresses>,
    pub finders: Vec<Arc<dyn Finder>>,
    pub recent_calls: Arc<dyn RecentCalls>,
}

impl Discovery {
    pub fn new(parts: Parts) -> Self {
        let Parts { db, clock, catalog, connections, workers, addresses, finders, recent_calls } = parts;
        Self(Shared::new(Inner {
            db,
            clock,
            catalog,
            connections,
            workers,
            addresses,
            offers: offers::RecentOffers::default(),
            advisors: finders.into_iter().map(|finder| Arc::new(advisor::Advisor::new(finder))).collect(),
            learned: learned::LearnedCache::default(),
            recent_calls,
            tasks: TaskTracker::new(),
        }))
    }

    /// Waits for what is being learned.
    #[kernel::boxed]
    pub async fn drain(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
