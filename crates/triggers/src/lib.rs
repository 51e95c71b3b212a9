//! Events and clocks that start workflows: subscriptions, schedules, ingress, deliveries and the engine that runs them. It must never know
//! what a tool is, nor how a provider writes its requests.

pub mod backoff;
pub mod ingress;
pub mod mapping;
mod port;
pub mod schedule;
mod spread;

pub use port::{Answer, EventSource, Incoming, Item, Judged, Polled, Refusal, Registered, Verified, Watch, WatchError, Way};
