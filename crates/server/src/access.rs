//! `GET /access/permissions/check`: whether the caller's key may do something, for services that were handed the key by their own caller.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use document::{IntoParams, ToSchema};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CACHE_CONTROL};
use kernel::{Permission, suggest};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::App;
use crate::edge::auth::AnyKey;
use crate::edge::{ApiError, ApiResult, Code, Json, QueryOf, Scoped};

/// What the services of the reference system ask before they run, and what it is here.
pub(crate) const RUN_SERVICE: &str = "run_service";
/// What they ask before they use keys of their own, or show a value.
pub(crate) const VIEW_SECRET: &str = "view_secret";
/// The resource of the former.
const LOCAL_SECRETS: &str = "local_secrets";

/// What the key shall be allowed to do.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct CheckPermission {
    /// A permission such as `run_tools`; or `run_service`, which is `run_tools`, or `view_secret`, which is `read_secrets`. Without one any key is good.
    #[param(inline, required = false, value_type = crate::shapes::ActionWord)]
    pub action: Option<String>,
    /// With `view_secret`, `local_secrets` means those of the service itself: whoever may run it may have it use them.
    pub resource_type: Option<String>,
    /// Not looked at: permissions hold for the whole project.
    pub resource_id: Option<String>,
    /// The project; that of the key if left out.
    pub project_id: Option<String>,
    /// `project`, where `scope_id` names one.
    pub scope_type: Option<String>,
    pub scope_id: Option<String>,
}

/// That it may.
#[derive(Debug, Serialize, ToSchema)]
pub struct PermissionCheck {
    /// Always `allow`; a key that may not is answered with 403.
    pub effect: &'static str,
    /// The `Authorization` of the request, which the service goes on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}

/// Check whether the key may do something
#[document::path(get, path = "/access/permissions/check", operation_id = "check_permissions", tag = "Access", security(("key" = [])), params(CheckPermission),
    responses((status = 200, body = PermissionCheck), (status = 403, description = "The key may not, or belongs to another project")))]
pub(crate) async fn check(
    Scoped(scope, _): Scoped<AnyKey>,
    State(_): State<App>,
    headers: HeaderMap,
    QueryOf(asked): QueryOf<CheckPermission>,
) -> ApiResult<Response> {
    let in_project = asked.scope_id.filter(|_| asked.scope_type.as_deref() == Some("project"));
    let project = scope.project.to_string();
    if [asked.project_id, in_project].into_iter().flatten().any(|other| !other.eq_ignore_ascii_case(&project)) {
        return Err(ApiError::new(Code::MissingPermission, "This key belongs to another project."));
    }
    if let Some(needed) = needed(asked.action.as_deref(), asked.resource_type.as_deref())?
        && !scope.may(needed)
    {
        return Err(ApiError::forbidden(needed, &[needed]));
    }
    let credentials = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(([(CACHE_CONTROL, "no-store")], Json(PermissionCheck { effect: "allow", credentials })).into_response())
}

/// The permission that an action needs.
fn needed(action: Option<&str>, resource: Option<&str>) -> ApiResult<Option<Permission>> {
    match (action, resource) {
        (None, _) => Ok(None),
        (Some(RUN_SERVICE), _) | (Some(VIEW_SECRET), Some(LOCAL_SECRETS)) => Ok(Some(Permission::RunTools)),
        (Some(VIEW_SECRET), _) => Ok(Some(Permission::ReadSecrets)),
        (Some(action), _) => action.parse().map(Some).map_err(|_| unknown(action)),
    }
}

fn unknown(action: &str) -> ApiError {
    let names = Permission::ALL.map(Permission::name);
    let near = suggest::did_you_mean(action, names.into_iter().chain([RUN_SERVICE, VIEW_SECRET]));
    let message = format!("`{}` is not an action.{near}", action.chars().take(100).collect::<String>());
    ApiError::invalid("query_invalid", vec![json!("query"), json!("action")], message)
}
