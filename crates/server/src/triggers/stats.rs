//! `GET /triggers/stats`

use std::collections::BTreeMap;

use ::triggers::{Bucket, Overview};
use axum::extract::State;
use document::ToSchema;
use serde::Serialize;

use crate::App;
use crate::edge::auth::ViewTriggers;
use crate::edge::{ApiResult, Json, QueryOf, Scoped, StatsQuery};

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
#[document::path(get, path = "/triggers/stats", operation_id = "fetch_trigger_stats", tag = "Triggers", security(("key" = ["view_triggers"])),
    params(StatsQuery), responses((status = 200, body = TriggerStats), (status = 422, description = "Not a time, a time that ends before it begins, or too many parts")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewTriggers>,
    State(app): State<App>,
    QueryOf(query): QueryOf<StatsQuery>,
) -> ApiResult<Json<TriggerStats>> {
    Ok(Json(app.triggers.overview(scope.project, query.period(&app)?).await?.into()))
}
