//! The house as its callers see it, on both databases.

#![allow(unreachable_pub, missing_debug_implementations, reason = "a test binary has no callers")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod support;

mod admin;
mod agent_loops;
mod agents;
mod approvals;
mod binary;
mod calls;
mod catalog;
mod chaos;
mod composio;
mod composio_events;
mod composio_faults;
mod connections;
mod consumers;
mod deliveries;
mod discovered;
mod discovery;
mod documents;
mod edge;
mod environments;
mod failing;
mod hosted;
mod imports;
mod invoke;
mod mcp;
mod mcp_clients;
mod mcp_servers;
mod mistakes;
mod oauth;
mod openapi;
mod ops;
mod providers;
mod reserved;
mod resolve;
mod shell;
mod suggested;
mod triggers;
mod upstream_keys;
mod walk;
mod workflows;
