//! The model: provider, integration, action, event.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};

use kernel::hex;
use kernel::json::Document;
use kernel::schema::{Schema, SchemaError, Violation};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::auth::AuthScheme;
use crate::search::Index;
use crate::{CatalogError, Missing};

/// Of how many parameters the descriptions are searched, and how many characters of each.
const MOST_DESCRIBED: usize = 12;
const MOST_OF_A_DESCRIPTION: usize = 120;

/// Who brings integrations: `native` and its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    pub key: &'static str,
    pub name: &'static str,
    pub description: &'static str,
}

/// A category of integrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Category {
    pub id: String,
    pub name: String,
}

/// A service whose accounts can be connected.
#[derive(Debug)]
pub struct Integration {
    pub provider: &'static str,
    pub key: String,
    pub name: String,
    pub description: String,
    pub url: Option<String>,
    pub logo: Option<String>,
    pub categories: Vec<String>,
    pub aliases: Vec<String>,
    pub auth: Vec<Arc<AuthScheme>>,
    pub rate_limit: Option<RateLimit>,
    pub actions: Vec<Arc<Action>>,
    pub events: Vec<Arc<Event>>,
    index: HashMap<String, usize>,
    pub(crate) words: OnceLock<Index>,
    version: OnceLock<String>,
    /// What its provider runs it with; nobody else can read it.
    service: Option<Arc<dyn Any + Send + Sync>>,
}

/// How often one account may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub requests: u32,
    pub seconds: u32,
}

/// What an integration is, before its parts are indexed.
#[derive(Debug, Default)]
pub struct Draft {
    pub key: String,
    pub name: String,
    pub description: String,
    pub url: Option<String>,
    pub logo: Option<String>,
    pub categories: Vec<String>,
    pub aliases: Vec<String>,
    pub auth: Vec<AuthScheme>,
    pub rate_limit: Option<RateLimit>,
    pub actions: Vec<Action>,
    pub events: Vec<Event>,
}

impl Integration {
    pub fn new(provider: &'static str, draft: Draft) -> Self {
        let index = draft.actions.iter().enumerate().map(|(position, action)| (action.key.clone(), position)).collect();
        Self {
            provider,
            key: draft.key,
            name: draft.name,
            description: draft.description,
            url: draft.url,
            logo: draft.logo,
            categories: draft.categories,
            aliases: draft.aliases,
            auth: draft.auth.into_iter().map(Arc::new).collect(),
            rate_limit: draft.rate_limit,
            actions: draft.actions.into_iter().map(Arc::new).collect(),
            events: draft.events.into_iter().map(Arc::new).collect(),
            index,
            words: OnceLock::new(),
            version: OnceLock::new(),
            service: None,
        }
    }

    /// The integration with what its provider runs it with, so that both are always of the same edition.
    #[must_use]
    pub fn served_by(mut self, service: impl Any + Send + Sync) -> Self {
        self.service = Some(Arc::new(service));
        self
    }

    /// What its provider runs it with.
    pub fn service<T: Any>(&self) -> Option<&T> {
        self.service.as_ref()?.downcast_ref()
    }

    pub fn action(&self, key: &str) -> Option<&Arc<Action>> {
        self.position(key).map(|position| &self.actions[position])
    }

    /// The action that somebody named, or the nearest to it in an error.
    pub fn known_action(&self, key: &str) -> Result<&Arc<Action>, CatalogError> {
        let all = self.actions.iter().map(|action| action.key.as_str());
        self.action(key).ok_or_else(|| CatalogError::UnknownAction(Missing::new(key, all)))
    }

    /// The event that somebody named, or the nearest to it in an error.
    pub fn known_event(&self, key: &str) -> Result<&Arc<Event>, CatalogError> {
        let all = self.events.iter().map(|event| event.key.as_str());
        self.event(key).ok_or_else(|| CatalogError::UnknownEvent(Missing::new(key, all)))
    }

    /// Changes with what can be called: the actions, their schemas, and whether they only read.
    pub fn version(&self) -> &str {
        self.version.get_or_init(|| {
            let mut actions: Vec<&Arc<Action>> = self.actions.iter().collect();
            actions.sort_by(|one, other| one.key.cmp(&other.key));
            let mut digest = Sha256::new();
            for action in actions {
                for part in [action.key.as_str(), action.input_schema.text()] {
                    digest.update(part.len().to_be_bytes());
                    digest.update(part);
                }
                digest.update([u8::from(action.read_only), u8::from(action.destructive)]);
            }
            hex::encode(&digest.finalize()[..6])
        })
    }

    /// The place of an action among all.
    pub fn position(&self, key: &str) -> Option<usize> {
        self.index.get(key).copied()
    }

    pub fn event(&self, key: &str) -> Option<&Arc<Event>> {
        self.events.iter().find(|event| event.key == key)
    }

    /// The ways to connect, the preferred one first.
    pub fn schemes(&self) -> impl Iterator<Item = &AuthScheme> + Clone {
        self.auth.iter().map(|scheme| &**scheme)
    }

    /// Whether it works without any account.
    pub fn is_no_auth(&self) -> bool {
        self.schemes().all(|scheme| matches!(scheme, AuthScheme::None(_)))
    }

