//! What can be called and watched: integrations, their actions and events, how accounts are connected, and the ports that providers
//! implement. It must never know HTTP, a provider's wire format or who is asking.

pub mod auth;
mod browse;
mod error;
pub mod fill;
mod find;
mod model;
pub mod search;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use kernel::ProjectId;

pub use browse::{Page, PageQuery};
pub use error::CatalogError;
pub use find::{Asked, Examples, Found, Item, Learned, Meaning, Wanted, relevance};
pub use model::{Action, Category, Draft, Event, Integration, Provider, RateLimit};

/// Where a provider's integrations come from. What is listed is in memory; a source that mirrors something remote keeps its own copy fresh.
pub trait Source: Send + Sync + std::fmt::Debug {
    fn provider(&self) -> Provider;

    /// Everything the project can use, in a stable order.
    fn integrations(&self, project: ProjectId) -> Vec<Arc<Integration>>;

    fn integration(&self, project: ProjectId, key: &str) -> Option<Arc<Integration>>;

    /// Projects with the same edition see the same integrations, and share one search index; it changes when the list does.
    fn edition(&self, project: ProjectId) -> u64;

    /// Brings what the project has of its own into memory; until then it is not listed. Quick when it is there already.
    fn ready(&self, _: ProjectId) -> BoxFuture<'_, Result<(), CatalogError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Every provider's integrations.
#[derive(Clone, Debug)]
pub struct Catalog {
    sources: Vec<Arc<dyn Source>>,
    shelves: Arc<find::Shelves>,
    embedder: Option<Arc<dyn search::Embedder>>,
}

impl Catalog {
    pub fn new(sources: Vec<Arc<dyn Source>>) -> Self {
        Self { sources, shelves: Arc::default(), embedder: None }
    }

    /// Search that also goes by meaning.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn search::Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Makes sure that everything the project can use is listed. Whoever acts for a project asks for this before anything else.
    pub async fn ready(&self, project: ProjectId) -> Result<(), CatalogError> {
        for source in &self.sources {
            source.ready(project).await?;
        }
        Ok(())
    }

    pub fn providers(&self) -> Vec<Provider> {
        self.sources.iter().map(|source| source.provider()).collect()
    }

    pub fn source(&self, provider: &str) -> Result<&Arc<dyn Source>, CatalogError> {
        self.sources
            .iter()
            .find(|source| source.provider().key == provider)
            .ok_or_else(|| CatalogError::UnknownProvider(provider.to_owned()))
    }

    pub fn integration(&self, project: ProjectId, provider: &str, key: &str) -> Result<Arc<Integration>, CatalogError> {
        self.source(provider)?.integration(project, key).ok_or_else(|| CatalogError::UnknownIntegration(key.to_owned()))
    }
}
