//! `GET /triggers/stats`

use std::collections::BTreeMap;
use std::time::Duration;

use ::triggers::{Bucket, Overview, Window};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::App;
use crate::edge::auth::ViewTriggers;
use crate::edge::{ApiResult, Json, QueryOf, Scoped, moment};

const USUAL: Duration = Duration::from_hours(24);
const USUAL_BUCKETS: i64 = 24;

/// Which time, and into how many parts it is cut.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct StatsWindow {
    /// ISO 8601, `today`, `yesterday`, or how long ago, such as `2h`; a day before `until` by default.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub since: Option<String>,
    /// The same; now by default.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub until: Option<String>,
    /// 24 by default, 200 at most.
    #[param(minimum = 1, maximum = 200)]
    pub buckets: Option<i64>,
}

/// What came in, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriggerStats {
    pub since: String,
    pub until: String,
    /// The events that came in.
    pub events: u64,
    /// The deliveries that were made, of events and of schedules, by the state that they have now.
    #[schema(example = json!({"ready": 0, "leased": 0, "waiting": 1, "done": 20, "dead": 2, "cancelled": 0}))]
    pub deliveries: BTreeMap<&'static str, u64>,
    pub buckets: Vec<TriggerBucket>,
}

/// One part of the time.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriggerBucket {
    pub from: String,
    pub events: u64,
    /// Of the deliveries that were made then, how many are dead now.
    pub dead: u64,
}

impl From<Bucket> for TriggerBucket {
    fn from(bucket: Bucket) -> Self {
        Self { from: bucket.from.to_string(), events: bucket.events, dead: bucket.dead }
    }
}

impl From<Overview> for TriggerStats {
    fn from(overview: Overview) -> Self {
        Self {
            since: overview.since.to_string(),
            until: overview.until.to_string(),
            events: overview.events,
            deliveries: overview.deliveries,
            buckets: overview.buckets.into_iter().map(TriggerBucket::from).collect(),
        }
    }
}

/// Count events and deliveries over time
///
/// Of what is kept: ended deliveries and their events are dropped after `trigger_retention`.
#[utoipa::path(get, path = "/triggers/stats", operation_id = "fetch_trigger_stats", tag = "Triggers", security(("key" = ["view_triggers"])),
    params(StatsWindow), responses((status = 200, body = TriggerStats), (status = 422, description = "Not a time, a time that ends before it begins, or too many parts")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    QueryOf(window): QueryOf<StatsWindow>,
) -> ApiResult<Json<TriggerStats>> {
    let until = moment(&app, "until", window.until.as_deref())?.unwrap_or_else(|| app.clock.now());
    let since = moment(&app, "since", window.since.as_deref())?.unwrap_or_else(|| until.minus(USUAL));
    let window = Window::new(since, until, window.buckets.unwrap_or(USUAL_BUCKETS))?;
    Ok(Json(app.triggers.overview(scope.project, window).await?.into()))
}
