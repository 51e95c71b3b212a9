//! Counters and timings in Prometheus' text format.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use calls::Outcome;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::trigger_metrics::TriggerMetrics;
use crate::App;
use crate::edge::ApiError;

const SECONDS: [f64; 10] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// The metrics of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    calls: Family<OutcomeLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
    calls_unwritten: Gauge,
    broken_connections: Family<BrokenLabels, Gauge>,
    embeddings: Family<OutcomeLabels, Counter>,
    triggers: TriggerMetrics,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BrokenLabels {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    method: String,
    route: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("toolyard");
        let requests = Family::default();
        let durations: Family<RouteLabels, Histogram, fn() -> Histogram> = Family::new_with_constructor(|| Histogram::new(SECONDS));
        let calls = Family::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register("tool_calls", "Calls of tools, by how they ended", calls.clone());
        registry.register("http_request_duration_seconds", "Time to answer a request", durations.clone());
        let calls_unwritten = Gauge::default();
        let help = "Calls that ended and that the database did not take yet";
        registry.register("tool_calls_unwritten", help, calls_unwritten.clone());
        let broken_connections = Family::default();
        let help = "Connections that are not valid, or whose service refuses the credential";
        registry.register("broken_connections", help, broken_connections.clone());
        let embeddings = Family::default();
        let help = "Requests to the embeddings API, by how they ended, and use cases that were not asked about";
        registry.register("embeddings_requests", help, embeddings.clone());
        let triggers = TriggerMetrics::new(&mut registry);
        Self { registry, requests, calls, durations, calls_unwritten, broken_connections, embeddings, triggers }
    }
}

impl Metrics {
    /// Takes over what the tools counted themselves.
    fn calls(&self, counts: impl IntoIterator<Item = (Outcome, u64)>) {
        for (outcome, count) in counts {
            let labels = OutcomeLabels { outcome: outcome.name() };
            self.calls.get_or_create(&labels).inner().store(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn request(&self, method: &str, route: &str, status: u16, elapsed: Duration) {
        // A method that nobody knows would let callers make labels without end.
        let known = matches!(method, "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS");
        let method = if known { method } else { "OTHER" };
        let labels = RequestLabels { method: method.to_owned(), route: route.to_owned(), status };
        self.requests.get_or_create(&labels).inc();
        let labels = RouteLabels { method: method.to_owned(), route: route.to_owned() };
        self.durations.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }
}

/// Metrics for Prometheus
#[document::path(get, path = "/metrics", operation_id = "metrics", tag = "Operations",
    responses((status = 200, description = "Prometheus text format", body = String, content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    match app.connections.broken().await {
        Ok(broken) => {
            for (state, count) in [("not_valid", broken.not_valid), ("failing", broken.failing)] {
                app.metrics.broken_connections.get_or_create(&BrokenLabels { state }).set(count);
            }
        }
        Err(error) => tracing::warn!(%error, "broken connections could not be counted"),
    }
    app.metrics.calls(app.calls.call_counts());
    app.metrics.calls_unwritten.set(i64::try_from(app.calls.unwritten_calls()).unwrap_or(i64::MAX));
    if let Some(remote) = app.catalog.remote_embedder() {
        let counts = remote.counts();
        for (outcome, count) in [("ok", counts.answered), ("failed", counts.failed), ("dropped", counts.dropped)] {
            app.metrics.embeddings.get_or_create(&OutcomeLabels { outcome }).inner().store(count, Ordering::Relaxed);
        }
    }
    app.metrics.triggers.read(&app.triggers).await;
    let mut text = String::new();
    encode(&mut text, &app.metrics.registry).map_err(|error| ApiError::internal(&error))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(http::header::CONTENT_TYPE, kind)], text).into_response())
}
