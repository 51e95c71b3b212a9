//! The answer of a discovery, as it goes over the wire.

use std::sync::Arc;

use catalog::search::{Kind, Reasons};
use catalog::{Action, Found, Integration, Item};
use connections::Connection;
use kernel::json::Document;
use kernel::{ConnectionId, ProjectId};
use serde::Serialize;
use serde_json::{Value, json};

use super::Guidance;
use super::merge::Choice;

/// The types of what is found; the first is a tool's in an agent's configuration.
const GATEWAY: &str = "gateway";
const TRIGGER: &str = "trigger";

/// What fits.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Discovered {
    /// One per use case, in the order of the request.
    pub capabilities: Vec<Capability>,
    /// One per integration that is named above.
    pub connections: Vec<IntegrationState>,
    pub guidance: Guidance,
    /// Whether every use case has something that can be used now.
    pub ready: bool,
    pub notes: Vec<String>,
}

/// What fits one use case.
#[derive(Clone, Debug, Serialize)]
pub struct Capability {
    pub use_case: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integration: Option<String>,
    #[serde(flatten)]
    pub target: Option<Target>,
    pub alternatives: Vec<Alternative>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<State>,
    /// How hard the provider says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<String>,
    /// The event to subscribe to, where tools were asked for and the use case waits for something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<EventFound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(flatten)]
    pub why: Option<Why>,
}

impl Capability {
    pub(super) fn new(use_case: &str) -> Self {
        Self {
            use_case: use_case.to_owned(),
            integration: None,
            target: None,
            alternatives: Vec::new(),
            connection: None,
            difficulty: None,
            trigger: None,
            note: None,
            why: None,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.target.is_some() && self.connection.as_ref().is_some_and(|state| state.state == READY)
    }
}

/// The best of what fits.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Tool(ToolFound),
    Event(EventFound),
}

impl Target {
    pub(super) fn new(found: &Found, connection: Option<String>) -> Self {
        match &found.item {
            Item::Action(action) => Self::Tool(ToolFound::new(&found.integration, action, connection)),
            Item::Event(event) => Self::Event(EventFound::new(found, event)),
        }
    }
}

/// A tool, ready to be put into an agent's configuration.
#[derive(Clone, Debug, Serialize)]
pub struct ToolFound {
    pub r#type: &'static str,
    pub provider: &'static str,
    pub integration: String,
    pub action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    pub input_schema: Value,
    pub description: String,
    pub provider_action: String,
}

impl ToolFound {
    pub fn new(integration: &Integration, action: &Action, connection: Option<String>) -> Self {
        Self {
            r#type: GATEWAY,
            provider: integration.provider,
            integration: integration.key.clone(),
            action: action.key.clone(),
            connection,
            input_schema: action.input_schema.value(),
            description: action.description.clone(),
            provider_action: action.provider_key().to_owned(),
        }
    }
}

/// An event, ready to be subscribed to.
#[derive(Clone, Debug, Serialize)]
pub struct EventFound {
    pub r#type: &'static str,
    pub provider: &'static str,
    pub integration: String,
    pub event_key: String,
    pub trigger_config: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    pub description: String,
    pub provider_event: String,
}

impl EventFound {
    pub(super) fn of(found: &Found) -> Option<Self> {
        match &found.item {
            Item::Action(_) => None,
            Item::Event(event) => Some(Self::new(found, event)),
        }
    }

    fn new(found: &Found, event: &catalog::Event) -> Self {
        Self {
            r#type: TRIGGER,
            provider: found.integration.provider,
            integration: found.integration.key.clone(),
            event_key: event.key.clone(),
            trigger_config: event.config_schema.value(),
            payload: event.payload_schema.as_ref().map(Document::value),
            description: event.description.clone(),
            provider_event: event.key.clone(),
        }
    }
}

/// Something else that fits: a tool goes into an agent's configuration as it is.
#[derive(Clone, Debug, Serialize)]
pub struct Alternative {
    pub r#type: &'static str,
    pub provider: &'static str,
    pub integration: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    #[serde(flatten)]
    pub key: AlternativeKey,
    pub description: String,
    #[serde(flatten)]
    pub why: Option<Why>,
}

/// How the wire names an alternative.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum AlternativeKey {
    Action { action: String, provider_action: String },
    Event { event_key: String, provider_event: String },
}

impl Alternative {
    pub(super) fn new(choice: &Choice, connection: Option<String>, debug: bool) -> Self {
        let found = &choice.found;
        let key = found.item.key().to_owned();
        let (r#type, key) = match &found.item {
            Item::Action(action) => (GATEWAY, AlternativeKey::Action { action: key, provider_action: action.provider_key().to_owned() }),
            Item::Event(_) => (TRIGGER, AlternativeKey::Event { event_key: key.clone(), provider_event: key }),
        };
        Self {
            r#type,
            provider: found.integration.provider,
            integration: found.integration.key.clone(),
            connection,
            key,
            description: found.item.description().to_owned(),
            why: debug.then(|| Why::of(choice)),
        }
    }
}

