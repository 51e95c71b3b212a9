//! A model server that plays scripted conversations over OpenAI's Chat Completions and Responses and Anthropic's Messages, for tests,
//! benches and demos. It owns the scripts, checks conversations as the real servers do, and goes wrong on request. Nothing of ours uses
//! it but tests and the bench, and it knows nothing of ours.

mod anthropic;
mod chat;
mod conversation;
mod responses;
mod script;
mod server;
mod stream;

pub use conversation::{Api, Call, Conversation, Said};
pub use script::{Fault, Script, Turn};
pub use server::{Asked, ModelServer};
