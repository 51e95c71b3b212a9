//! Keeping a copy of Composio's catalog: read in the background, kept on disk, and asked through where somebody names what it lacks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use catalog::{CatalogError, Integration, Provider, Reach, Source};
use futures_util::future::BoxFuture;
use kernel::ProjectId;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use work::WorkError;

use crate::client::{ApiRequest, Client, ComposioError};
use crate::convert::{self, Tool, Toolkit};
use crate::kept::{self, Offer};
use crate::listing::Listing;
use crate::{Composio, KEY};

/// The most that Composio gives on one page.
const PAGE: usize = 1_000;
const TRIGGER_PAGE: usize = 50;
/// A list that never ends is no list.
const MOST_PAGES: usize = 200;
/// How long somebody who named Composio waits for its first list.
const PATIENCE: Duration = Duration::from_secs(20);
const YOUNG: Duration = Duration::from_mins(5);
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// How long what is not there is not asked for again, and how many such names are remembered.
const MISSED: Duration = Duration::from_mins(1);
const MOST_MISSED: usize = 200;

/// Whether there is a list.
#[derive(Clone, Debug)]
pub(crate) enum Readiness {
    Loading,
    Ready,
    /// There is none, and this is why.
    Failed(ComposioError),
}

/// Names that were asked for and are not there.
#[derive(Debug, Default)]
pub(crate) struct Missed(Mutex<HashMap<String, Instant>>);

impl Missed {
    fn has(&self, name: &str) -> bool {
        let missed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        missed.get(name).is_some_and(|at| at.elapsed() < MISSED)
    }

    /// Whether the name need not be asked for.
    fn holds(&self, name: &str) -> bool {
        let mut missed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if missed.len() >= MOST_MISSED {
            missed.retain(|_, at| at.elapsed() < MISSED);
        }
        // A full list refuses what it does not know, so that nobody can make us ask without end.
        missed.get(name).map_or(missed.len() >= MOST_MISSED, |at| at.elapsed() < MISSED)
    }

