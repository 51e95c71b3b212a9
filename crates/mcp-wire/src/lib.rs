//! The wire of the Model Context Protocol, for both of its ends: JSON-RPC messages, revisions, error codes and headers. Functions of values;
//! it must never know what a message leads to, nor which of the two ends uses it.
//!
//! `rmcp` 3.1 has model types for the same revisions, and they are not used here. They are some 13,000 lines for the whole protocol and
//! bring `futures` and `chrono`, where both of our ends pass tools, arguments and results on as they are and need the envelope alone. They
//! are also strict where we must not be and silent where we must speak: content of a kind that they do not know makes a result unreadable,
//! and a message that does not fit is refused without the id that our answer has to repeat.

pub mod code;
pub mod header;
mod message;
pub mod meta;
mod version;

pub use message::{Malformed, Message, Request, RequestId, Unreadable, error, notification, request, result};
pub use version::Version;
