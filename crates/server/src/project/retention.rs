//! `/project/retention`: for how long a project keeps its records.

use accounts::{LongestRetention, Retention, whole_days};
use axum::extract::State;
use document::ToSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::edge::auth::{EditMembers, ViewTools};
use crate::edge::{ApiResult, Json, Payload, Scoped};

/// For how many days records are kept. What is absent is left to the deployment.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionBody {
    /// Runs of workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2)]
    pub run_days: Option<u32>,
    /// The record of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2)]
    pub call_days: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2)]
    pub approval_days: Option<u32>,
}

/// The project's word, and what the deployment keeps at most.
#[derive(Debug, Serialize, ToSchema)]
pub struct RetentionAnswer {
    pub retention: RetentionBody,
    pub deployment: RetentionBody,
}

impl From<Retention> for RetentionBody {
    fn from(retention: Retention) -> Self {
        Self { run_days: retention.runs, call_days: retention.calls, approval_days: retention.approvals }
    }
}

fn answer(retention: Retention, longest: LongestRetention) -> Json<RetentionAnswer> {
    let LongestRetention { runs, calls, approvals } = longest;
    let [runs, calls, approvals] = [runs, calls, approvals].map(|time| Some(whole_days(time)));
    Json(RetentionAnswer { retention: retention.into(), deployment: Retention { runs, calls, approvals }.into() })
}

fn longest(app: &App) -> LongestRetention {
    let limits = app.calls.limits();
    LongestRetention { runs: app.workflows.run_retention(), calls: limits.call_retention, approvals: limits.approval_retention }
}

/// Read for how long the project keeps its records
#[document::path(get, path = "/project/retention", operation_id = "fetch_retention", tag = "Project", security(("key" = ["view_tools"])),
    responses((status = 200, body = RetentionAnswer)))]
pub(crate) async fn fetch(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<RetentionAnswer>> {
    Ok(answer(app.accounts.retention(scope.project).await?, longest(&app)))
}

/// Say for how long the project keeps its records
///
/// For a shorter time than the deployment, never for a longer one. It takes the place of what was said before, and what is older is dropped within
/// minutes.
#[document::path(put, path = "/project/retention", operation_id = "set_retention", tag = "Project", security(("key" = ["edit_members"])),
    request_body = RetentionBody, responses((status = 200, body = RetentionAnswer), (status = 422, description = "Not so many days")))]
pub(crate) async fn set(
    Scoped(scope, _): Scoped<EditMembers>,
    State(app): State<App>,
    Payload(body): Payload<RetentionBody>,
) -> ApiResult<Json<RetentionAnswer>> {
    let RetentionBody { run_days, call_days, approval_days } = body;
    let retention = Retention { runs: run_days, calls: call_days, approvals: approval_days };
    app.accounts.set_retention(scope, retention, longest(&app)).await?;
    Ok(answer(retention, longest(&app)))
}
