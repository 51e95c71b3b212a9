//! `/tools/connected`, `/tools/marketplace` and what goes with them: apps by name, as agents are given them.

use std::collections::BTreeMap;

use agents::{AppFilter, AppName, AppStatus, ProjectApp};
use axum::extract::State;
use document::{IntoParams, ToSchema};
use kernel::Scope;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiError, ApiResult, Code, Json, NoFilters, PathOf, Payload, QueryOf, Scoped};

const DEFAULT_APPS: usize = 100;
const MAX_APPS: usize = 1000;
const DEFAULT_ACTIONS: usize = 5000;
const MAX_ACTIONS: usize = 20_000;

/// Something that can be watched.
#[derive(Debug, Serialize, ToSchema)]
pub struct AppTrigger {
    pub name: String,
    pub display_name: String,
    pub description: String,
}

/// An app.
#[derive(Debug, Serialize, ToSchema)]
pub struct AppBody {
    /// The stable id; what agents are given it by.
    pub id: i32,
    pub stable_id: i32,
    pub app_name: String,
    /// `{provider}.{integration}`; null when the catalog does not have the app.
    pub catalog_id: Option<String>,
    /// `active`, `pending`, `added`, `disabled` (revoked), `failed` (the authorization failed) or `not_connected`.
    pub status: &'static str,
    pub is_connected: bool,
    pub connected_at: Option<String>,
    pub connection_id: Option<Uuid>,
    pub display_name: Option<String>,
    pub description: Option<String>,
    pub logo_url: Option<String>,
    pub categories: Vec<String>,
    pub auth_schemes: Vec<&'static str>,
    pub providers: Vec<&'static str>,
    pub action_count: usize,
    pub trigger_count: usize,
    pub triggers: Vec<AppTrigger>,
    /// Apps of the project with the same stable id: name these, do not number them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collides_with: Vec<String>,
}

impl From<ProjectApp> for AppBody {
    fn from(found: ProjectApp) -> Self {
        let ProjectApp { app, integration, providers, status, connection, since, collides_with } = found;
        let integration = integration.as_deref();
        let stable_id = app.stable_id().number();
        Self {
            id: stable_id,
            stable_id,
            app_name: app.to_string(),
            catalog_id: integration.map(|integration| format!("{}.{}", integration.provider, integration.key)),
            status: status.name(),
            is_connected: status.is_usable(),
            connected_at: since.filter(|_| status.is_usable()).map(|at| at.to_string()),
            connection_id: connection.map(|row| row.id.uuid()),
            display_name: integration.map(|integration| integration.name.clone()),
            description: integration.map(|integration| integration.description.clone()),
            logo_url: integration.and_then(|integration| integration.logo.clone()),
            categories: integration.map(|integration| integration.categories.clone()).unwrap_or_default(),
            auth_schemes: integration.map(catalog::Integration::wire_schemes).unwrap_or_default(),
            providers,
            action_count: integration.map_or(0, |integration| integration.actions.len()),
            trigger_count: integration.map_or(0, |integration| integration.events.len()),
            triggers: integration.map(triggers).unwrap_or_default(),
            collides_with: collides_with.iter().map(ToString::to_string).collect(),
        }
    }
}

fn triggers(integration: &catalog::Integration) -> Vec<AppTrigger> {
    let body = |event: &catalog::Event| AppTrigger {
        name: event.key.clone(),
        display_name: event.name.clone(),
        description: event.description.clone(),
    };
    integration.events.iter().map(|event| body(event)).collect()
}

/// The apps of the project.
#[derive(Debug, Serialize, ToSchema)]
pub struct AppsAnswer {
    pub apps: Vec<AppBody>,
    pub total: usize,
}

/// The apps there are.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketplaceAnswer {
    pub apps: Vec<AppBody>,
    pub total_apps: usize,
    pub total_actions: usize,
    /// How many apps each category has.
    pub categories: BTreeMap<String, usize>,
    /// Always null: the catalog is part of the server, and not synced.
    pub last_synced: Option<String>,
}

/// How much there is.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketStatsAnswer {
    pub total_apps: usize,
    pub total_actions: usize,
    pub connected_apps: usize,
    pub categories: BTreeMap<String, usize>,
    pub last_synced: Option<String>,
}

