//! `/v3.1/auth_configs`

use axum::extract::{Path, State};
use composio_api::Refusal;
use composio_api::auth_configs::{
    AuthConfigBody, AuthConfigChanged, AuthConfigFilter, ChangeAuthConfig, CreateAuthConfig, CreatedAuthConfig,
};
use composio_api::page::Page;
use document::IntoParams;
use http::StatusCode;
use serde::Deserialize;

use super::{ApiAnswer, Asked, ByKey};
use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{Json, PathOf, Payload};

/// Which auth configs to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioAuthConfigsQuery {
    /// With commas.
    toolkit_slug: Option<String>,
    /// `true` for those that use what is there, `false` for those with credentials of their own.
    is_composio_managed: Option<String>,
    /// `true` for those too that are disabled.
    show_disabled: Option<String>,
    /// A part of the name or the id.
    search: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// A flag as SDKs write it.
fn flag(name: &str, text: Option<&str>) -> Result<Option<bool>, Refusal> {
    match text.map(str::to_ascii_lowercase).as_deref() {
        None | Some("") => Ok(None),
        Some("true" | "1") => Ok(Some(true)),
        Some("false" | "0") => Ok(Some(false)),
        Some(_) => Err(Refusal::bad_request(format!("`{name}` must be `true` or `false`."))),
    }
}

/// Make an auth config
#[document::path(post, path = "/v3.1/auth_configs", operation_id = "composio_create_auth_config", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), request_body = CreateAuthConfig,
    responses((status = 201, body = CreatedAuthConfig), (status = 400, description = "A scheme or credentials that cannot be used"), (status = 404, description = "No such toolkit")))]
pub(crate) async fn create(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<CreateAuthConfig>,
) -> ApiAnswer<(StatusCode, Json<CreatedAuthConfig>)> {
    Ok((StatusCode::CREATED, Json(app.composio_api.create_auth_config(scope, body).await?)))
}

/// List auth configs, newest first
#[document::path(get, path = "/v3.1/auth_configs", operation_id = "composio_list_auth_configs", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), params(ComposioAuthConfigsQuery), responses((status = 200, body = inline(Page<AuthConfigBody>))))]
pub(crate) async fn list(
    ByKey(scope, _): ByKey<ViewTools>,
    State(app): State<App>,
    Asked(query): Asked<ComposioAuthConfigsQuery>,
) -> ApiAnswer<Json<Page<AuthConfigBody>>> {
    let filter = AuthConfigFilter {
        toolkit_slug: query.toolkit_slug,
        is_managed: flag("is_composio_managed", query.is_composio_managed.as_deref())?,
        show_disabled: flag("show_disabled", query.show_disabled.as_deref())?.unwrap_or(false),
        search: query.search,
    };
    Ok(Json(app.composio_api.auth_configs(scope, &filter, query.limit.as_deref(), query.cursor.as_deref()).await?))
}

/// Read an auth config
#[document::path(get, path = "/v3.1/auth_configs/{auth_config_id}", operation_id = "composio_fetch_auth_config", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), params(("auth_config_id" = String, Path)),
    responses((status = 200, body = AuthConfigBody), (status = 404, description = "No such auth config")))]
pub(crate) async fn fetch(
    ByKey(scope, _): ByKey<ViewTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<AuthConfigBody>> {
    Ok(Json(app.composio_api.show_auth_config(scope, &id).await?))
}

/// Change an auth config
#[document::path(patch, path = "/v3.1/auth_configs/{auth_config_id}", operation_id = "composio_change_auth_config", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), params(("auth_config_id" = String, Path)), request_body = ChangeAuthConfig,
    responses((status = 200, body = AuthConfigChanged), (status = 400, description = "Something that it cannot be"), (status = 404, description = "No such auth config")))]
pub(crate) async fn change(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    Payload(body): Payload<ChangeAuthConfig>,
) -> ApiAnswer<Json<AuthConfigChanged>> {
    Ok(Json(app.composio_api.change_auth_config(scope, &id, body).await?))
}

/// Delete an auth config with its accounts
#[document::path(delete, path = "/v3.1/auth_configs/{auth_config_id}", operation_id = "composio_delete_auth_config", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), params(("auth_config_id" = String, Path)),
    responses((status = 200, body = AuthConfigChanged), (status = 404, description = "No such auth config")))]
pub(crate) async fn delete(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<String>,
) -> ApiAnswer<Json<AuthConfigChanged>> {
    Ok(Json(app.composio_api.delete_auth_config(scope, &id).await?))
}

/// Enable or disable an auth config
///
/// With one that is disabled nothing is connected, and its accounts run nothing.
#[document::path(patch, path = "/v3.1/auth_configs/{auth_config_id}/{status}", operation_id = "composio_enable_auth_config", tag = "Composio's API",
    security(("key" = ["edit_tools"]), ("composio_key" = [])), params(("auth_config_id" = String, Path), ("status" = String, Path, description = "`ENABLED` or `DISABLED`")),
    responses((status = 200, body = AuthConfigChanged), (status = 400, description = "Another status"), (status = 404, description = "No such auth config")))]
pub(crate) async fn enable(
    ByKey(scope, _): ByKey<EditTools>,
    State(app): State<App>,
    Path((id, status)): Path<(String, String)>,
) -> ApiAnswer<Json<AuthConfigChanged>> {
    Ok(Json(app.composio_api.enable_auth_config(scope, &id, &status).await?))
}
