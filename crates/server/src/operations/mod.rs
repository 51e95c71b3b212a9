//! What keeps a deployment running: the first page, health, readiness, metrics, the document and its page.

pub mod docs;
pub mod health;
mod metrics;
pub mod root;
mod trigger_metrics;

pub use metrics::Metrics;
pub(crate) use metrics::{__path_metrics, metrics};
