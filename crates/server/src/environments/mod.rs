//! `/environments`: what is deployed where.

pub mod history;
pub mod simple;
