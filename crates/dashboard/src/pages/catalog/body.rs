//! What the API says of integrations, and how they are asked for.

use serde::Deserialize;
use serde_json::Value;

use crate::path::Path;
use crate::refusal::Refusal;
use crate::ui::{Markup, Tone, badge};
use crate::visit::Visit;

const CATALOG: &str = "/tools/catalog/providers";

/// Something that integrations come from.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Provider {
    pub(crate) key: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) integrations_count: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Category {
    pub(crate) id: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Integration {
    pub(crate) key: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) categories: Vec<String>,
    url: Option<String>,
    #[serde(default)]
    pub(crate) actions_count: u64,
    #[serde(default)]
    pub(crate) events_count: u64,
    #[serde(default)]
    auth_schemes: Vec<String>,
    #[serde(default)]
    pub(crate) auth: Vec<Auth>,
}

/// One way to connect.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Auth {
    pub(crate) scheme: String,
    #[serde(default)]
    pub(crate) fields: Vec<AuthField>,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
}

/// Something that a person is asked for.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AuthField {
    pub(crate) name: String,
    pub(crate) label: Option<String>,
    pub(crate) help: Option<String>,
    pub(crate) secret: bool,
    pub(crate) required: bool,
}

/// A page of integrations.
#[derive(Debug, Deserialize)]
pub(crate) struct IntegrationsAnswer {
    pub(crate) total: u64,
    pub(crate) cursor: Option<String>,
    pub(crate) integrations: Vec<Integration>,
}

/// What narrows a list of integrations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) provider: &'a str,
    pub(crate) search: Option<&'a str>,
    pub(crate) category: Option<&'a str>,
    pub(crate) cursor: Option<&'a str>,
    pub(crate) limit: u32,
}

impl Integration {
    /// Where the service is on the web.
    pub(crate) fn home(&self) -> Option<&str> {
        self.url.as_deref().and_then(web_address)
    }

    /// How an account is connected, in a few words.
    pub(crate) fn connects_by(&self) -> String {
        let words: Vec<&str> = self.auth_schemes.iter().map(|scheme| scheme_words(scheme)).collect();
        if words.is_empty() { "No account needed".to_owned() } else { words.join(" or ") }
    }

    pub(crate) fn has_oauth(&self) -> bool {
        self.auth.iter().any(Auth::is_oauth)
    }

    pub(crate) fn scheme(&self, name: &str) -> Option<&Auth> {
        self.auth.iter().find(|auth| auth.scheme == name)
    }
}

impl Auth {
    pub(crate) fn words(&self) -> &str {
        scheme_words(&self.scheme)
    }

    pub(crate) fn is_oauth(&self) -> bool {
        self.scheme == "oauth2"
    }

    pub(crate) fn is_none(&self) -> bool {
        self.scheme == "none"
    }
}

impl AuthField {
    pub(crate) fn title(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }
}

/// A scheme as people call it.
pub(crate) fn scheme_words(scheme: &str) -> &str {
    match scheme {
        "oauth" | "oauth2" => "OAuth",
        "client_credentials" => "Client id and secret",
        "bearer" => "Token",
        "basic" => "User name and password",
        "api_key" => "API key",
        "none" => "No account needed",
        other => other,
    }
}

/// An address that may be linked to: any other kind could run something.
pub(crate) fn web_address(text: &str) -> Option<&str> {
    Some(text).filter(|text| text.starts_with("https://") || text.starts_with("http://"))
}

/// What an action does to the service.
pub(crate) fn effect(read_only: bool, destructive: bool) -> Markup {
    match (read_only, destructive) {
        (true, _) => badge(Tone::Plain, "reads"),
        (false, true) => badge(Tone::Bad, "destructive"),
        (false, false) => badge(Tone::Wait, "changes"),
    }
}

pub(crate) fn provider_path(provider: &str) -> Path {
    Path::new(CATALOG).at(provider)
}

pub(crate) fn integration_path(provider: &str, integration: &str) -> Path {
    provider_path(provider).at("integrations").at(integration)
}

/// The page of an integration.
pub(crate) fn integration_page(visit: &Visit, provider: &str, integration: &str) -> Path {
    visit.page("catalog").at(provider).at(integration)
}

pub(crate) async fn providers(visit: &Visit) -> Result<Vec<Provider>, Refusal> {
    #[derive(Deserialize)]
    struct Answer {
        providers: Vec<Provider>,
    }
    visit.get::<Answer>(Path::new(CATALOG)).await.map(|answer| answer.providers)
}

pub(crate) async fn categories(visit: &Visit, provider: &str) -> Result<Vec<Category>, Refusal> {
    #[derive(Deserialize)]
    struct Answer {
        categories: Vec<Category>,
    }
    visit.get::<Answer>(provider_path(provider).at("categories")).await.map(|answer| answer.categories)
}

pub(crate) async fn integrations(visit: &Visit, wanted: Wanted<'_>) -> Result<IntegrationsAnswer, Refusal> {
    let path = provider_path(wanted.provider)
        .at("integrations")
        .with("limit", wanted.limit)
        .with_some("search", wanted.search)
        .with_some("category", wanted.category)
        .with_some("cursor", wanted.cursor);
    visit.get(path).await
}

pub(crate) async fn integration(visit: &Visit, provider: &str, key: &str) -> Result<Integration, Refusal> {
    #[derive(Deserialize)]
    struct Answer {
        integration: Integration,
    }
    visit.get::<Answer>(integration_path(provider, key)).await.map(|answer| answer.integration)
}

/// An action; a list leaves out what only its own page shows.
#[derive(Debug, Deserialize)]
pub(super) struct Action {
    pub(super) key: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) categories: Vec<String>,
    #[serde(default)]
    pub(super) read_only: bool,
    #[serde(default)]
    pub(super) destructive: bool,
    pub(super) schemas: Option<Schemas>,
    pub(super) scopes: Option<Vec<String>>,
    pub(super) pagination: Option<Value>,
    #[serde(default)]
    pub(super) use_cases: Vec<String>,
    #[serde(default)]
    pub(super) pitfalls: Vec<String>,
}

impl Action {
    pub(super) fn effect(&self) -> Markup {
        effect(self.read_only, self.destructive)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Schemas {
    #[serde(default)]
    pub(super) inputs: Value,
    pub(super) outputs: Option<Value>,
}

/// An event; a list leaves out what only its own page shows.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    pub(super) key: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) categories: Vec<String>,
    pub(super) trigger_config: Option<Value>,
    pub(super) payload: Option<Value>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_addresses_of_the_web_are_linked() {
        assert_eq!(web_address("https://example.com"), Some("https://example.com"));
        assert_eq!(["javascript:alert(1)", "data:text/html,x", "//example.com", ""].map(web_address), [None; 4]);
    }

    #[test]
    fn an_integration_says_how_it_is_connected() {
        let read = |value| serde_json::from_value::<Integration>(value).unwrap();
        assert_eq!(read(json!({"key": "a", "name": "A", "auth_schemes": ["oauth", "api_key"]})).connects_by(), "OAuth or API key");
        assert_eq!(read(json!({"key": "a", "name": "A"})).connects_by(), "No account needed");
    }
}
