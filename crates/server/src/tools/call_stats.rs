//! `GET /tools/calls/stats`: how many calls, how many errors, how long they took.

use axum::extract::State;
use calls::{FailingTool, StatBucket};
use document::ToSchema;
use serde::Serialize;

use crate::App;
use crate::edge::auth::ViewTools;
use crate::edge::{ApiResult, Json, QueryOf, Scoped, StatsQuery};

/// The calls that began in a part of the time, and ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallBucketBody {
    pub from: String,
    pub calls: i64,
    /// Those with the outcome `error`, `failed` or `unknown`.
    pub errors: i64,
    /// How long half of them took at most, to within a tenth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    /// How long nineteen of twenty took at most, to within a tenth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<f64>,
}

impl From<StatBucket> for CallBucketBody {
    fn from(bucket: StatBucket) -> Self {
        let StatBucket { from, calls, errors, p50_ms, p95_ms } = bucket;
        Self { from: from.to_string(), calls, errors, p50_ms, p95_ms }
    }
}

/// A tool with errors.
#[derive(Debug, Serialize, ToSchema)]
pub struct FailingToolBody {
    pub tool: String,
    pub calls: i64,
    pub errors: i64,
    /// What the newest of them said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message: Option<String>,
}

impl From<FailingTool> for FailingToolBody {
    fn from(failing: FailingTool) -> Self {
        let FailingTool { tool, calls, errors, last_message } = failing;
        Self { tool, calls, errors, last_message }
    }
}

/// What happened in a time.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallStatsAnswer {
    pub since: String,
    pub until: String,
    pub calls: i64,
    pub errors: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<f64>,
    /// The same for each part of the time, the oldest first.
    pub buckets: Vec<CallBucketBody>,
    /// The ten tools with most errors, the worst first.
    pub failing: Vec<FailingToolBody>,
}

/// Count calls and errors over a time
///
/// Calls count by when they began. Those under way do not count yet, and those that wait for an approval were not made.
#[document::path(get, path = "/tools/calls/stats", operation_id = "fetch_tool_call_stats", tag = "Tools", security(("key" = ["view_tools"])),
    params(StatsQuery), responses((status = 200, body = CallStatsAnswer), (status = 422, description = "Not a time, or not so many parts")))]
pub(crate) async fn stats(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(query): QueryOf<StatsQuery>,
) -> ApiResult<Json<CallStatsAnswer>> {
    let period = query.period(&app)?;
    let stats = app.calls.call_stats(scope.project, period).await?;
    let StatBucket { calls, errors, p50_ms, p95_ms, .. } = stats.all;
    Ok(Json(CallStatsAnswer {
        since: period.since.to_string(),
        until: period.until.to_string(),
        calls,
        errors,
        p50_ms,
        p95_ms,
        buckets: stats.buckets.into_iter().map(Into::into).collect(),
        failing: stats.failing.into_iter().map(Into::into).collect(),
    }))
}
