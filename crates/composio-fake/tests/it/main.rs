//! The stand-in through its API.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod accounts;
mod catalog;
mod document;
mod execute;
mod faults;
mod support;
mod triggers;
