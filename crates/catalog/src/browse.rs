//! Browsing: pages, search, categories.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::ProjectId;

use crate::{Action, Catalog, CatalogError, Category, Event, Integration};

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 1000;
const MIN_SEARCH: usize = 3;
const MAX_CATEGORIES: usize = 30;

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct PageQuery {
    pub search: Option<String>,
    pub categories: Vec<String>,
    pub alphabetical: bool,
    pub limit: Option<i64>,
    pub cursor: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub total: usize,
    pub cursor: Option<String>,
}

impl Catalog {
    pub fn integrations(&self, project: ProjectId, provider: &str, query: &PageQuery) -> Result<Page<Arc<Integration>>, CatalogError> {
        let mut found = self.source(provider)?.integrations(project);
        found.retain(|integration| {
            let texts = [integration.key.as_str(), &integration.name, &integration.description];
            matches(query, texts.into_iter().chain(integration.aliases.iter().map(String::as_str)))
                && in_categories(query, &integration.categories)
        });
        if query.alphabetical {
            found.sort_by_key(|integration| integration.name.to_lowercase());
        }
        page(found, query)
    }

    /// The most used categories, the largest first.
    pub fn categories(&self, project: ProjectId, provider: &str) -> Result<Vec<Category>, CatalogError> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for integration in self.source(provider)?.integrations(project) {
            for category in &integration.categories {
                *counts.entry(category.clone()).or_default() += 1;
            }
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by(|(left, fewer), (right, more)| more.cmp(fewer).then_with(|| left.cmp(right)));
        Ok(counts.into_iter().take(MAX_CATEGORIES).map(|(id, _)| Category { name: Category::title(&id), id }).collect())
    }

    pub fn actions(
        &self,
        project: ProjectId,
        provider: &str,
        integration: &str,
        query: &PageQuery,
    ) -> Result<Page<Arc<Action>>, CatalogError> {
        let integration = self.integration(project, provider, integration)?;
        let wanted = |action: &&Arc<Action>| {
            matches(query, [action.key.as_str(), &action.name, &action.description].into_iter())
                && in_categories(query, action.categories(&integration))
        };
        page(integration.actions.iter().filter(wanted).cloned().collect(), query)
    }

    pub fn action(&self, project: ProjectId, provider: &str, integration: &str, key: &str) -> Result<Arc<Action>, CatalogError> {
        let integration = self.integration(project, provider, integration)?;
        integration.known_action(key).cloned()
    }

    pub fn events(
        &self,
        project: ProjectId,
        provider: &str,
        integration: &str,
        query: &PageQuery,
    ) -> Result<Page<Arc<Event>>, CatalogError> {
        let integration = self.integration(project, provider, integration)?;
        let wanted = |event: &&Arc<Event>| matches(query, [event.key.as_str(), &event.name, &event.description].into_iter());
        page(integration.events.iter().filter(wanted).cloned().collect(), query)
    }

    pub fn event(&self, project: ProjectId, provider: &str, integration: &str, key: &str) -> Result<Arc<Event>, CatalogError> {
        let integration = self.integration(project, provider, integration)?;
        integration.known_event(key).cloned()
    }
}

/// Every word of the search stands in one of the texts. A search of fewer than three characters is no search.
fn matches<'a>(query: &PageQuery, texts: impl Iterator<Item = &'a str>) -> bool {
    let Some(search) = query.search.as_deref().map(str::trim).filter(|search| search.chars().count() >= MIN_SEARCH) else { return true };
    let haystack = texts.map(fold).collect::<Vec<_>>().join("\n");
    search.split_whitespace().all(|word| haystack.contains(&fold(word)))
}

fn fold(text: &str) -> String {
    text.to_lowercase().replace(['_', '-'], " ")
}

fn in_categories(query: &PageQuery, categories: &[String]) -> bool {
    query.categories.is_empty() || query.categories.iter().any(|wanted| categories.iter().any(|category| fold(category) == fold(wanted)))
}

impl Category {
    /// An id as people read it.
    pub fn title(id: &str) -> String {
        let spaced = id.replace('-', " ");
        let mut letters = spaced.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }
}

fn page<T: Clone>(items: Vec<T>, query: &PageQuery) -> Result<Page<T>, CatalogError> {
    let limit = match query.limit {
        None | Some(0) => DEFAULT_LIMIT,
        Some(limit) => usize::try_from(limit).map_err(|_| CatalogError::BadLimit)?.min(MAX_LIMIT),
    };
    let start: usize = match query.cursor.as_deref() {
        None | Some("") => 0,
        Some(cursor) => cursor.parse().map_err(|_| CatalogError::BadCursor)?,
    };
    let total = items.len();
    let items: Vec<T> = items.into_iter().skip(start).take(limit).collect();
    let end = start.saturating_add(items.len());
    let cursor = (end < total && !items.is_empty()).then(|| end.to_string());
    Ok(Page { items, total, cursor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_everything_once() {
        let items: Vec<u32> = (0..45).collect();
        let mut query = PageQuery { limit: Some(20), ..PageQuery::default() };
        let mut seen = Vec::new();
        loop {
            let next = page(items.clone(), &query).unwrap();
            seen.extend(next.items);
            let Some(cursor) = next.cursor else { break };
            query.cursor = Some(cursor);
        }
        assert_eq!(seen, items);
        query.cursor = Some("18446744073709551615".to_owned());
        assert!(page(items.clone(), &query).unwrap().items.is_empty());
        query.cursor = Some("x".to_owned());
        assert_eq!(page(items, &query).unwrap_err(), CatalogError::BadCursor);
    }

    #[test]
    fn short_searches_are_no_searches() {
        let query = |search: &str| PageQuery { search: Some(search.to_owned()), ..PageQuery::default() };
        assert!(matches(&query("zz"), ["github"].into_iter()));
        assert!(!matches(&query("zzz"), ["github"].into_iter()));
        assert!(matches(&query("google calendar"), ["google-calendar"].into_iter()));
    }
}
