//! `POST /tools/discover` and `POST /triggers/discover`

use axum::extract::State;
use discovery::{Discover, DiscoveredEvents, DiscoveredTools};
use document::ToSchema;
use serde::Deserialize;

use crate::App;
use crate::edge::auth::{ViewTools, ViewTriggers};
use crate::edge::{ApiResult, Json, Payload, Scoped};

/// What somebody wants to do, in plain words.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscoverRequest {
    /// Up to 20000 characters each.
    #[schema(value_type = Vec<crate::shapes::NameText>, min_items = 1, max_items = 50, example = json!(["create a github issue"]))]
    pub use_cases: Vec<String>,
    /// One provider; left out, all of them.
    pub provider: Option<String>,
    /// How many alternatives to name for each use case; 3 by default.
    #[schema(maximum = 65535)]
    pub limit_alternatives: Option<u16>,
    /// Whether to say how sure each answer is and what spoke for it.
    #[serde(default)]
    pub debug: bool,
}

impl From<DiscoverRequest> for Discover {
    fn from(request: DiscoverRequest) -> Self {
        let alternatives = usize::from(request.limit_alternatives.unwrap_or(3));
        Self { use_cases: request.use_cases, provider: request.provider, alternatives, debug: request.debug }
    }
}

/// Find the tools for what somebody wants to do
#[document::path(post, path = "/tools/discover", operation_id = "discover_tool_capabilities", tag = "Tools", security(("key" = ["view_tools"])),
    request_body = DiscoverRequest, responses((status = 200, description = "A capability per use case, connections, guidance", body = DiscoveredTools),
        (status = 422, description = "No use case, or a provider that cannot be searched"),
        (status = 424, description = "The provider's search failed, and there is nothing else to answer with")))]
pub(crate) async fn tools(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    Payload(body): Payload<DiscoverRequest>,
) -> ApiResult<Json<DiscoveredTools>> {
    Ok(Json(app.discovery.discover(scope, &body.into()).await?))
}

/// Find the events for what somebody wants to react to
#[document::path(post, path = "/triggers/discover", operation_id = "discover_triggers", tag = "Triggers", security(("key" = ["view_triggers"])),
    request_body = DiscoverRequest, responses((status = 200, description = "A capability per use case, connections, guidance", body = DiscoveredEvents),
        (status = 422, description = "No use case, or a provider that cannot be searched")))]
pub(crate) async fn events(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    Payload(body): Payload<DiscoverRequest>,
) -> ApiResult<Json<DiscoveredEvents>> {
    Ok(Json(app.discovery.discover_events(scope, &body.into()).await?))
}
