//! The ports `Finder`, a provider that searches its own tools, and `RecentCalls`, what a project called.

use std::time::Duration;

use catalog::Called;
use futures_util::future::BoxFuture;
use kernel::ProjectId;
use serde_json::Value;
use store::StoreError;

/// A tool as a provider suggests it.
#[derive(Clone, Debug, PartialEq)]
pub struct SuggestedTool {
    pub integration: String,
    pub action: String,
    /// The provider's own name for it.
    pub remote: String,
    pub description: Option<String>,
    pub input_schema: Option<Value>,
}

/// What a provider suggests for one use case, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suggestion {
    pub primary: Vec<SuggestedTool>,
    pub related: Vec<SuggestedTool>,
    pub plan_steps: Vec<String>,
    pub pitfalls: Vec<String>,
    pub difficulty: Option<String>,
}

/// Why a provider could not be asked, in words that anybody may read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FindError(pub String);

/// A provider that finds its own tools for a sentence.
pub trait Finder: Send + Sync + std::fmt::Debug {
    fn provider(&self) -> &'static str;

    /// What the provider suggests for each use case, in their order; ends within the time. What it names is listed in the catalog
    /// afterwards, if it exists.
    fn find<'a>(
        &'a self,
        project: ProjectId,
        use_cases: &'a [&'a str],
        within: Duration,
    ) -> BoxFuture<'a, Result<Vec<Suggestion>, FindError>>;
}

/// What a project called of late.
pub trait RecentCalls: Send + Sync + std::fmt::Debug {
    /// The actions that its newest calls called with success.
    fn succeeded(&self, project: ProjectId) -> BoxFuture<'_, Result<Vec<Called>, StoreError>>;
}
