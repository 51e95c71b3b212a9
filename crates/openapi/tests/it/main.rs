#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod public_documents;
