//! What waits to be run by triggers, how late it is, and how it ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use triggers::Triggers;

/// Metrics are read also while the database is away.
const PATIENCE: Duration = Duration::from_secs(1);

/// Read from the database when somebody asks; how deliveries ended is counted by this process.
#[derive(Debug)]
pub(super) struct TriggerMetrics {
    queue: Family<StateLabels, Gauge>,
    queue_lag: Gauge<f64, AtomicU64>,
    schedule_lag: Gauge<f64, AtomicU64>,
    ended: Family<StateLabels, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

impl TriggerMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics =
            Self { queue: Family::default(), queue_lag: Gauge::default(), schedule_lag: Gauge::default(), ended: Family::default() };
        registry.register("trigger_queue_depth", "Deliveries that have not ended, of all nodes", metrics.queue.clone());
        registry.register("trigger_queue_lag_seconds", "Age of the oldest delivery that is due", metrics.queue_lag.clone());
        registry.register("trigger_schedule_lag_seconds", "How late the oldest due schedule is", metrics.schedule_lag.clone());
        registry.register("trigger_deliveries_ended", "Deliveries that ended on this node", metrics.ended.clone());
        metrics
    }

    pub(super) async fn read(&self, triggers: &Triggers) {
        let ended = triggers.ended();
        for (state, count) in [("done", ended.done), ("dead", ended.dead), ("cancelled", ended.cancelled)] {
            self.ended.get_or_create(&StateLabels { state }).inner().store(count, Ordering::Relaxed);
        }
        let Ok(Ok(stats)) = tokio::time::timeout(PATIENCE, triggers.stats()).await else {
            // What nobody could count is unknown, and not what it was before.
            self.queue.clear();
            self.queue_lag.set(f64::NAN);
            self.schedule_lag.set(f64::NAN);
            return;
        };
        for (state, count) in [("due", stats.due), ("later", stats.later), ("leased", stats.leased), ("waiting", stats.waiting)] {
            self.queue.get_or_create(&StateLabels { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.queue_lag.set(stats.queue_lag.as_secs_f64());
        self.schedule_lag.set(stats.schedule_lag.as_secs_f64());
    }
}
