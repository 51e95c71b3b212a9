//! `/workflows`: histories, deployments, runs.

pub mod check;
pub mod deploy;
pub mod history;
pub mod invoke;
pub mod run_stats;
pub mod runs;
pub mod simple;
pub mod stream;
