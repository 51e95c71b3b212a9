//! The `composio` provider: Composio's toolkits, with the deployment's key. Its catalog is mirrored, its accounts are connected on its own
//! pages, its tools run there, and its events come to one address.

mod breaker;
mod client;
mod convert;
mod events;
mod host;
mod kept;
mod listing;
mod mirror;
mod run;
mod search;
pub mod translate;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use egress::Egress;
use kernel::{Clock, Timestamp};
use secrecy::SecretString;
use tokio::sync::{Notify, watch};
use url::Url;

use client::Client;
use listing::Listing;
use mirror::{Fills, Missed, Readiness};

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
    fills: Fills,
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
    pub fn new(settings: Settings, egress: Egress, clock: Clock) -> Self {
        Self {
            client: Client::new(settings.url.clone(), settings.key.clone(), egress),
            settings,
            clock,
            listing: RwLock::default(),
            readiness: watch::Sender::new(Readiness::Loading),
            editions: watch::Sender::new(0),
            missed: Missed::default(),
            fills: Fills::default(),
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
