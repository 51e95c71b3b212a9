//! Slugs of toolkits, tools and trigger types. There is one table for each list of integrations, made from the catalog, both ways; nothing
//! is ever read out of a slug.
//!
//! `api.names(scope).await?` is the table of a project. From a slug, in any case: `names.toolkit(slug)?`, `names.tool(slug)?`,
//! `names.trigger_type(slug)?`, each refused with the nearest that exists; where a caller named a tool, ask `api.tool(scope, slug)`, which
//! also finds what a provider lists on demand. To a slug: `names.toolkit_of(provider, integration)`, then `toolkit.tool(action)` and
//! `toolkit.trigger_type(event)`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalog::{Action, Catalog, Event, Integration, Reach};
use kernel::{ProjectId, Scope, hex, suggest};
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use work::in_place;

use crate::{ApiError, ComposioApi, Refusal, versions};

/// The longest slug of a tool: model APIs take no longer name of a function.
const MAX_SLUG: usize = 64;
/// How many letters of a digest make a slug unlike others.
const DIGEST: usize = 8;
/// How many tables are kept.
const MAX_TABLES: usize = 64;
/// About how many bytes of work a toolkit is for whoever makes a table.
const TOOLKIT_WEIGHT: usize = 512;
/// Toolkits that are not an integration's: what sessions are steered with, and plain webhooks.
pub const RESERVED: [&str; 2] = ["composio", "webhook"];

/// An integration under its slug.
#[derive(Debug)]
pub struct Toolkit {
    pub slug: String,
    pub integration: Arc<Integration>,
    /// The slugs of its actions and events, in their order.
    tools: Vec<String>,
    trigger_types: Vec<String>,
}

impl Toolkit {
    /// Its tools, in the order of the catalog.
    pub fn tools(self: &Arc<Self>) -> impl Iterator<Item = Tool> + use<> {
        let this = self.clone();
        (0..self.tools.len()).map(move |position| Tool { toolkit: this.clone(), position })
    }

    /// The tool that an action is.
    pub fn tool(self: &Arc<Self>, action: &str) -> Option<Tool> {
        Some(Tool { toolkit: self.clone(), position: self.integration.position(action)? })
    }

    pub fn trigger_types(self: &Arc<Self>) -> impl Iterator<Item = TriggerType> + use<> {
        let this = self.clone();
        (0..self.trigger_types.len()).map(move |position| TriggerType { toolkit: this.clone(), position })
    }

    /// The trigger type that an event is.
    pub fn trigger_type(self: &Arc<Self>, event: &str) -> Option<TriggerType> {
        let position = self.integration.events.iter().position(|own| own.key == event)?;
        Some(TriggerType { toolkit: self.clone(), position })
    }

    pub fn version(&self) -> String {
        versions::version(&self.integration)
    }
}

/// An action under its slug.
#[derive(Clone, Debug)]
pub struct Tool {
    pub toolkit: Arc<Toolkit>,
    position: usize,
}

impl Tool {
    pub fn slug(&self) -> &str {
        &self.toolkit.tools[self.position]
    }

    pub fn action(&self) -> &Arc<Action> {
        &self.toolkit.integration.actions[self.position]
    }
}

/// An event under its slug.
#[derive(Clone, Debug)]
pub struct TriggerType {
    pub toolkit: Arc<Toolkit>,
    position: usize,
}

impl TriggerType {
    pub fn slug(&self) -> &str {
        &self.toolkit.trigger_types[self.position]
    }

    pub fn event(&self) -> &Arc<Event> {
        &self.toolkit.integration.events[self.position]
    }
}

/// Every slug of one list of integrations.
#[derive(Debug, Default)]
pub struct Names {
    toolkits: Vec<Arc<Toolkit>>,
    by_slug: HashMap<String, usize>,
    by_key: HashMap<String, usize>,
    tools: HashMap<String, (usize, usize)>,
    trigger_types: HashMap<String, (usize, usize)>,
}

impl Names {
    /// The table of integrations whose providers come in the order in which they win a slug.
    pub fn of(integrations: Vec<Arc<Integration>>) -> Self {
        let mut names = Self::default();
        for (integration, slug) in toolkit_slugs(integrations) {
            names.add(integration, slug);
        }
        names
    }

