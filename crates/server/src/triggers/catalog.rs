//! `/triggers/catalog`

use axum::extract::State;
use catalog::{PageQuery, Reach};
use document::{IntoParams, ToSchema};
use serde::{Deserialize, Serialize};

use crate::App;
use crate::catalog::{
    EventBody, IntegrationAnswer, IntegrationBody, IntegrationsAnswer, ListIntegrations, ProviderAnswer, ProviderBody, ProvidersAnswer,
};
use crate::edge::auth::ViewTriggers;
use crate::edge::{ApiResult, Json, PathOf, QueryOf, Scoped};

/// One event in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventAnswer {
    pub count: usize,
    pub event: EventBody,
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventsAnswer {
    pub count: usize,
    pub total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub events: Vec<EventBody>,
}

/// Which events to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListEvents {
    /// Words to look for.
    pub query: Option<String>,
    #[param(minimum = 0)]
    pub limit: Option<i64>,
    #[param(inline, required = false, value_type = crate::shapes::CursorText)]
    pub cursor: Option<String>,
}

/// List providers of events
#[document::path(get, path = "/triggers/catalog/providers", operation_id = "list_trigger_providers", tag = "Triggers", security(("key" = ["view_triggers"])),
    responses((status = 200, body = ProvidersAnswer)))]
pub(crate) async fn providers(Scoped(scope, _): Scoped<ViewTriggers>, State(app): State<App>) -> ApiResult<Json<ProvidersAnswer>> {
    let providers: Vec<_> =
        app.catalog.providers().iter().map(|provider| ProviderBody::new(&app, scope.project, provider)).collect::<Result<_, _>>()?;
    Ok(Json(ProvidersAnswer { count: providers.len(), providers }))
}

/// Read a provider of events
#[document::path(get, path = "/triggers/catalog/providers/{provider_key}", operation_id = "fetch_trigger_provider", tag = "Triggers",
    security(("key" = ["view_triggers"])), params(("provider_key" = String, Path)), responses((status = 200, body = ProviderAnswer), (status = 404, description = "No such provider")))]
pub(crate) async fn provider(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    PathOf(key): PathOf<String>,
) -> ApiResult<Json<ProviderAnswer>> {
    let provider = app.catalog.source(&key)?.provider();
    Ok(Json(ProviderAnswer { count: 1, provider: ProviderBody::new(&app, scope.project, &provider)? }))
}

/// List integrations with events
#[document::path(get, path = "/triggers/catalog/providers/{provider_key}/integrations", operation_id = "list_trigger_integrations", tag = "Triggers",
    security(("key" = ["view_triggers"])), params(("provider_key" = String, Path), ListIntegrations), responses((status = 200, body = IntegrationsAnswer)))]
pub(crate) async fn integrations(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    PathOf(provider): PathOf<String>,
    QueryOf(list): QueryOf<ListIntegrations>,
) -> ApiResult<Json<IntegrationsAnswer>> {
    app.catalog.reach(&provider, Reach::List).await?;
    Ok(Json(app.catalog.integrations(scope.project, &provider, &list.query()?)?.into()))
}

/// Read an integration with events
#[document::path(get, path = "/triggers/catalog/providers/{provider_key}/integrations/{integration_key}", operation_id = "fetch_trigger_integration", tag = "Triggers",
    security(("key" = ["view_triggers"])), params(("provider_key" = String, Path), ("integration_key" = String, Path)),
    responses((status = 200, body = IntegrationAnswer), (status = 404, description = "No such integration")))]
pub(crate) async fn integration(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    PathOf((provider, key)): PathOf<(String, String)>,
) -> ApiResult<Json<IntegrationAnswer>> {
    let integration = app.catalog.reach_integration(scope.project, &provider, &key).await?;
    Ok(Json(IntegrationAnswer { count: 1, integration: IntegrationBody::full(&integration) }))
}

/// List events
#[document::path(get, path = "/triggers/catalog/providers/{provider_key}/integrations/{integration_key}/events", operation_id = "list_trigger_events", tag = "Triggers",
    security(("key" = ["view_triggers"])), params(("provider_key" = String, Path), ("integration_key" = String, Path), ListEvents),
    responses((status = 200, body = EventsAnswer), (status = 404, description = "No such integration")))]
pub(crate) async fn events(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    PathOf((provider, key)): PathOf<(String, String)>,
    QueryOf(list): QueryOf<ListEvents>,
) -> ApiResult<Json<EventsAnswer>> {
    let query = PageQuery { search: list.query, limit: list.limit, cursor: list.cursor, ..PageQuery::default() };
    let integration = app.catalog.reach_integration(scope.project, &provider, &key).await?;
    let page = app.catalog.events(scope.project, &provider, &key, &query)?;
    let events: Vec<_> = page.items.iter().map(|event| EventBody::new(event, &integration, false)).collect();
    Ok(Json(EventsAnswer { count: events.len(), total: page.total, cursor: page.cursor, events }))
}

/// Read an event with its schemas
#[document::path(get, path = "/triggers/catalog/providers/{provider_key}/integrations/{integration_key}/events/{event_key}", operation_id = "fetch_trigger_event",
    tag = "Triggers", security(("key" = ["view_triggers"])), params(("provider_key" = String, Path), ("integration_key" = String, Path), ("event_key" = String, Path)),
    responses((status = 200, body = EventAnswer), (status = 404, description = "No such event")))]
pub(crate) async fn event(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    PathOf((provider, key, event)): PathOf<(String, String, String)>,
) -> ApiResult<Json<EventAnswer>> {
    let integration = app.catalog.reach_integration(scope.project, &provider, &key).await?;
    let found = integration.known_event(&event)?;
    Ok(Json(EventAnswer { count: 1, event: EventBody::new(found, &integration, true) }))
}
