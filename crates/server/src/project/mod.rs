//! `/project`: what a project says of itself.

pub mod branding;
pub mod connect_links;
pub mod retention;
pub mod user_limits;
