//! `/end-users` and `/sessions`: the people whom a project's agents serve, and what each may use for a while.

mod access;
pub mod rows;
pub mod session_tools;
pub mod session_triggers;
pub mod sessions;

pub(crate) use access::InSession;