/// Which apps to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListApps {
    pub category: Option<String>,
    /// Words to look for.
    pub search: Option<String>,
    /// 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    pub offset: Option<usize>,
}

/// Which actions to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListAppActions {
    /// Words to look for.
    pub search: Option<String>,
    /// 5000 by default.
    #[param(minimum = 1, maximum = 20000)]
    pub limit: Option<usize>,
    pub offset: Option<usize>,
}

/// An action of an app.
#[derive(Debug, Serialize, ToSchema)]
pub struct AppAction {
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub app_name: String,
    #[schema(value_type = Object)]
    pub parameters: Value,
    pub read_only: bool,
    pub destructive: bool,
    /// Whether the project could call it now: the app is active and the project's permissions do not deny it.
    pub enabled: bool,
}

/// An app by name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedApp {
    #[schema(example = "GITHUB")]
    pub app_name: String,
}

/// What was done with an app.
#[derive(Debug, Serialize, ToSchema)]
pub struct AppAnswer {
    /// `success`, or `already_added`.
    pub status: &'static str,
    pub message: String,
    pub app_name: String,
}

async fn own_apps(app: &App, scope: Scope) -> ApiResult<Json<AppsAnswer>> {
    let apps: Vec<AppBody> = app.agents.connected(scope).await?.into_iter().map(Into::into).collect();
    Ok(Json(AppsAnswer { total: apps.len(), apps }))
}

/// List the apps that may be assigned to agents, the one that changed last first
#[document::path(get, path = "/tools/connected", operation_id = "list_connected_apps", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = AppsAnswer)))]
pub(crate) async fn connected(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    _: QueryOf<NoFilters>,
) -> ApiResult<Json<AppsAnswer>> {
    own_apps(&app, scope).await
}

/// List the apps of the project; the same as `/tools/connected`
#[document::path(get, path = "/tools/workspace", operation_id = "list_workspace_apps", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = AppsAnswer)))]
pub(crate) async fn workspace(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    _: QueryOf<NoFilters>,
) -> ApiResult<Json<AppsAnswer>> {
    own_apps(&app, scope).await
}

fn categories(apps: &[ProjectApp]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for category in apps.iter().filter_map(|app| app.integration.as_ref()).flat_map(|integration| &integration.categories) {
        *counts.entry(category.clone()).or_default() += 1;
    }
    counts
}

fn actions(apps: &[ProjectApp]) -> usize {
    apps.iter().filter_map(|app| app.integration.as_ref()).map(|integration| integration.actions.len()).sum()
}

fn within(limit: Option<usize>, usual: usize, most: usize) -> ApiResult<usize> {
    match limit.unwrap_or(usual) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(ApiError::new(Code::LimitInvalid, format!("`limit` must be 1 to {most}."))),
    }
}

/// List every app of the catalog, the one with the most actions first
#[document::path(get, path = "/tools/marketplace", operation_id = "list_marketplace_apps", tag = "Tools", security(("key" = ["view_tools"])), params(ListApps),
    responses((status = 200, body = MarketplaceAnswer)))]
pub(crate) async fn marketplace(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListApps>,
) -> ApiResult<Json<MarketplaceAnswer>> {
    let limit = within(list.limit, DEFAULT_APPS, MAX_APPS)?;
    let found = app.agents.marketplace(scope, &AppFilter { category: list.category, search: list.search }).await?;
    Ok(Json(MarketplaceAnswer {
        total_apps: found.len(),
        total_actions: actions(&found),
        categories: categories(&found),
        last_synced: None,
        apps: found.into_iter().skip(list.offset.unwrap_or(0)).take(limit).map(Into::into).collect(),
    }))
}

/// Count what there is
#[document::path(get, path = "/tools/stats", operation_id = "fetch_app_stats", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = MarketStatsAnswer)))]
pub(crate) async fn stats(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<MarketStatsAnswer>> {
    let found = app.agents.marketplace(scope, &AppFilter::default()).await?;
    Ok(Json(MarketStatsAnswer {
        total_apps: found.len(),
        total_actions: actions(&found),
        connected_apps: found.iter().filter(|app| app.status == AppStatus::Active).count(),
        categories: categories(&found),
        last_synced: None,
    }))
}

/// List the actions of an app
#[document::path(get, path = "/tools/{app_name}/actions", operation_id = "list_app_actions", tag = "Tools", security(("key" = ["view_tools"])),
    params(("app_name" = String, Path), ListAppActions), responses((status = 200, body = Vec<AppAction>), (status = 404, description = "No such app")))]
