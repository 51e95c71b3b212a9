//! The Model Context Protocol, as a server: from messages to the tools of a project or an agent and back. It speaks 2025-03-26 up to
//! 2026-07-28 and keeps no sessions; what messages look like is `mcp-wire`'s business. It must never know a route, a table or how a tool is
//! run.

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
mod mirror;
mod outbox;
mod page;
mod project;
mod reply;
mod server;
mod session;
mod surface;
mod version;

pub use agent::AgentTools;
pub use answer::Answer;
pub use approval::{Approver, Domains};
pub use client::Client;
pub use conformance::Conformance;
pub use fault::RpcError;
pub use find::{SearchMode, Searchable};
pub use mcp_wire::{Request, RequestId, Version, header};
pub use project::ProjectTools;
pub use server::Mcp;
pub use session::{MissingAccount, SessionFault, SessionTools};
pub use surface::{Call, CallOutcome, Page, Progress, Surface};
