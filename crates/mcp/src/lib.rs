//! The Model Context Protocol: from JSON-RPC messages to the tools of a project or an agent and back. It speaks 2025-03-26 up to 2026-07-28
//! and keeps no sessions. It must never know a route, a table or how a tool is run.

mod agent;
mod answer;
mod approval;
mod client;
mod conformance;
mod connect;
mod fault;
mod find;
mod listen;
mod live;
mod message;
mod mirror;
mod outbox;
mod page;
mod project;
mod reply;
mod server;
mod surface;
mod version;

pub use agent::AgentTools;
pub use answer::Answer;
pub use approval::Approver;
pub use client::Client;
pub use conformance::Conformance;
pub use fault::Fault;
pub use find::{SearchMode, Searchable};
pub use message::{Message, Request, RequestId, Unreadable};
pub use project::ProjectTools;
pub use server::Mcp;
pub use surface::{Call, Outcome, Page, Progress, Surface};
pub use version::Version;
