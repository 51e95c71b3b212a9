//! What model APIs are asked and what they answer: OpenAI's Chat Completions and Responses, Anthropic's Messages, and the servers that
//! speak one of them. Owns the requests, the replies (whole and streamed), their errors and what they say about tokens. Functions of
//! values: it must never send anything, and knows neither credentials, nor tools, nor what a conversation is about.

mod anthropic;
mod chat;
mod error;
mod fields;
mod prompt;
mod reply;
mod responses;
mod schema;
mod sse;
mod stream;

pub use error::{ErrorKind, ModelError, retry_after};
pub use prompt::{Api, Message, Prompt, Request, Tool, ToolCall, UnknownApi, request};
pub use reply::{Reply, Stop, Usage, reply};
pub use stream::{Delta, StreamReader};
