//! Every outbound HTTP call: the guard against private addresses, time and size limits, redirects, retries and rate limits.
//! It must never know what a call is for: no integrations, no credentials by name, no tenants, no database; and nothing it
//! prints may hold a path, a query, a header or a body.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should"))]

mod address;
mod allow;
mod client;
mod connect;
mod error;
mod events;
mod guard;
mod limit;
mod message;
mod queued;
mod redacted;
mod redirect;
mod resolver;
mod retry;
mod stream;
pub mod webhook;

pub use allow::Allow;
pub use client::{Config, Egress};
pub use error::EgressError;
pub use events::{Events, TooLong};
pub use limit::RateLimit;
pub use message::{Redirects, Request, Response, Retry};
pub use queued::queued;
pub use redacted::Redacted;
pub use stream::Opened;
