//! `/triggers`: the catalog of events, and the same connections as `/tools`.

pub mod catalog;
pub mod connections;
