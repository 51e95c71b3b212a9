//! The adapters: one folder per provider, each behind the ports of the domains. An adapter knows its provider's wire format; it must
//! never know a caller, a permission or a row.

pub mod composio;
mod limits;
pub mod mcp;
pub mod native;
pub mod openapi;

pub use limits::TimeLimits;
