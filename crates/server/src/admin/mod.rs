//! The operator's routes: accounts, projects and keys.

pub mod keys;
pub mod projects;
pub mod simple_accounts;