/// How sure an answer is, and what each piece of evidence added to its score.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// The provider whose own search suggested it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_by: Option<&'static str>,
    #[serde(flatten)]
    pub evidence: Option<Evidence>,
}

/// What our own search has to say for an answer; nothing, where it did not find it.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    pub confidence: f64,
    pub score: f64,
    pub reasons: Value,
}

impl Why {
    pub(super) fn of(Choice { found, suggested_by }: &Choice) -> Self {
        Self { suggested_by: *suggested_by, evidence: (found.score > 0.0).then(|| Evidence::of(found)) }
    }
}

impl Evidence {
    fn of(found: &Found) -> Self {
        let Reasons { words, meaning, example, name, app, verb, event, prior } = found.reasons;
        let all = [
            ("words", words),
            ("meaning", meaning),
            ("example", example),
            ("name", name),
            ("app", app),
            ("verb", verb),
            ("event", event),
            ("prior", prior),
        ];
        let reasons = all.into_iter().filter(|(_, value)| *value != 0.0).map(|(name, value)| (name.to_owned(), json!(rounded(value))));
        Self { confidence: rounded(found.confidence), score: rounded(found.score), reasons: Value::Object(reasons.collect()) }
    }
}

fn rounded(value: f32) -> f64 {
    (f64::from(value) * 1000.0).round() / 1000.0
}

const READY: &str = "ready";
const NEEDS_INPUT: &str = "needs_input";
const NEEDS_AUTH: &str = "needs_auth";

/// Whether an integration can be used now, and through which connection.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ConnectionId>,
    /// Why the connection that is there should be connected again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl State {
    /// The newest usable connection, one that its service refuses only if there is no other, or what it takes to get one. Calls can do with
    /// an implicit connection, subscriptions need a row.
    pub(super) fn of(integration: &Integration, kind: Kind, project: ProjectId, rows: &[Connection]) -> Self {
        let row = rows_of(integration, rows).find(|row| row.is_usable());
        if let Some(row) = row.filter(|row| !row.is_failing()) {
            return Self { state: READY, slug: Some(row.slug.clone()), id: Some(row.id), failure: None };
        }
        let implicit = Connection::implicit_beside(project, integration, rows);
        if let (Kind::Action, Some(implicit)) = (kind, &implicit) {
            return Self { state: READY, slug: Some(implicit.slug.clone()), id: None, failure: None };
        }
        let schemes = integration.wire_schemes();
        let state = match () {
            () if implicit.is_some() => READY,
            () if schemes.contains(&"api_key") && !schemes.contains(&"oauth") => NEEDS_INPUT,
            () => NEEDS_AUTH,
        };
        Self { state, slug: row.map(|row| row.slug.clone()), id: row.map(|row| row.id), failure: row.and_then(|row| row.failure.clone()) }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.state == READY
    }
}

/// The state of an integration, with the request that connects it.
#[derive(Clone, Debug, Serialize)]
pub struct IntegrationState {
    pub provider: &'static str,
    pub integration: String,
    #[serde(flatten)]
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<Connect>,
}

/// The request that makes a connection.
#[derive(Clone, Debug, Serialize)]
pub struct Connect {
    pub endpoint: &'static str,
    pub body: Value,
}

/// An integration that an answer names, and whether for an event.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) integration: Arc<Integration>,
    pub(super) kind: Kind,
}

impl IntegrationState {
    pub(super) fn of(seen: &Seen, project: ProjectId, rows: &[Connection], endpoint: &'static str) -> Self {
        let integration = &seen.integration;
        let state = State::of(integration, seen.kind, project, rows);
        let connect = state.slug.is_none().then(|| {
            let slug = free_slug(integration, rows);
            let mut connection = json!({"provider_key": integration.provider, "integration_key": integration.key, "slug": slug});
            if state.state == NEEDS_INPUT {
                connection["data"] = json!({"auth_scheme": "api_key"});
            }
            Connect { endpoint, body: json!({"connection": connection}) }
        });
        Self { provider: integration.provider, integration: integration.key.clone(), state, connect }
    }
}

fn rows_of<'a>(integration: &'a Integration, rows: &'a [Connection]) -> impl Iterator<Item = &'a Connection> {
    rows.iter().filter(|row| row.provider == integration.provider && row.integration == integration.key)
}

/// `{integration}-main`, or the first of `-main-2`, `-main-3` and so on that is free.
fn free_slug(integration: &Integration, rows: &[Connection]) -> String {
    let is_free = |slug: &String| rows_of(integration, rows).all(|row| row.slug != *slug);
    let first = Connection::usual_slug(&integration.key);
    let numbered = (2..=rows.len() + 2).map(|number| format!("{first}-{number}"));
    std::iter::once(first.clone()).chain(numbered).find(is_free).unwrap_or(first)
}
