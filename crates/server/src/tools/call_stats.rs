//! `GET /tools/calls/stats`: how many calls, how many errors, how long they took.

use axum::extract::State;
use calls::{FailingTool, Period, StatBucket};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::App;
use crate::edge::auth::ViewTools;
use crate::edge::extract::moment;
use crate::edge::{ApiResult, Json, QueryOf, Scoped};

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

/// Which time, and in how many parts.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct StatsQuery {
    /// ISO 8601, `today`, `yesterday`, or how long ago, such as `2h`; 24 hours before `until` by default.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub since: Option<String>,
    /// Before this time, written in the same ways; now by default.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub until: Option<String>,
    /// 24 by default, 200 at most.
    #[param(minimum = 1, maximum = 200)]
    pub buckets: Option<i64>,
}

/// Count calls and errors over a time
///
/// Calls count by when they began; those under way do not count yet.
#[utoipa::path(get, path = "/tools/calls/stats", operation_id = "fetch_tool_call_stats", tag = "Tools", security(("key" = ["view_tools"])),
    params(StatsQuery), responses((status = 200, body = CallStatsAnswer), (status = 422, description = "Not a time, or not so many parts")))]
pub(crate) async fn stats(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(query): QueryOf<StatsQuery>,
) -> ApiResult<Json<CallStatsAnswer>> {
    let (since, until) = (moment(&app, "since", query.since.as_deref())?, moment(&app, "until", query.until.as_deref())?);
    let period = Period::new(since, until, query.buckets, app.clock.now())?;
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
