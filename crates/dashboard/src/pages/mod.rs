//! One file for each section: what its pages ask the API, and their routes.

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod calls;
pub(crate) mod catalog;
pub(crate) mod connections;
pub(crate) mod deliveries;
pub(crate) mod end_users;
pub(crate) mod home;
pub(crate) mod imports;
pub(crate) mod operator;
pub(crate) mod permissions;
pub(crate) mod settings;
pub(crate) mod triggers;
pub(crate) mod try_tool;
pub(crate) mod workflows;
