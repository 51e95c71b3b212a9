//! Everything that fits a sentence, best first, for lists: without a choice, a plan or advice.

use catalog::search::Kind;
use catalog::{Found, SearchRequest};
use kernel::{Budget, Scope};

use crate::discover::{MAX_USE_CASE, search_size};
use crate::{Discovery, DiscoveryError};

impl Discovery {
    /// The actions that fit a sentence, best first. The accounts of whoever it is for and what the project learned count, as they do for
    /// every other search.
    #[kernel::boxed]
    pub async fn ranked(&self, scope: Scope, sentence: &str, limit: usize) -> Result<Vec<Found>, DiscoveryError> {
        if sentence.chars().nth(MAX_USE_CASE).is_some() {
            return Err(DiscoveryError::Invalid(format!("A search is a sentence: it may have {MAX_USE_CASE} characters.")));
        }
        let rows = self.0.connections.choices(scope, None, None).await?;
        let examples = self.examples(scope.project).await?;
        let (catalog, sentence) = (self.0.catalog.clone(), sentence.to_owned());
        let size = search_size(&sentence);
        let search = move |budget: &Budget| {
            budget.look().map_err(work::WorkError::from)?;
            let preferred: Vec<&str> =
                rows.iter().filter(|row| row.is_usable() && !row.is_failing()).map(|row| row.integration.as_str()).collect();
            let wanted = SearchRequest { use_case: &sentence, kind: Kind::Action, limit, preferred: &preferred, examples: Some(&examples) };
            let answer = catalog.search(scope.project, None, &wanted).map_err(connections::ConnectionError::from)?;
            Ok::<_, DiscoveryError>(answer.found)
        };
        self.0.workers.run(scope.project, size, search).await
    }
}
