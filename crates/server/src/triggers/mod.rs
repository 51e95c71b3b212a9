//! `/triggers`: the catalog of events, the same connections as `/tools`, subscriptions, schedules, deliveries, and where events come in.

pub mod bodies;
pub mod catalog;
pub mod connections;
pub mod deliveries;
pub mod ingress;
pub mod schedules;
pub mod stats;
pub mod subscriptions;