    fn add(&mut self, integration: Arc<Integration>, slug: String) {
        let number = self.toolkits.len();
        let actions = integration.actions.iter().map(|action| action.key.as_str());
        let tools = member_slugs(&slug, &integration, actions, &mut self.tools, number);
        let events = integration.events.iter().map(|event| event.key.as_str());
        let trigger_types = member_slugs(&slug, &integration, events, &mut self.trigger_types, number);
        self.by_key.insert(place(integration.provider, &integration.key), number);
        self.by_slug.insert(slug.clone(), number);
        self.toolkits.push(Arc::new(Toolkit { slug, integration, tools, trigger_types }));
    }

    pub fn toolkits(&self) -> &[Arc<Toolkit>] {
        &self.toolkits
    }

    /// The toolkit of that slug, if there is one.
    pub fn find_toolkit(&self, slug: &str) -> Option<&Arc<Toolkit>> {
        self.by_slug.get(&slug.to_lowercase()).map(|number| &self.toolkits[*number])
    }

    pub fn toolkit(&self, slug: &str) -> Result<&Arc<Toolkit>, Refusal> {
        self.find_toolkit(slug).ok_or_else(|| {
            let nearest = suggest::did_you_mean(&shown(slug), self.toolkits.iter().map(|toolkit| toolkit.slug.as_str()));
            Refusal::not_found("Toolkit_ToolkitNotFound", format!("Toolkit `{}` was not found.{nearest}", shown(slug)))
        })
    }

    /// The tool of that slug, if there is one.
    pub fn find_tool(&self, slug: &str) -> Option<Tool> {
        let (toolkit, position) = *self.tools.get(&slug.to_uppercase())?;
        Some(Tool { toolkit: self.toolkits[toolkit].clone(), position })
    }

    pub fn tool(&self, slug: &str) -> Result<Tool, Refusal> {
        self.find_tool(slug).ok_or_else(|| {
            let nearest = suggest::did_you_mean(&shown(slug), self.tools.keys().map(String::as_str));
            Refusal::tool_not_found(format!("Tool `{}` was not found.{nearest}", shown(slug)))
        })
    }

    /// The trigger type of that slug, if there is one.
    pub fn find_trigger_type(&self, slug: &str) -> Option<TriggerType> {
        let (toolkit, position) = *self.trigger_types.get(&slug.to_uppercase())?;
        Some(TriggerType { toolkit: self.toolkits[toolkit].clone(), position })
    }

    pub fn trigger_type(&self, slug: &str) -> Result<TriggerType, Refusal> {
        self.find_trigger_type(slug).ok_or_else(|| {
            let nearest = suggest::did_you_mean(&shown(slug), self.trigger_types.keys().map(String::as_str));
            Refusal::not_found("TriggerType_NotFound", format!("Trigger type `{}` was not found.{nearest}", shown(slug)))
        })
    }

    /// The toolkit that an integration is.
    pub fn toolkit_of(&self, provider: &str, integration: &str) -> Option<&Arc<Toolkit>> {
        self.by_key.get(&place(provider, integration)).map(|number| &self.toolkits[*number])
    }

    /// Toolkits that may have a tool or trigger type of this slug, if their provider lists it on demand.
    fn owners(&self, slug: &str) -> impl Iterator<Item = &Arc<Toolkit>> {
        let slug = slug.to_uppercase();
        self.toolkits.iter().filter(move |toolkit| slug.starts_with(&member_prefix(&toolkit.slug)))
    }
}

/// A slug as an error repeats it.
fn shown(slug: &str) -> String {
    slug.chars().filter(|letter| !letter.is_control()).take(80).collect()
}

fn place(provider: &str, integration: &str) -> String {
    format!("{provider}/{integration}")
}

/// A slug for each integration. Whoever comes first has it; others are told apart by their provider, and by a digest where that is not
/// enough. Of several of one provider, the one whose key is the slug comes first, so that it keeps it whatever is imported later.
fn toolkit_slugs(integrations: Vec<Arc<Integration>>) -> Vec<(Arc<Integration>, String)> {
    let mut ranked: Vec<(usize, Arc<Integration>)> = integrations.into_iter().enumerate().collect();
    let mut providers: Vec<&'static str> = Vec::new();
    for (_, integration) in &ranked {
        if !providers.contains(&integration.provider) {
            providers.push(integration.provider);
        }
    }
    let rank = |integration: &Integration| providers.iter().position(|provider| *provider == integration.provider);
    ranked.sort_by_key(|(position, integration)| (rank(integration), wanted_slug(&integration.key) != integration.key, *position));
    let mut taken: HashSet<String> = RESERVED.into_iter().map(str::to_owned).collect();
    let mut named: Vec<(usize, Arc<Integration>, String)> = Vec::new();
    for (position, integration) in ranked {
        let plain = wanted_slug(&integration.key);
        let of_provider = format!("{plain}_{}", integration.provider);
        let unlike = format!("{of_provider}_{}", digest(&place(integration.provider, &integration.key)).to_lowercase());
        let slug = [plain, of_provider].into_iter().find(|slug| !taken.contains(slug)).unwrap_or(unlike);
        taken.insert(slug.clone());
        named.push((position, integration, slug));
    }
    named.sort_by_key(|(position, ..)| *position);
    named.into_iter().map(|(_, integration, slug)| (integration, slug)).collect()
}