    /// The ways to connect as the wire names them, without repetition.
    pub fn wire_schemes(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for name in self.schemes().filter_map(AuthScheme::wire_name) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// Something that can be called.
pub struct Action {
    pub key: String,
    /// How the provider itself names it, where that is another name.
    pub remote: Option<String>,
    pub name: String,
    pub description: String,
    pub use_cases: Vec<String>,
    pub input_schema: Document,
    pub output_schema: Option<Document>,
    pub scopes: Vec<String>,
    /// Its own categories, where it has others than its integration.
    pub categories: Vec<String>,
    pub read_only: bool,
    pub destructive: bool,
    /// How often people mean it when they mean its integration, from 0 to 1, where the provider says so.
    pub usage: Option<f32>,
    pub pitfalls: Vec<String>,
    /// Parameters whose values another action finds.
    pub lookups: Vec<(String, String)>,
    pub pagination: Option<Document>,
    checker: OnceLock<Result<Schema, SchemaError>>,
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Action").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Action {
    pub fn new(key: String, name: String, description: String, input_schema: &Value) -> Self {
        Self {
            key,
            remote: None,
            name,
            description,
            input_schema: input_schema.into(),
            use_cases: Vec::new(),
            output_schema: None,
            scopes: Vec::new(),
            categories: Vec::new(),
            read_only: false,
            destructive: false,
            usage: None,
            pitfalls: Vec::new(),
            lookups: Vec::new(),
            pagination: None,
            checker: OnceLock::new(),
        }
    }

    /// The provider's own name for it.
    pub fn provider_key(&self) -> &str {
        self.remote.as_deref().unwrap_or(&self.key)
    }

    /// What it is about: its own categories, or else those of its integration.
    pub fn categories<'a>(&'a self, integration: &'a Integration) -> &'a [String] {
        if self.categories.is_empty() { &integration.categories } else { &self.categories }
    }

    /// The names of its parameters.
    pub(crate) fn parameters(&self) -> Vec<String> {
        let named = self.input_schema.read::<Parameters>();
        named.into_iter().flat_map(|named| named.properties.into_keys()).collect()
    }

    /// What its schema says of its parameters, as much of it as helps to find the action.
    pub(crate) fn about_parameters(&self) -> String {
        let described = self.input_schema.read::<DescribedParameters>();
        let texts = described.into_iter().flat_map(|described| described.properties.into_values()).filter_map(|one| match one {
            Described::Text { description } => Some(description),
            Described::Other(_) => None,
        });
        texts.take(MOST_DESCRIBED).map(|text| text.chars().take(MOST_OF_A_DESCRIPTION).collect::<String>()).collect::<Vec<_>>().join(" ")
    }

    /// About how much work it is to check arguments, in bytes to look at; what is more than `most` is not counted to its end.
    pub fn weigh(&self, arguments: &Value, most: usize) -> usize {
        match self.checker.get() {
            Some(Ok(schema)) => schema.weigh(arguments, most),
            Some(Err(_)) => 0,
            None => most,
        }
    }

    /// Checks arguments against the input schema, which is compiled at the first call.
    pub fn check(&self, arguments: &Value) -> Result<(), Vec<Violation>> {
        match self.checker.get_or_init(|| Schema::compile(&self.input_schema.value())) {
            Ok(schema) => schema.check(arguments),
            Err(error) => Err(vec![Violation { path: String::new(), message: format!("the action's own schema is broken: {error}") }]),
        }
    }
}

/// As much of a schema as names parameters.
#[derive(Deserialize)]
struct Parameters {
    #[expect(clippy::zero_sized_map_values, reason = "the values are skipped, not kept")]
    properties: BTreeMap<String, IgnoredAny>,
}

/// As much of a schema as describes parameters.
#[derive(Deserialize)]
struct DescribedParameters {
    properties: BTreeMap<String, Described>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Described {
    Text { description: String },
    Other(IgnoredAny),
}

/// Something that can be watched.
#[derive(Debug)]
pub struct Event {
    pub key: String,
    pub name: String,
    pub description: String,
    pub use_cases: Vec<String>,
    pub config_schema: Document,
    pub payload_schema: Option<Document>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_version_is_that_of_what_can_be_called() {
        let action = |key: &str, schema: Value| Action::new(key.to_owned(), key.to_owned(), "x".to_owned(), &schema);
        let made = |actions: Vec<Action>| Integration::new("native", Draft { key: "x".to_owned(), actions, ..Draft::default() });
        let one = made(vec![action("A", json!({})), action("B", json!({"a": 1}))]);
        assert_eq!(one.version(), made(vec![action("B", json!({"a": 1})), action("A", json!({}))]).version());
        let reads = Action { read_only: true, ..action("A", json!({})) };
        for other in [
            made(vec![action("A", json!({}))]),
            made(vec![action("A", json!({"a": 1})), action("B", json!({}))]),
            made(vec![reads, action("B", json!({"a": 1}))]),
        ] {
            assert_ne!(one.version(), other.version());
        }
        assert_eq!(one.version().len(), 12);
    }

    #[test]
    fn parameters_are_named_whatever_the_schema_is() {
        for (schema, names) in [
            (json!({"type": "object", "properties": {"to": {"type": "string"}, "cc": {"properties": {"x": {}}}}}), &["cc", "to"][..]),
            (json!({"type": "object"}), &[]),
            (json!({"properties": true}), &[]),
            (json!(true), &[]),
        ] {
            let action = Action::new(String::new(), String::new(), String::new(), &schema);
            assert_eq!(action.parameters(), names, "{schema}");
        }
    }

    #[test]
    fn descriptions_of_parameters_are_read_whatever_the_schema_is() {
        let long = "x".repeat(1000);
        for (schema, about) in [
            (
                json!({"properties": {"a": {"description": "Who gets it"}, "b": {"description": 7}, "c": true, "d": {"type": "string"}}}),
                "Who gets it",
            ),
            (json!({"properties": {"a": {"description": long}}}), &long[..MOST_OF_A_DESCRIPTION]),
            (json!({"properties": []}), ""),
            (json!(true), ""),
        ] {
            assert_eq!(Action::new(String::new(), String::new(), String::new(), &schema).about_parameters(), about, "{schema}");
        }
    }
}
