//! Exchanges with each API, as its public documents describe them.

mod anthropic;
mod chat;
mod recorded;
mod responses;
mod splits;
mod support;
