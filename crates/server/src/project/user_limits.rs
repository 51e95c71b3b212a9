//! `/project/user-limits`: how many calls each end user of a project may make.

use accounts::UserLimits;
use axum::extract::State;
use document::ToSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::edge::auth::{EditMembers, ViewTools};
use crate::edge::{ApiResult, Json, Payload, Scoped};

/// How many calls each end user may make. What is absent is not limited.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserLimitsBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub calls_at_once: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub calls_per_minute: Option<u32>,
    /// In a day of UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub calls_per_day: Option<u32>,
}

/// The limits of each end user.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserLimitsAnswer {
    pub limits: UserLimitsBody,
}

fn answer(limits: UserLimits) -> Json<UserLimitsAnswer> {
    let UserLimits { at_once, per_minute, per_day } = limits;
    Json(UserLimitsAnswer { limits: UserLimitsBody { calls_at_once: at_once, calls_per_minute: per_minute, calls_per_day: per_day } })
}

/// Read how many calls each end user may make
#[document::path(get, path = "/project/user-limits", operation_id = "fetch_user_limits", tag = "Project", security(("key" = ["view_tools"])),
    responses((status = 200, body = UserLimitsAnswer)))]
pub(crate) async fn fetch(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<UserLimitsAnswer>> {
    Ok(answer(app.accounts.user_limits(scope.project).await?))
}

/// Say how many calls each end user may make
///
/// It takes the place of what was said before. A call beyond it is a 429. Each node of a deployment counts the calls that it is asked for.
#[document::path(put, path = "/project/user-limits", operation_id = "set_user_limits", tag = "Project", security(("key" = ["edit_members"])),
    request_body = UserLimitsBody, responses((status = 200, body = UserLimitsAnswer), (status = 422, description = "A limit that cannot be")))]
pub(crate) async fn set(
    Scoped(scope, _): Scoped<EditMembers>,
    State(app): State<App>,
    Payload(body): Payload<UserLimitsBody>,
) -> ApiResult<Json<UserLimitsAnswer>> {
    let limits = UserLimits { at_once: body.calls_at_once, per_minute: body.calls_per_minute, per_day: body.calls_per_day };
    app.accounts.set_user_limits(scope, limits).await?;
    Ok(answer(limits))
}
