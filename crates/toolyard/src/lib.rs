//! The binary: commands, configuration, wiring, start and stop. The only place that knows every room; it must never hold a rule of one.

pub mod commands;
pub mod config;
mod files;
pub mod log;
mod upkeep;
pub mod vault;
pub mod yard;

pub use commands::run;
