//! The `composio` provider: Composio's toolkits, with the deployment's key. Its catalog is mirrored, its accounts are connected on its own
//! pages, its tools run there, and its events come to one address. It must never know who calls, whether they may, or a row.

mod breaker;
mod client;
mod convert;
mod envelope;
mod events;
mod host;
mod kept;
mod listing;
mod mirror;
mod proof;
mod run;
mod search;
pub mod translate;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use egress::Egress;
use kernel::{Clock, KeyedLock, Timestamp};
use secrecy::SecretString;
use tokio::sync::{Notify, watch};
use url::Url;
use work::Workers;

use client::Client;
use listing::Listing;
use mirror::{Missed, Readiness};

/// The name of the provider.
pub const KEY: &str = "composio";
/// Where Composio is, unless the operator says otherwise.
pub const URL: &str = "https://backend.composio.dev/api/v3.1";

/// How Composio is used.
#[derive(Debug)]
pub struct Settings {
    pub url: Url,
    pub key: SecretString,
    /// Where the copy of the catalog is kept.
    pub kept: PathBuf,
    /// How old the copy may get.
    pub catalog_life: Duration,
    /// How long a tool may take.
    pub limit: Duration,
    /// What Composio signs events with besides the secrets that it tells, where the operator says so.
    pub webhook_secret: Option<SecretString>,
}

/// Composio, as one deployment sees it.
#[derive(Debug)]
pub struct Composio {
    client: Client,
    settings: Settings,
    clock: Clock,
    listing: RwLock<Arc<Listing>>,
    readiness: watch::Sender<Readiness>,
    editions: watch::Sender<u64>,
    missed: Missed,
    /// Toolkits that are read one by one, each by one caller at a time.
    fills: KeyedLock<String>,
    /// Somebody met something that the list has and Composio has not, or not any more.
    stale: Notify,
    last_fault: Mutex<Option<String>>,
    configs: host::Configs,
}

/// What is known of Composio's catalog.
#[derive(Clone, Debug)]
pub struct Status {
    pub toolkits: usize,
    pub tools: usize,
    pub events: usize,
    /// When all of it was last read.
    pub read_at: Option<Timestamp>,
    /// Why it could not be read since.
    pub fault: Option<String>,
}

impl Composio {
    /// Large answers are read with these workers.
    pub fn new(settings: Settings, egress: Egress, workers: Workers, clock: Clock) -> Self {
        Self {
            client: Client::new(settings.url.clone(), settings.key.clone(), egress, workers),
            settings,
            clock,
            listing: RwLock::default(),
            readiness: watch::Sender::new(Readiness::Loading),
            editions: watch::Sender::new(0),
            missed: Missed::default(),
            fills: KeyedLock::default(),
            stale: Notify::new(),
            last_fault: Mutex::default(),
            configs: host::Configs::default(),
        }
    }

    /// Tells of every edition of the catalog.
    pub fn editions(&self) -> watch::Receiver<u64> {
        self.editions.subscribe()
    }

    /// Reads the whole catalog now.
    pub async fn sync(&self) -> Result<Status, String> {
        self.read_all().await.map_err(|fault| fault.to_string())?;
        Ok(self.status())
    }

    pub fn status(&self) -> Status {
        let listing = self.listing();
        let fault = self.last_fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Status { toolkits: listing.integrations.len(), tools: listing.tools(), events: listing.events(), read_at: listing.read_at, fault }
    }
}

/// A moment as Composio writes it.
fn time(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp::from_micros(at.as_microsecond()))
}
