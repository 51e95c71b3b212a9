//! The house as its callers see it, on both databases.

#![allow(unreachable_pub, missing_debug_implementations, reason = "a test binary has no callers")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod support;

mod access;
mod admin;
mod agent_keys;
mod agent_loops;
mod agenta_sdk;
mod agents;
mod aliases;
mod approvals;
mod attack;
mod audit;
mod binary;
mod bounded;
mod calls;
mod catalog;
mod chaos;
mod clock;
mod composio;
mod composio_events;
mod composio_faults;
mod connections;
mod consumers;
mod deliveries;
mod discovered;
mod discovery;
mod documents;
mod doors;
mod echoes;
mod edge;
mod embeddings;
mod environments;
mod failing;
mod histories;
mod hosted;
mod imports;
mod invoke;
mod mcp;
mod mcp_clients;
mod mcp_servers;
mod mistakes;
mod oauth;
mod oauth_clients;
mod oauth_server;
mod openapi;
mod ops;
mod pages;
mod people;
mod permissions;
mod providers;
mod quotas;
mod reserved;
mod resolve;
mod secrets;
mod shell;
mod sockets;
mod streams;
mod suggested;
mod triggers;
mod upstream_keys;
mod version_before;
mod whole_integrations;
mod workflows;
