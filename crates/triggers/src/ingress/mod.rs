//! Requests that providers send: proofs that no manifest describes, and the parts that all proofs share.

mod builtin;
pub mod codec;
pub(crate) mod plain;
pub mod proof;
pub mod receive;
pub mod timestamp;

pub use builtin::{standard_webhooks, verify};
pub use plain::SCHEMES;
