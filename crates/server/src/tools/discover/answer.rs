//! What discovery answers, as the document describes it. The values are made by `tools::discover`; a test holds the two together.

use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// The tools that fit each use case, in the order of the request.
#[derive(Debug, ToSchema)]
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
#[derive(Debug, ToSchema)]
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
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCapability {
    pub use_case: String,
    pub integration: Option<String>,
    pub tool: Option<FoundTool>,
    pub alternatives: Vec<AlternativeTool>,
    pub connection: Option<State>,
    /// How hard the provider's own search says it is.
    #[schema(example = "easy")]
    pub difficulty: Option<String>,
    /// The event to subscribe to, where the use case waits for something.
    pub trigger: Option<FoundEvent>,
    pub note: Option<String>,
    /// The provider whose own search suggested the tool; with `debug`.
    pub suggested_by: Option<String>,
    /// How much of the use case the tool explains, from 0 to 1; with `debug`, where our own search found it too.
    pub confidence: Option<f64>,
    pub score: Option<f64>,
    pub reasons: Option<Reasons>,
}

/// What fits one use case; without `event` when nothing does.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EventCapability {
    pub use_case: String,
    pub integration: Option<String>,
    pub event: Option<FoundEvent>,
    pub alternatives: Vec<AlternativeEvent>,
    pub connection: Option<State>,
    pub note: Option<String>,
    /// How much of the use case the event explains, from 0 to 1; with `debug`.
    pub confidence: Option<f64>,
    pub score: Option<f64>,
    pub reasons: Option<Reasons>,
}

/// A tool, ready to be put into an agent's configuration.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FoundTool {
    #[schema(example = "gateway")]
    pub r#type: String,
    pub provider: String,
    pub integration: String,
    pub action: String,
    /// The connection to call it through, when there is one.
    pub connection: Option<String>,
    #[schema(value_type = Object)]
    pub input_schema: Value,
    pub description: String,
    pub provider_action: String,
}

/// An event, ready to be subscribed to.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FoundEvent {
    #[schema(example = "trigger")]
    pub r#type: String,
    pub provider: String,
    pub integration: String,
    pub event_key: String,
    /// The JSON Schema of what a subscription has to say.
    #[schema(value_type = Object)]
    pub trigger_config: Value,
    #[schema(value_type = Option<Object>)]
    pub payload: Option<Value>,
    pub description: String,
    pub provider_event: String,
}

/// Another tool that fits, ready to be put into an agent's configuration.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlternativeTool {
    #[schema(example = "gateway")]
    pub r#type: String,
    pub provider: String,
    pub integration: String,
    /// The connection to call it through, when there is one.
    pub connection: Option<String>,
    pub action: String,
    pub provider_action: String,
    pub description: String,
    pub suggested_by: Option<String>,
    pub confidence: Option<f64>,
    pub score: Option<f64>,
    pub reasons: Option<Reasons>,
}

/// Another event that fits.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlternativeEvent {
    #[schema(example = "trigger")]
    pub r#type: String,
    pub provider: String,
    pub integration: String,
    /// The connection to watch, when there is one.
    pub connection: Option<String>,
    pub event_key: String,
    pub provider_event: String,
    pub description: String,
    pub confidence: Option<f64>,
    pub score: Option<f64>,
    pub reasons: Option<Reasons>,
}

/// What each piece of evidence added to the score; what added nothing is left out.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reasons {
    pub words: Option<f64>,
    pub meaning: Option<f64>,
    pub example: Option<f64>,
    pub name: Option<f64>,
    pub app: Option<f64>,
    pub verb: Option<f64>,
    pub event: Option<f64>,
    pub prior: Option<f64>,
}

/// Whether an integration can be used now.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    Ready,
    NeedsAuth,
    NeedsInput,
}

/// Whether something can be used now, and through which connection.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct State {
    pub state: Readiness,
    pub slug: Option<String>,
    pub id: Option<Uuid>,
    /// Why the connection that is there has to be connected again: its service refused the credential.
    pub failure: Option<String>,
}

/// The state of an integration, with the request that connects it.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegrationState {
    pub provider: String,
    pub integration: String,
    pub state: Readiness,
    pub slug: Option<String>,
    pub id: Option<Uuid>,
    /// Why the connection that is there has to be connected again: its service refused the credential.
    pub failure: Option<String>,
    pub connect: Option<Connect>,
}

/// The request that makes a connection.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Connect {
    #[schema(example = "POST /tools/connections/")]
    pub endpoint: String,
    #[schema(value_type = Object)]
    pub body: Value,
}

/// What to do, in order of dependency, and what to watch out for.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Guidance {
    pub plan_steps: Vec<String>,
    pub pitfalls: Vec<String>,
}
