//! `GET /workflows/runs/stats`: how many runs, and how they ended.

use std::collections::BTreeMap;

use axum::extract::State;
use document::ToSchema;
use serde::Serialize;
use workflows::{RunBucket, RunStats};

use crate::App;
use crate::edge::auth::ViewWorkflows;
use crate::edge::{ApiResult, Json, QueryOf, Scoped, StatsQuery};

/// The runs of a time.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunStatsAnswer {
    pub since: String,
    pub until: String,
    pub runs: u64,
    /// The same by how they ended.
    #[schema(example = json!({"succeeded": 20, "failed": 2, "waiting": 1, "cancelled": 0}))]
    pub states: BTreeMap<&'static str, u64>,
    pub buckets: Vec<RunBucketBody>,
}

/// The runs that began in a part of the time, and ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunBucketBody {
    pub from: String,
    pub runs: u64,
    pub failed: u64,
}

impl From<RunBucket> for RunBucketBody {
    fn from(bucket: RunBucket) -> Self {
        Self { from: bucket.from.to_string(), runs: bucket.runs, failed: bucket.failed }
    }
}

impl From<RunStats> for RunStatsAnswer {
    fn from(stats: RunStats) -> Self {
        Self {
            since: stats.period.since.to_string(),
            until: stats.period.until.to_string(),
            runs: stats.runs,
            states: stats.states,
            buckets: stats.buckets.into_iter().map(Into::into).collect(),
        }
    }
}

/// Count runs over a time
///
/// Runs count by when they began, once they have ended. A run that waits for an approval has not failed; its next try is a run of its own.
#[document::path(get, path = "/workflows/runs/stats", operation_id = "fetch_workflow_run_stats", tag = "Workflows", security(("key" = ["view_workflows"])),
    params(StatsQuery), responses((status = 200, body = RunStatsAnswer), (status = 422, description = "Not a time, or not so many parts")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewWorkflows>,
    State(app): State<App>,
    QueryOf(query): QueryOf<StatsQuery>,
) -> ApiResult<Json<RunStatsAnswer>> {
    Ok(Json(app.workflows.run_stats(scope, query.period(&app)?).await?.into()))
}