pub(crate) async fn app_actions(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf(name): PathOf<String>,
    QueryOf(list): QueryOf<ListAppActions>,
) -> ApiResult<Json<Vec<AppAction>>> {
    let limit = within(list.limit, DEFAULT_ACTIONS, MAX_ACTIONS)?;
    let app_name = AppName::of(&name).to_string();
    let search = list.search.unwrap_or_default().to_lowercase();
    let fits = |action: &catalog::Action| {
        let hay = format!("{} {} {}", action.key, action.name, action.description).to_lowercase();
        search.split_whitespace().all(|word| hay.contains(word))
    };
    let found = app.agents.actions(scope, &name).await?.into_iter().filter(|(action, _)| fits(action));
    let body = |(action, enabled): (std::sync::Arc<catalog::Action>, bool)| AppAction {
        name: action.key.clone(),
        display_name: action.name.clone(),
        description: action.description.clone(),
        app_name: app_name.clone(),
        parameters: action.input_schema.value(),
        read_only: action.read_only,
        destructive: action.destructive,
        enabled,
    };
    Ok(Json(found.skip(list.offset.unwrap_or(0)).take(limit).map(body).collect()))
}

/// List the events of an app
#[document::path(get, path = "/tools/{app_name}/triggers", operation_id = "list_app_triggers", tag = "Tools", security(("key" = ["view_tools"])),
    params(("app_name" = String, Path)), responses((status = 200, body = Vec<AppTrigger>), (status = 404, description = "No such app")))]
pub(crate) async fn app_triggers(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf(name): PathOf<String>,
) -> ApiResult<Json<Vec<AppTrigger>>> {
    let found = app.agents.app(scope, &name).await?;
    Ok(Json(found.integration.as_deref().map(triggers).unwrap_or_default()))
}

/// Choose an app for the project
///
/// It can then be assigned to agents; they use it once an account is connected. An app that needs no account is connected at once.
#[document::path(post, path = "/tools/add-to-workspace", operation_id = "add_app", tag = "Tools", security(("key" = ["edit_tools"])), request_body = NamedApp,
    responses((status = 200, body = AppAnswer), (status = 404, description = "No such app")))]
pub(crate) async fn add(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<NamedApp>,
) -> ApiResult<Json<AppAnswer>> {
    let app_name = AppName::of(&body.app_name).to_string();
    let is_new = app.agents.add_app(scope, &body.app_name).await?;
    let (status, message) = if is_new { ("success", "is added.") } else { ("already_added", "was here before.") };
    Ok(Json(AppAnswer { status, message: format!("{app_name} {message}"), app_name }))
}

/// Take an app out of the project, with its connections
///
/// Agents keep their assignments of it, which cannot be used until it is connected again.
#[document::path(delete, path = "/tools/remove-from-workspace/{app_name}", operation_id = "remove_app", tag = "Tools", security(("key" = ["edit_tools"])),
    params(("app_name" = String, Path)), responses((status = 200, body = AppAnswer), (status = 404, description = "The project does not have it")))]
pub(crate) async fn remove(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf(name): PathOf<String>,
) -> ApiResult<Json<AppAnswer>> {
    let app_name = AppName::of(&name);
    let apps = app.agents.apps(scope).await?;
    let rows = apps.rows(&app_name);
    for row in rows {
        crate::connections::delete(&app, scope, row.id).await?;
    }
    let was_added = app.agents.remove_app(scope, &name).await?;
    if rows.is_empty() && !was_added {
        return Err(ApiError::new(Code::AppNotFound, format!("{app_name} is not in this project.")));
    }
    let message = format!("{app_name} is removed, with {} connections.", rows.len());
    Ok(Json(AppAnswer { status: "success", message, app_name: app_name.to_string() }))
}
