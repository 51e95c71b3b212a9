//! `/tools`: the catalog, apps, connections, OAuth apps, imports, calls and who may make them.

pub mod approvals;
pub mod call;
pub mod call_stats;
pub mod calls;
pub mod catalog;
pub mod connections;
pub mod discover;
pub mod hooks;
pub mod imports;
pub mod learned;
pub mod market;
pub mod notices;
pub mod oauth_apps;
pub mod ops;
pub mod resolve;
