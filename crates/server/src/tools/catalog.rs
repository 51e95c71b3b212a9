//! `/tools/catalog`

use axum::extract::State;
use catalog::{PageQuery, Reach};
use document::{IntoParams, ToSchema};
use serde::{Deserialize, Serialize};

use crate::App;
use crate::catalog::{
    ActionBody, IntegrationAnswer, IntegrationBody, IntegrationsAnswer, ListIntegrations, ProviderAnswer, ProviderBody, ProvidersAnswer,
};
use crate::edge::auth::ViewTools;
use crate::edge::{ApiResult, Json, PathOf, QueryOf, Scoped};

/// A category of integrations.
#[derive(Debug, Serialize, ToSchema)]
pub struct CategoryBody {
    pub id: String,
    pub name: String,
}

/// Categories in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct CategoriesAnswer {
    pub count: usize,
    pub categories: Vec<CategoryBody>,
}

/// One action in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionAnswer {
    pub count: usize,
    pub action: ActionBody,
}

/// A page of actions.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionsAnswer {
    pub count: usize,
    pub total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub actions: Vec<ActionBody>,
}

/// Which actions to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListActions {
    /// Words to look for.
    pub query: Option<String>,
    /// May be repeated.
    #[serde(default)]
    pub categories: Vec<String>,
    #[param(minimum = 0)]
    pub limit: Option<i64>,
    #[param(inline, required = false, value_type = crate::shapes::CursorText)]
    pub cursor: Option<String>,
    /// Whether to include schemas and scopes.
    pub full_details: Option<bool>,
}

/// List providers
#[document::path(get, path = "/tools/catalog/providers", operation_id = "list_tool_providers", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = ProvidersAnswer)))]
pub(crate) async fn providers(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<ProvidersAnswer>> {
    let providers: Vec<_> =
        app.catalog.providers().iter().map(|provider| ProviderBody::new(&app, scope.project, provider)).collect::<Result<_, _>>()?;
    Ok(Json(ProvidersAnswer { count: providers.len(), providers }))
}

/// Read a provider
#[document::path(get, path = "/tools/catalog/providers/{provider_key}", operation_id = "fetch_tool_provider", tag = "Tools", security(("key" = ["view_tools"])),
    params(("provider_key" = String, Path)), responses((status = 200, body = ProviderAnswer), (status = 404, description = "No such provider")))]
pub(crate) async fn provider(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf(key): PathOf<String>,
) -> ApiResult<Json<ProviderAnswer>> {
    let provider = app.catalog.source(&key)?.provider();
    Ok(Json(ProviderAnswer { count: 1, provider: ProviderBody::new(&app, scope.project, &provider)? }))
}

/// List integrations
#[document::path(get, path = "/tools/catalog/providers/{provider_key}/integrations", operation_id = "list_tool_integrations", tag = "Tools",
    security(("key" = ["view_tools"])), params(("provider_key" = String, Path), ListIntegrations), responses((status = 200, body = IntegrationsAnswer)))]
pub(crate) async fn integrations(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf(provider): PathOf<String>,
    QueryOf(list): QueryOf<ListIntegrations>,
) -> ApiResult<Json<IntegrationsAnswer>> {
    app.catalog.reach(&provider, Reach::List).await?;
    Ok(Json(app.catalog.integrations(scope.project, &provider, &list.query()?)?.into()))
}

/// List categories
#[document::path(get, path = "/tools/catalog/providers/{provider_key}/categories", operation_id = "list_tool_categories", tag = "Tools",
    security(("key" = ["view_tools"])), params(("provider_key" = String, Path)), responses((status = 200, body = CategoriesAnswer)))]
pub(crate) async fn categories(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf(provider): PathOf<String>,
) -> ApiResult<Json<CategoriesAnswer>> {
    app.catalog.reach(&provider, Reach::List).await?;
    let found = app.catalog.categories(scope.project, &provider)?;
    let categories: Vec<_> = found.into_iter().map(|category| CategoryBody { id: category.id, name: category.name }).collect();
    Ok(Json(CategoriesAnswer { count: categories.len(), categories }))
}

/// Read an integration
#[document::path(get, path = "/tools/catalog/providers/{provider_key}/integrations/{integration_key}", operation_id = "fetch_tool_integration", tag = "Tools",
    security(("key" = ["view_tools"])), params(("provider_key" = String, Path), ("integration_key" = String, Path)),
    responses((status = 200, body = IntegrationAnswer), (status = 404, description = "No such integration")))]
pub(crate) async fn integration(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf((provider, key)): PathOf<(String, String)>,
) -> ApiResult<Json<IntegrationAnswer>> {
    let integration = app.catalog.reach_integration(scope.project, &provider, &key).await?;
    Ok(Json(IntegrationAnswer { count: 1, integration: IntegrationBody::full(&integration) }))
}

/// List actions
#[document::path(get, path = "/tools/catalog/providers/{provider_key}/integrations/{integration_key}/actions", operation_id = "list_tool_actions", tag = "Tools",
    security(("key" = ["view_tools"])), params(("provider_key" = String, Path), ("integration_key" = String, Path), ListActions),
    responses((status = 200, body = ActionsAnswer), (status = 404, description = "No such integration")))]
pub(crate) async fn actions(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf((provider, key)): PathOf<(String, String)>,
    QueryOf(list): QueryOf<ListActions>,
) -> ApiResult<Json<ActionsAnswer>> {
    let full = list.full_details.unwrap_or(false);
    let query = PageQuery { search: list.query, categories: list.categories, alphabetical: false, limit: list.limit, cursor: list.cursor };
    let integration = app.catalog.reach_integration(scope.project, &provider, &key).await?;
    let page = app.catalog.actions(scope.project, &provider, &key, &query)?;
    let actions: Vec<_> = page.items.iter().map(|action| ActionBody::new(action, action.categories(&integration), full)).collect();
    Ok(Json(ActionsAnswer { count: actions.len(), total: page.total, cursor: page.cursor, actions }))
}

/// Read an action with its schemas
#[document::path(get, path = "/tools/catalog/providers/{provider_key}/integrations/{integration_key}/actions/{action_key}", operation_id = "fetch_tool_action",
    tag = "Tools", security(("key" = ["view_tools"])), params(("provider_key" = String, Path), ("integration_key" = String, Path), ("action_key" = String, Path)),
    responses((status = 200, body = ActionAnswer), (status = 404, description = "No such action")))]
pub(crate) async fn action(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf((provider, key, action)): PathOf<(String, String, String)>,
) -> ApiResult<Json<ActionAnswer>> {
    app.catalog.reach(&provider, Reach::Action(&key, &action)).await?;
    let integration = app.catalog.integration(scope.project, &provider, &key)?;
    let found = integration.known_action(&action)?;
    Ok(Json(ActionAnswer { count: 1, action: ActionBody::new(found, found.categories(&integration), true) }))
}
