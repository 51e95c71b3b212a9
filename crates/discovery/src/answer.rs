//! The answer of a discovery: what goes over the wire, and what the API's document says of it.

use std::sync::Arc;

use catalog::search::Kind;
use catalog::{Action, Event, Found, Integration, Item};
use connections::{AccountsOf, Connection};
use document::ToSchema;
use kernel::ConnectionId;
use kernel::json::Document;
use serde::Serialize;
use serde_json::Value;

use crate::guidance::Guidance;
use crate::merge::Choice;
use crate::next_step::{Addresses, ConnectDraft, NextStep, RequestDraft};

/// The types of what is found; the first is a tool's in an agent's configuration.
const GATEWAY: &str = "gateway";
const TRIGGER: &str = "trigger";

/// The tools that fit each use case, in the order of the request.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscoveredTools {
    pub capabilities: Vec<ToolCapability>,
    /// One per integration that is named in `capabilities`.
    pub connections: Vec<IntegrationState>,
    pub guidance: Guidance,
    /// Whether every use case has a tool that can be called now.
    pub ready: bool,
    pub notes: Vec<String>,
}

/// The events that fit each use case, in the order of the request.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscoveredEvents {
    pub capabilities: Vec<EventCapability>,
    /// One per integration that is named in `capabilities`.
    pub connections: Vec<IntegrationState>,
    pub guidance: Guidance,
    /// Whether every use case has an event that can be subscribed to now.
    pub ready: bool,
    pub notes: Vec<String>,
}

/// What fits one use case; without `tool` when nothing does, when the use case is too vague to choose, and when it waits for an event.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCapability {
    pub use_case: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<FoundTool>,
    /// What the use case goes on with after the tool, in order, where it says more than one thing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<Vec<FoundTool>>,
    pub alternatives: Vec<AlternativeTool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionState>,
    /// How hard the provider's own search says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "easy")]
    pub difficulty: Option<String>,
    /// The event to subscribe to, where the use case waits for something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<FoundEvent>,
    /// How likely the tool, or the event of a use case that waits, is what is meant, from 0 to 1; none where only a provider's search found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The provider whose own search suggested the tool; with `debug`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Reasons>,
}

impl ToolCapability {
    pub(crate) fn is_ready(&self) -> bool {
        self.tool.is_some() && self.connection.as_ref().is_some_and(ConnectionState::is_ready)
    }
}

/// What fits one use case; without `event` when nothing does.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EventCapability {
    pub use_case: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<FoundEvent>,
    pub alternatives: Vec<AlternativeEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionState>,
    /// How likely the event is what is meant, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Reasons>,
}

impl EventCapability {
    pub(crate) fn is_ready(&self) -> bool {
        self.event.is_some() && self.connection.as_ref().is_some_and(ConnectionState::is_ready)
    }
}

/// A tool, ready to be put into an agent's configuration.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FoundTool {
    #[schema(example = "gateway")]
    pub r#type: &'static str,
    pub provider: &'static str,
    pub integration: String,
    pub action: String,
    /// The connection to call it through, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    #[schema(value_type = Object)]
    pub input_schema: Value,
    pub description: String,
    pub provider_action: String,
}

impl FoundTool {
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

    pub(crate) fn of(found: &Found, connection: Option<String>) -> Option<Self> {
        let Item::Action(action) = &found.item else { return None };
        Some(Self::new(&found.integration, action, connection))
    }
}

/// An event, ready to be subscribed to.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FoundEvent {
    #[schema(example = "trigger")]
    pub r#type: &'static str,
    pub provider: &'static str,
    pub integration: String,
    pub event_key: String,
    /// The JSON Schema of what a subscription has to say.
    #[schema(value_type = Object)]
    pub trigger_config: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub payload: Option<Value>,
    pub description: String,
    pub provider_event: String,
}

impl FoundEvent {
    fn new(integration: &Integration, event: &Event) -> Self {
        Self {
            r#type: TRIGGER,
            provider: integration.provider,
            integration: integration.key.clone(),
            event_key: event.key.clone(),
            trigger_config: event.config_schema.value(),
            payload: event.payload_schema.as_ref().map(Document::value),
            description: event.description.clone(),
            provider_event: event.key.clone(),
        }
    }

    pub(crate) fn of(found: &Found) -> Option<Self> {
        let Item::Event(event) = &found.item else { return None };
        Some(Self::new(&found.integration, event))
    }
}

/// Another tool that fits, ready to be put into an agent's configuration.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlternativeTool {
    #[schema(example = "gateway")]
    pub r#type: &'static str,
    pub provider: &'static str,
    pub integration: String,
    /// The connection to call it through, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    pub action: String,
    pub provider_action: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Reasons>,
}

impl AlternativeTool {
    pub(crate) fn of(choice: &Choice, connection: Option<String>, debug: bool) -> Option<Self> {
        let (Item::Action(action), integration) = (&choice.found.item, &choice.found.integration) else { return None };
        let evidence = Evidence::of(choice, debug);
        Some(Self {
            r#type: GATEWAY,
            provider: integration.provider,
            integration: integration.key.clone(),
            connection,
            action: action.key.clone(),
            provider_action: action.provider_key().to_owned(),
            description: choice.found.item.description().to_owned(),
            confidence: debug.then(|| choice.confidence()).flatten(),
            suggested_by: evidence.suggested_by,
            score: evidence.score,
            reasons: evidence.reasons,
        })
    }
}