    fn add(&self, name: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, Instant::now());
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Source for Composio {
    fn provider(&self) -> Provider {
        Provider { key: KEY, name: "Composio", description: "Third-party integrations via Composio" }
    }

    fn integrations(&self, _: ProjectId) -> Vec<Arc<Integration>> {
        self.listing().integrations.clone()
    }

    fn integration(&self, _: ProjectId, key: &str) -> Option<Arc<Integration>> {
        self.listing().get(key).cloned()
    }

    fn edition(&self, _: ProjectId) -> u64 {
        self.listing().edition
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn reach<'a>(&'a self, wanted: Reach<'a>) -> BoxFuture<'a, Result<(), CatalogError>> {
        Box::pin(async move {
            self.wait_for_list().await?;
            let found = match wanted {
                Reach::List => return Ok(()),
                Reach::Integration(key) => self.reach_integration(key).await,
                Reach::Action(key, action) => match self.reach_integration(key).await {
                    Ok(()) => self.reach_action(key, action).await,
                    failed => failed,
                },
            };
            match found {
                // There is a list, and what it does not hold is most likely not there.
                Err(fault) if self.listing().read_at.is_some() => {
                    tracing::debug!(%fault, "Composio could not be asked for what the list does not hold");
                    Ok(())
                }
                found => found.map_err(|fault| unread(&fault)),
            }
        })
    }
}

impl Composio {
    pub(crate) fn listing(&self) -> Arc<Listing> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, change: impl FnOnce(&Listing) -> Listing) {
        let mut listing = self.listing.write().unwrap_or_else(PoisonError::into_inner);
        *listing = Arc::new(change(&listing));
        self.editions.send_replace(listing.edition);
    }

    /// Keeps the list fresh until it is told to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let work = async {
            self.open_kept().await;
            let (mut pause, mut wait) = (FIRST_PAUSE, self.due_in());
            loop {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.stale.notified() => if self.is_young() { continue },
                }
                wait = match self.read_all().await {
                    Ok(()) => {
                        pause = FIRST_PAUSE;
                        self.due_in()
                    }
                    Err(fault) => {
                        tracing::warn!(%fault, "Composio's catalog could not be read; what is known of it stays");
                        let waited = pause;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                        waited
                    }
                };
            }
        };
        stop.run_until_cancelled(work).await;
    }

    /// When the list is to be read again.
    fn due_in(&self) -> Duration {
        let Some(read_at) = self.listing().read_at else { return Duration::ZERO };
        let due = read_at.plus(self.settings.catalog_life);
        Duration::from_micros(u64::try_from(due.micros() - self.clock.now().micros()).unwrap_or(0))
    }

    /// Whether the list was read so lately that it need not be read again at somebody's word.
    fn is_young(&self) -> bool {
        self.listing().read_at.is_some_and(|at| at.plus(YOUNG) > self.clock.now())
    }

    async fn open_kept(&self) {
        let (path, identity) = (self.settings.kept.clone(), self.client.identity());
        let opened = tokio::task::spawn_blocking(move || {
            let (at, offer) = kept::read(&path, &identity)?;
            Some((at, convert::gather(offer.toolkits, offer.tools, offer.triggers, true)))
        });
        if let Ok(Some((at, wholes))) = opened.await {
            self.publish(|known| Listing::new(known.edition + 1, wholes, Some(at)));
            self.readiness.send_replace(Readiness::Ready);
        }
    }

    /// Reads everything. Until that is done for the first time, the toolkits are listed without their tools.
    pub(crate) async fn read_all(&self) -> Result<(), ComposioError> {
        let read = self.read_offer().await;
        if let Err(fault) = &read {
            self.readiness.send_if_modified(|readiness| {
                let is_ready = matches!(readiness, Readiness::Ready);
                if !is_ready {
                    *readiness = Readiness::Failed(fault.clone());
                }
                !is_ready
            });
            *self.last_fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault.to_string());
        }
        let offer = read?;
        let (path, identity, at) = (self.settings.kept.clone(), self.client.identity(), self.clock.now());
        let work = tokio::task::spawn_blocking(move || {
            if let Err(error) = kept::write(&path, &identity, at, &offer) {
                tracing::warn!(%error, "the copy of Composio's catalog could not be kept");
            }
            convert::gather(offer.toolkits, offer.tools, offer.triggers, true)
        });
        let wholes = work.await.map_err(|error| ComposioError::Malformed(error.to_string()))?;
        self.publish(|known| Listing::new(known.edition + 1, wholes, Some(at)));
        self.missed.clear();
        *self.last_fault.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.readiness.send_replace(Readiness::Ready);
        let listing = self.listing();
        tracing::info!(
            toolkits = listing.integrations.len(),
            tools = listing.tools(),
            events = listing.events(),
            "read Composio's catalog"
        );
        Ok(())
    }

    async fn read_offer(&self) -> Result<Offer, ComposioError> {
        let toolkits: Vec<Toolkit> = pages(&self.client, &["toolkits"], &[("sort_by", "usage")], PAGE).await?;
        if !matches!(*self.readiness.borrow(), Readiness::Ready) {
            let listed = toolkits.clone();
            let bare = self.client.work(move || convert::gather(listed, Vec::new(), Vec::new(), false)).await?;
            self.publish(|known| Listing::new(known.edition + 1, bare, None));
            self.readiness.send_replace(Readiness::Ready);
        }
        let tools = pages(&self.client, &["tools"], &[("include_deprecated", "false")], PAGE).await?;
        let triggers = pages(&self.client, &["triggers_types"], &[], TRIGGER_PAGE).await?;
        Ok(Offer { toolkits, tools, triggers })
    }

    async fn wait_for_list(&self) -> Result<(), CatalogError> {
        let mut readiness = self.readiness.subscribe();
        let settled = readiness.wait_for(|readiness| !matches!(readiness, Readiness::Loading));
        match tokio::time::timeout(PATIENCE, settled).await {
            Ok(Ok(readiness)) => match &*readiness {
                Readiness::Failed(fault) => Err(unread(fault)),
                Readiness::Loading | Readiness::Ready => Ok(()),
            },
            Ok(Err(_)) => Ok(()),
            Err(_) => Err(CatalogError::Upstream("Composio's catalog is still being read; try again in a moment.".to_owned())),
        }
    }

    /// Reads one toolkit that is not listed, or not with its tools.
    async fn reach_integration(&self, key: &str) -> Result<(), ComposioError> {
        let is_settled = || {
            let listing = self.listing();
            let is_listed = listing.get(key).is_some();
            listing.is_filled(key) || if is_listed { self.missed.has(key) } else { self.missed.holds(key) }
        };
        if !convert::is_key(key) || is_settled() {
            return Ok(());
        }
        let _turn = self.fills.lock(key).await;
        if is_settled() {
            return Ok(());
        }
        self.fill(key).await?;
        if !self.listing().is_filled(key) {
            self.missed.add(key.to_owned());
        }
        Ok(())
    }

    /// Reads the toolkit of a tool again that is newer than the list.
    async fn reach_action(&self, key: &str, action: &str) -> Result<(), ComposioError> {
        let name = format!("{key}.{action}");
        let is_settled = || {
            let listing = self.listing();
            listing.get(key).is_none_or(|integration| integration.action(action).is_some()) || self.missed.holds(&name)
        };
        if !convert::is_segment(action) || is_settled() {
            return Ok(());
        }
        let _turn = self.fills.lock(key).await;
        if is_settled() {
            return Ok(());
        }
        if self.has_tool(key, action).await? {
            self.fill(key).await?;
        }
        if self.listing().get(key).is_none_or(|integration| integration.action(action).is_none()) {
            self.missed.add(name);
        }
        Ok(())
    }

    /// Whether Composio has a tool that would be listed under this name.
    async fn has_tool(&self, key: &str, action: &str) -> Result<bool, ComposioError> {
        let prefixed = format!("{}_{action}", key.to_uppercase());
        for slug in [prefixed.as_str(), action] {
            match definite(self.client.ask(ApiRequest::get(&["tools", slug])).await)? {
                Some(tool) if one::<Tool>(tool.clone()).is_ok_and(|tool| tool.is_listed_as(key, action)) => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }

    async fn fill(&self, key: &str) -> Result<(), ComposioError> {
        let Some(toolkit) = definite(self.client.ask(ApiRequest::get(&["toolkits", key])).await)? else { return Ok(()) };
        let Ok(toolkit) = one::<Toolkit>(toolkit) else { return Ok(()) };
        let of = [("toolkit_slug", key), ("include_deprecated", "false")];
        let tools = pages(&self.client, &["tools"], &of, PAGE).await?;
        let triggers = pages(&self.client, &["triggers_types"], &[("toolkit_slugs", key)], TRIGGER_PAGE).await?;
        let whole = self.client.work(move || convert::gather(vec![toolkit], tools, triggers, true).pop()).await?;
        if let Some(whole) = whole.filter(|whole| whole.toolkit.slug.eq_ignore_ascii_case(key)) {
            self.publish(|known| known.with(whole.into()));
        }
        Ok(())
    }
}

/// What was asked for, or that Composio will not give it; a failure that says neither is one.
fn definite(answer: Result<Value, ComposioError>) -> Result<Option<Value>, ComposioError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(ComposioError::Refused { status, .. }) if !matches!(status, 401 | 403 | 408 | 429) => Ok(None),
        Err(ComposioError::Malformed(_) | ComposioError::TooMuch(WorkError::Exceeded(_))) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// All pages of a list. Entries that cannot be read are left out; a page that cannot is a failure.
pub(crate) async fn pages<T: DeserializeOwned + Send + 'static>(
    client: &Client,
    path: &[&str],
    query: &[(&str, &str)],
    limit: usize,
) -> Result<Vec<T>, ComposioError> {
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..MOST_PAGES {
        let mut ask = query.iter().fold(ApiRequest::get(path), |ask, (name, value)| ask.with(name, value)).with("limit", limit).page();
        if let Some(cursor) = &cursor {
            ask = ask.with("cursor", cursor);
        }
        let list = path.join("/");
        let (read, next) = client.ask_for(ask, move |page| read_page::<T>(page, &list)).await?;
        all.extend(read);
        if next.is_none() || next == cursor {
            return Ok(all);
        }
        cursor = next;
    }
    Err(ComposioError::Malformed(format!("the list of {} does not end", path.join("/"))))
}

/// The entries of a page, and where the next one begins.
fn read_page<T: DeserializeOwned>(mut page: Value, list: &str) -> Result<(Vec<T>, Option<String>), ComposioError> {
    let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) else {
        return Err(ComposioError::Malformed(format!("a page of {list} without `items`")));
    };
    let count = items.len();
    let read: Vec<T> = items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect();
    if count > 0 && read.is_empty() {
        return Err(ComposioError::Malformed(format!("no entry of {list} can be read")));
    }
    let next = page.get("next_cursor").and_then(Value::as_str).filter(|next| !next.is_empty()).map(str::to_owned);
    Ok((read, next))
}

pub(crate) fn one<T: DeserializeOwned>(value: Value) -> Result<T, ComposioError> {
    serde_json::from_value(value).map_err(|error| ComposioError::Malformed(error.to_string()))
}

fn unread(fault: &ComposioError) -> CatalogError {
    match fault {
        ComposioError::Server { .. } => CatalogError::UpstreamServer(fault.to_string()),
        _ => CatalogError::Upstream(fault.to_string()),
    }
}
