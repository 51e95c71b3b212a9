//! `/tools/oauth-apps` and `/admin/oauth-apps`: the OAuth clients of a project and of the whole deployment.

use axum::extract::State;
use connections::{NewOAuthApp, OAuthApp, Owner};
use document::ToSchema;
use http::StatusCode;
use kernel::AppId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiError, ApiResult, Code, Json, NoFilters, Operator, PathOf, Payload, QueryOf, Scoped};

/// An OAuth app, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct OAuthAppBody {
    pub id: Uuid,
    pub provider_key: String,
    pub integration_key: String,
    pub client_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// The address to register at the provider.
    pub redirect_url: String,
    pub created_at: String,
}

/// One app in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct OAuthAppAnswer {
    pub count: usize,
    pub oauth_app: OAuthAppBody,
}

/// Apps in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct OAuthAppsAnswer {
    pub count: usize,
    pub oauth_apps: Vec<OAuthAppBody>,
}

/// A request to keep an app; one for the same integration is replaced.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetApp {
    pub oauth_app: NewAppBody,
}

/// The app as the provider registered it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAppBody {
    /// `native` by default.
    pub provider_key: Option<String>,
    pub integration_key: String,
    #[schema(value_type = crate::shapes::NameText)]
    pub client_id: String,
    /// Empty for a public client.
    #[serde(default)]
    pub client_secret: String,
    pub scopes: Option<Vec<String>>,
}

impl std::fmt::Debug for NewAppBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewAppBody").field("integration_key", &self.integration_key).finish_non_exhaustive()
    }
}

fn body(app: &App, found: OAuthApp) -> OAuthAppBody {
    OAuthAppBody {
        redirect_url: app.connections.app_redirect_url(&found),
        id: found.id.uuid(),
        provider_key: found.provider,
        integration_key: found.integration,
        client_id: found.client_id,
        scopes: found.scopes,
        created_at: found.created_at.to_string(),
    }
}

async fn set_for(app: &App, owner: Owner, request: SetApp) -> ApiResult<Json<OAuthAppAnswer>> {
    let new = request.oauth_app;
    let new = NewOAuthApp {
        provider: new.provider_key.unwrap_or_else(|| "native".to_owned()),
        integration: new.integration_key,
        client_id: new.client_id,
        client_secret: new.client_secret,
        scopes: new.scopes,
    };
    let made = app.connections.set_app(owner, new).await?;
    Ok(Json(OAuthAppAnswer { count: 1, oauth_app: body(app, made) }))
}

async fn list_for(app: &App, owner: Owner) -> ApiResult<Json<OAuthAppsAnswer>> {
    let apps: Vec<_> = app.connections.list_apps(owner).await?.into_iter().map(|found| body(app, found)).collect();
    Ok(Json(OAuthAppsAnswer { count: apps.len(), oauth_apps: apps }))
}

async fn delete_for(app: &App, owner: Owner, id: AppId) -> ApiResult<StatusCode> {
    app.connections.delete_app(owner, id).await.map_err(|error| match error {
        connections::ConnectionError::NotFound => ApiError::new(Code::OauthAppNotFound, "OAuth app not found"),
        other => other.into(),
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Keep an OAuth app of the project
#[document::path(post, path = "/tools/oauth-apps", operation_id = "set_oauth_app", tag = "Tools", security(("key" = ["edit_tools"])), request_body = SetApp,
    responses((status = 200, body = OAuthAppAnswer)))]
pub(crate) async fn set(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    Payload(request): Payload<SetApp>,
) -> ApiResult<Json<OAuthAppAnswer>> {
    set_for(&app, Owner::Project(scope.project), request).await
}

/// List the project's OAuth apps
#[document::path(get, path = "/tools/oauth-apps", operation_id = "list_oauth_apps", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = OAuthAppsAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    _: QueryOf<NoFilters>,
) -> ApiResult<Json<OAuthAppsAnswer>> {
    list_for(&app, Owner::Project(scope.project)).await
}

/// What to register at the provider.
#[derive(Debug, Serialize, ToSchema)]
pub struct RedirectAnswer {
    /// For an app of the project, whether it is kept already or not.
    pub redirect_url: String,
    /// For an app of all projects.
    pub deployment_redirect_url: String,
}

/// Read the address that an OAuth app of an integration is registered with
///
/// It does not depend on the app, so it can be registered before there is one.
#[document::path(get, path = "/tools/oauth-apps/redirect/{provider_key}/{integration_key}", operation_id = "fetch_oauth_redirect", tag = "Tools", security(("key" = ["view_tools"])),
    params(("provider_key" = String, Path), ("integration_key" = String, Path)), responses((status = 200, body = RedirectAnswer), (status = 404, description = "No such integration")))]
pub(crate) async fn redirect(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf((provider, key)): PathOf<(String, String)>,
) -> ApiResult<Json<RedirectAnswer>> {
    let (owner, integration) = (Owner::Project(scope.project), app.catalog.reach_integration(scope.project, &provider, &key).await?);
    // An app that was kept before each had an address of its own keeps the one it was registered with.
    let kept = app.connections.list_apps(owner).await?;
    let kept = kept.iter().find(|kept| kept.provider == provider && kept.integration == integration.key);
    let url = |owner| app.connections.redirect_url(owner, &provider, &integration.key);
    let redirect_url = kept.map_or_else(|| url(owner), |kept| app.connections.app_redirect_url(kept));
    Ok(Json(RedirectAnswer { redirect_url, deployment_redirect_url: url(Owner::Deployment) }))
}

/// Delete an OAuth app of the project
#[document::path(delete, path = "/tools/oauth-apps/{app_id}", operation_id = "delete_oauth_app", tag = "Tools", security(("key" = ["edit_tools"])),
    params(("app_id" = Uuid, Path)), responses((status = 204), (status = 404, description = "No such app")))]
pub(crate) async fn delete(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<AppId>,
) -> ApiResult<StatusCode> {
    delete_for(&app, Owner::Project(scope.project), id).await
}

/// Keep an OAuth app for all projects
#[document::path(post, path = "/admin/oauth-apps", operation_id = "set_deployment_oauth_app", tag = "Admin", security(("operator" = [])), request_body = SetApp,
    responses((status = 200, body = OAuthAppAnswer)))]
pub(crate) async fn set_everywhere(
    _: Operator,
    State(app): State<App>,
    Payload(request): Payload<SetApp>,
) -> ApiResult<Json<OAuthAppAnswer>> {
    set_for(&app, Owner::Deployment, request).await
}

/// List the OAuth apps for all projects
#[document::path(get, path = "/admin/oauth-apps", operation_id = "list_deployment_oauth_apps", tag = "Admin", security(("operator" = [])),
    responses((status = 200, body = OAuthAppsAnswer)))]
pub(crate) async fn list_everywhere(_: Operator, State(app): State<App>, _: QueryOf<NoFilters>) -> ApiResult<Json<OAuthAppsAnswer>> {
    list_for(&app, Owner::Deployment).await
}

/// Delete an OAuth app for all projects
#[document::path(delete, path = "/admin/oauth-apps/{app_id}", operation_id = "delete_deployment_oauth_app", tag = "Admin", security(("operator" = [])),
    params(("app_id" = Uuid, Path)), responses((status = 204), (status = 404, description = "No such app")))]
pub(crate) async fn delete_everywhere(_: Operator, State(app): State<App>, PathOf(id): PathOf<AppId>) -> ApiResult<StatusCode> {
    delete_for(&app, Owner::Deployment, id).await
}
