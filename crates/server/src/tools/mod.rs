//! `/tools`: the catalog, connections, OAuth apps, and calls.

pub mod call;
pub mod calls;
pub mod catalog;
pub mod connections;
pub mod oauth_apps;
pub mod resolve;