/// A key as Composio would write it: `google-calendar` is `googlecalendar`.
fn wanted_slug(key: &str) -> String {
    let letters = key.chars().filter(|letter| *letter != '-').map(|letter| letter.to_ascii_lowercase());
    letters.map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// How the slugs of a toolkit's tools begin.
fn member_prefix(toolkit: &str) -> String {
    format!("{}_", toolkit.to_uppercase())
}

/// Slugs for the actions or events of a toolkit, written down in `all`.
fn member_slugs<'a>(
    toolkit: &str,
    integration: &Integration,
    keys: impl Iterator<Item = &'a str>,
    all: &mut HashMap<String, (usize, usize)>,
    number: usize,
) -> Vec<String> {
    let prefix = member_prefix(toolkit);
    let mut slugs = Vec::new();
    for (position, key) in keys.enumerate() {
        let letters = key.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' });
        let plain: String = prefix.chars().chain(letters).collect();
        let slug = if plain.len() <= MAX_SLUG && !all.contains_key(&plain) {
            plain
        } else {
            let rest: String = plain.chars().take(MAX_SLUG - DIGEST - 1).collect();
            format!("{rest}_{}", digest(&format!("{}/{key}", place(integration.provider, &integration.key))))
        };
        all.insert(slug.clone(), (number, position));
        slugs.push(slug);
    }
    slugs
}

fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text)[..DIGEST / 2]).to_uppercase()
}

/// The tables of lists that were asked for of late, by the editions of all sources.
#[derive(Debug)]
pub(crate) struct NamesCache(Cache<Vec<u64>, Arc<Names>>);

impl Default for NamesCache {
    fn default() -> Self {
        Self(Cache::new(MAX_TABLES))
    }
}

impl NamesCache {
    fn get(&self, catalog: &Catalog, project: ProjectId) -> Result<Arc<Names>, ApiError> {
        let providers = catalog.providers();
        let sources: Vec<_> = providers.iter().map(|provider| catalog.source(provider.key)).collect::<Result<_, _>>()?;
        let editions: Vec<u64> = sources.iter().map(|source| source.edition(project)).collect();
        if let Some(names) = self.0.get(&editions) {
            return Ok(names);
        }
        let integrations: Vec<Arc<Integration>> = sources.iter().flat_map(|source| source.integrations(project)).collect();
        let names = Arc::new(in_place(integrations.len() * TOOLKIT_WEIGHT, move || Names::of(integrations)));
        // A list that became another one meanwhile is not kept under the old edition.
        if sources.iter().zip(&editions).all(|(source, edition)| source.edition(project) == *edition) {
            self.0.insert(editions, names.clone());
        }
        Ok(names)
    }
}

impl ComposioApi {
    /// The slugs of everything that a project can use.
    #[kernel::boxed]
    pub async fn names(&self, scope: Scope) -> Result<Arc<Names>, ApiError> {
        let catalog = &self.parts().catalog;
        for provider in catalog.providers() {
            // A provider that is away must not take the others with it.
            if let Err(error) = catalog.reach(provider.key, Reach::List).await {
                tracing::debug!(provider = provider.key, %error, "the list of a provider is not there");
            }
        }
        self.0.names.get(catalog, scope.project)
    }

    /// The toolkit that a caller named, with all of its tools.
    #[kernel::boxed]
    pub async fn toolkit(&self, scope: Scope, slug: &str) -> Result<Arc<Toolkit>, ApiError> {
        let toolkit = self.names(scope).await?.toolkit(slug)?.clone();
        self.reach(&toolkit).await?;
        Ok(self.names(scope).await?.toolkit(slug)?.clone())
    }

    /// The tool that a caller named, also where its provider lists it only when it is asked for.
    #[kernel::boxed]
    pub async fn tool(&self, scope: Scope, slug: &str) -> Result<Tool, ApiError> {
        let names = self.names(scope).await?;
        if let Some(tool) = names.find_tool(slug) {
            return Ok(tool);
        }
        for toolkit in names.owners(slug) {
            self.reach(toolkit).await?;
        }
        Ok(self.names(scope).await?.tool(slug)?)
    }

