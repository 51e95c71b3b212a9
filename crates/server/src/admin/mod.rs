//! The operator's routes: accounts, projects, keys, and how the deployment stands.

pub mod keys;
pub mod projects;
pub mod simple_accounts;
pub mod status;
