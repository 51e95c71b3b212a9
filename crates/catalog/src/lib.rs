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
use kernel::{ProjectId, Shared};

pub use browse::{Page, PageQuery};
pub use error::{CatalogError, Missing};
pub use find::{Called, Examples, Found, IndexedSentences, Item, Learned, SearchAnswer, SearchRequest, relevance};
pub use model::{Action, Category, Draft, Event, Integration, Provider, RateLimit};

/// Where a provider's integrations come from. What is listed is in memory; a source that mirrors something remote keeps its own copy fresh.
pub trait Source: Send + Sync + std::fmt::Debug {
    fn provider(&self) -> Provider;

    /// Everything the project can use, in a stable order.
    fn integrations(&self, project: ProjectId) -> Vec<Arc<Integration>>;

    fn integration(&self, project: ProjectId, key: &str) -> Option<Arc<Integration>>;

    /// Projects with the same edition see the same integrations, and share one search index; it changes when the list does.
    fn edition(&self, project: ProjectId) -> u64;

    /// Whether everybody sees the same list, of which only the newest edition is of use.
    fn is_shared(&self) -> bool {
        false
    }

    /// Brings what the project has of its own into memory; until then it is not listed. Quick when it is there already.
    fn ready(&self, _: ProjectId) -> BoxFuture<'_, Result<(), CatalogError>> {
        Box::pin(async { Ok(()) })
    }

    /// Makes sure that what is named is listed, if it exists. A source that mirrors something remote asks for what its copy lacks.
    fn reach<'a>(&'a self, _: Reach<'a>) -> BoxFuture<'a, Result<(), CatalogError>> {
        Box::pin(async { Ok(()) })
    }
}

/// What somebody is about to look up at one provider.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'a> {
    List,
    Integration(&'a str),
    Action(&'a str, &'a str),
}

/// A provider that this deployment could have.
#[derive(Clone, Copy, Debug)]
pub struct Unconfigured {
    pub provider: &'static str,
    /// What the operator has to set.
    pub setting: &'static str,
}

/// Every provider's integrations.
#[derive(Clone, Debug)]
pub struct Catalog {
    sources: Vec<Arc<dyn Source>>,
    unconfigured: Vec<Unconfigured>,
    indexes: Shared<find::IndexCache>,
    embedder: Option<Arc<dyn search::Embedder>>,
    remote: Option<Arc<dyn search::RemoteEmbedder>>,
}

impl Catalog {
    pub fn new(sources: Vec<Arc<dyn Source>>) -> Self {
        Self { sources, unconfigured: Vec::new(), indexes: Shared::new(find::IndexCache::default()), embedder: None, remote: None }
    }

    /// Says of a provider that it could be here, and is not.
    #[must_use]
    pub fn without(mut self, provider: Unconfigured) -> Self {
        self.unconfigured.push(provider);
        self
    }

    /// Search that also goes by meaning.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn search::Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Search whose order a remote model refines, as far as its vectors are there.
    #[must_use]
    pub fn with_remote_embedder(mut self, remote: Arc<dyn search::RemoteEmbedder>) -> Self {
        self.remote = Some(remote);
        self
    }

    /// The remote model, where there is one.
    pub fn remote_embedder(&self) -> Option<&dyn search::RemoteEmbedder> {
        self.remote.as_deref()
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
        let found = self.sources.iter().find(|source| source.provider().key == provider);
        found.ok_or_else(|| match self.unconfigured.iter().find(|absent| absent.provider == provider) {
            Some(Unconfigured { provider, setting }) => CatalogError::NotConfigured { provider, setting },
            None => CatalogError::UnknownProvider(Missing::new(provider, self.sources.iter().map(|source| source.provider().key))),
        })
    }

    /// Makes sure that what is named is listed, if it exists. Whoever was given a name by a caller asks for this before looking it up.
    pub async fn reach(&self, provider: &str, named: Reach<'_>) -> Result<(), CatalogError> {
        self.source(provider)?.reach(named).await
    }

    /// The integration that a caller named.
    pub async fn reach_integration(&self, project: ProjectId, provider: &str, key: &str) -> Result<Arc<Integration>, CatalogError> {
        self.reach(provider, Reach::Integration(key)).await?;
        self.integration(project, provider, key)
    }

    /// Refuses the name of an integration that no provider has.
    pub fn check_integration(&self, project: ProjectId, key: &str) -> Result<(), CatalogError> {
        if self.sources.iter().any(|source| source.integration(project, key).is_some()) {
            return Ok(());
        }
        let all: Vec<Arc<Integration>> = self.sources.iter().flat_map(|source| source.integrations(project)).collect();
        Err(CatalogError::UnknownIntegration(Missing::new(key, all.iter().map(|integration| integration.key.as_str()))))
    }

    pub fn integration(&self, project: ProjectId, provider: &str, key: &str) -> Result<Arc<Integration>, CatalogError> {
        let source = self.source(provider)?;
        source.integration(project, key).ok_or_else(|| {
            let all = source.integrations(project);
            CatalogError::UnknownIntegration(Missing::new(key, all.iter().map(|integration| integration.key.as_str())))
        })
    }
}
