#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod events;
mod public_documents;
mod vendors;
mod webhooks;
