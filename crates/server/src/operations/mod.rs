//! What keeps a deployment running: the first page, health, readiness, metrics, the document and its page.

pub mod docs;
pub mod health;
pub(crate) mod metrics;
pub mod root;
mod trigger_metrics;

pub use metrics::Metrics;