/// Another event that fits.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlternativeEvent {
    #[schema(example = "trigger")]
    pub r#type: &'static str,
    pub provider: &'static str,
    pub integration: String,
    /// The connection to watch, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    pub event_key: String,
    pub provider_event: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Reasons>,
}

impl AlternativeEvent {
    pub(crate) fn of(choice: &Choice, connection: Option<String>, debug: bool) -> Option<Self> {
        let (Item::Event(event), integration) = (&choice.found.item, &choice.found.integration) else { return None };
        let evidence = Evidence::of(choice, debug);
        Some(Self {
            r#type: TRIGGER,
            provider: integration.provider,
            integration: integration.key.clone(),
            connection,
            event_key: event.key.clone(),
            provider_event: event.key.clone(),
            description: choice.found.item.description().to_owned(),
            confidence: debug.then(|| choice.confidence()).flatten(),
            score: evidence.score,
            reasons: evidence.reasons,
        })
    }
}

/// What each piece of evidence added to the score; what added nothing is left out.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reasons {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_app: Option<f64>,
}

impl From<&catalog::search::Reasons> for Reasons {
    fn from(reasons: &catalog::search::Reasons) -> Self {
        let added = |value: f32| Some(rounded(value)).filter(|value| *value != 0.0);
        Self {
            words: added(reasons.words),
            meaning: added(reasons.meaning),
            example: added(reasons.example),
            name: added(reasons.name),
            app: added(reasons.app),
            verb: added(reasons.verb),
            event: added(reasons.event),
            prior: added(reasons.prior),
            usage: added(reasons.usage),
            same_app: added(reasons.same_app),
        }
    }
}

/// Who suggested a choice, and what our own search has to say for it; nothing, where it did not find it. A tool config has no such members,
/// so an answer has them with `debug` only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) suggested_by: Option<&'static str>,
    pub(crate) score: Option<f64>,
    pub(crate) reasons: Option<Reasons>,
}

impl Evidence {
    pub(crate) fn of(Choice { found, suggested_by }: &Choice, debug: bool) -> Self {
        if !debug {
            return Self::default();
        }
        let own = (found.score > 0.0).then_some(found);
        Self { suggested_by: *suggested_by, score: own.map(|own| rounded(own.score)), reasons: own.map(|own| (&own.reasons).into()) }
    }
}

pub(crate) fn rounded(value: f32) -> f64 {
    (f64::from(value) * 1000.0).round() / 1000.0
}

/// Whether an integration can be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    Ready,
    NeedsAuth,
    NeedsInput,
}

/// Whether something can be used now, and through which connection.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = State)]
#[serde(deny_unknown_fields)]
pub struct ConnectionState {
    pub state: Readiness,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>)]
    pub id: Option<ConnectionId>,
    /// Why the connection that is there has to be connected again: its service refused the credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl ConnectionState {
    /// The newest usable connection, one that its service refuses only if there is no other, or what it takes to get one. Calls can do with
    /// an implicit connection, subscriptions need a row.
    pub(crate) fn of(integration: &Integration, kind: Kind, of: AccountsOf, rows: &[Connection]) -> Self {
        let row = rows_of(integration, rows).find(|row| row.is_usable());
        if let Some(row) = row.filter(|row| !row.is_failing()) {
            return Self { state: Readiness::Ready, slug: Some(row.slug.clone()), id: Some(row.id), failure: None };
        }
        let implicit = Connection::implicit_beside(of, integration, rows);
        if let (Kind::Action, Some(implicit)) = (kind, &implicit) {
            return Self { state: Readiness::Ready, slug: Some(implicit.slug.clone()), id: None, failure: None };
        }
        let schemes = integration.wire_schemes();
        let state = match () {
            () if implicit.is_some() => Readiness::Ready,
            () if schemes.contains(&"api_key") && !schemes.contains(&"oauth") => Readiness::NeedsInput,
            () => Readiness::NeedsAuth,
        };
        Self { state, slug: row.map(|row| row.slug.clone()), id: row.map(|row| row.id), failure: row.and_then(|row| row.failure.clone()) }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.state == Readiness::Ready
    }
}

/// The state of an integration, with the request that connects it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegrationState {
    pub provider: &'static str,
    pub integration: String,
    pub state: Readiness,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>)]
    pub id: Option<ConnectionId>,
    /// Why the connection that is there has to be connected again: its service refused the credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<ApiRequest>,
}

/// A request to send.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Connect)]
#[serde(deny_unknown_fields)]
pub struct ApiRequest {
    #[schema(example = "POST /tools/connections/")]
    pub endpoint: String,
    #[schema(value_type = Object)]
    pub body: Value,
}

/// An integration that an answer names, and whether for an event.
#[derive(Clone, Debug)]
pub(crate) struct NamedIntegration {
    pub(crate) integration: Arc<Integration>,
    pub(crate) kind: Kind,
}

impl IntegrationState {
    /// `connect` is the step that connects it, where it has to be connected.
    pub(crate) fn of(
        NamedIntegration { integration, kind }: &NamedIntegration,
        of: AccountsOf,
        rows: &[Connection],
        connect: NextStep,
        addresses: &dyn Addresses,
    ) -> Self {
        let ConnectionState { state, slug, id, failure } = ConnectionState::of(integration, *kind, of, rows);
        let connect = slug.is_none().then(|| {
            addresses.request(RequestDraft::Connect(ConnectDraft {
                step: connect,
                provider: integration.provider,
                integration: &integration.key,
                slug: free_slug(integration, rows),
                with_key: state == Readiness::NeedsInput,
            }))
        });
        Self { provider: integration.provider, integration: integration.key.clone(), state, slug, id, failure, connect }
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