    /// The same for an event.
    #[kernel::boxed]
    pub async fn event(&self, scope: Scope, slug: &str) -> Result<TriggerType, ApiError> {
        let names = self.names(scope).await?;
        if let Some(kind) = names.find_trigger_type(slug) {
            return Ok(kind);
        }
        for toolkit in names.owners(slug) {
            self.reach(toolkit).await?;
        }
        Ok(self.names(scope).await?.trigger_type(slug)?)
    }

    async fn reach(&self, toolkit: &Toolkit) -> Result<(), ApiError> {
        let Integration { provider, key, .. } = &*toolkit.integration;
        Ok(self.parts().catalog.reach(provider, Reach::Integration(key)).await?)
    }
}

#[cfg(test)]
mod tests {
    use catalog::Draft;
    use serde_json::json;

    use super::*;

    fn integration(provider: &'static str, key: &str, actions: &[&str]) -> Arc<Integration> {
        let action = |key: &&str| Action::new((*key).to_owned(), String::new(), String::new(), &json!({}));
        let draft = Draft { key: key.to_owned(), actions: actions.iter().map(action).collect(), ..Draft::default() };
        Arc::new(Integration::new(provider, draft))
    }

    #[test]
    fn slugs_lead_both_ways_in_any_case() {
        let names =
            Names::of(vec![integration("native", "google-calendar", &["LIST_EVENTS"]), integration("openapi", "my-api", &["create_note"])]);
        for slug in ["GOOGLECALENDAR_LIST_EVENTS", "googlecalendar_list_events"] {
            let tool = names.tool(slug).unwrap();
            assert_eq!((tool.slug(), tool.action().key.as_str()), ("GOOGLECALENDAR_LIST_EVENTS", "LIST_EVENTS"));
        }
        assert_eq!(names.toolkit("GoogleCalendar").unwrap().integration.key, "google-calendar");
        let own = names.toolkit_of("openapi", "my-api").unwrap();
        assert_eq!((own.slug.as_str(), own.tool("create_note").unwrap().slug()), ("myapi", "MYAPI_CREATE_NOTE"));
        let unknown = names.tool("MYAPI_CREATE_NOTES").unwrap_err();
        assert_eq!((unknown.status, unknown.code), (404, 2401));
        assert!(unknown.message.ends_with("Did you mean `MYAPI_CREATE_NOTE`?"), "{unknown}");
        assert_eq!(names.toolkit("gogle").unwrap_err().status, 404);
    }

    #[test]
    fn one_slug_means_one_thing() {
        let names = Names::of(vec![
            integration("native", "github", &["A"]),
            integration("openapi", "git-hub", &["A"]),
            integration("openapi", "my-api", &["B-C", "b_c"]),
            integration("openapi", "myapi", &["B_C"]),
            integration("mcp", "composio", &["A"]),
            integration("composio", "github", &["A"]),
        ]);
        let slug = |provider: &str, key: &str| names.toolkit_of(provider, key).unwrap().slug.clone();
        assert_eq!(slug("native", "github"), "github");
        assert_eq!(slug("openapi", "git-hub"), "github_openapi");
        assert_eq!(slug("composio", "github"), "github_composio");
        assert_eq!(slug("mcp", "composio"), "composio_mcp", "a reserved slug is nobody's");
        assert_eq!(slug("openapi", "myapi"), "myapi", "whose key it is keeps it");
        assert_eq!(slug("openapi", "my-api"), "myapi_openapi");
        let mut all: Vec<String> = names.toolkits().iter().flat_map(Toolkit::tools).map(|tool| tool.slug().to_owned()).collect();
        assert_eq!(all.len(), 7);
        for slug in &all {
            assert_eq!(names.tool(slug).unwrap().slug(), slug);
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 7, "{all:?}");
    }

    #[test]
    fn a_long_slug_ends_in_a_digest() {
        let long = "x".repeat(80);
        let other = format!("{long}y");
        let names = Names::of(vec![integration("openapi", "api", &[&long, &other])]);
        let slugs: Vec<String> = names.toolkits()[0].tools().map(|tool| tool.slug().to_owned()).collect();
        assert_ne!(slugs[0], slugs[1]);
        for slug in slugs {
            assert!(
                slug.len() == MAX_SLUG && slug.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'),
                "{slug}"
            );
            assert_eq!(names.tool(&slug).unwrap().slug(), slug);
        }
    }
}
