//! What can go wrong with a message. A tool that fails is no fault: it is a result that says so.

use serde_json::{Value, json};

use crate::{RequestId, Version};

/// Why a message has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error("Parse error: {0}")]
    Parse(String),
    #[error("Invalid request: {0}")]
    Request(String),
    #[error("Method not found: {0}")]
    Method(String),
    #[error("{0}")]
    Params(String),
    /// Headers that are missing or say something else than the body.
    #[error("Header mismatch: {0}")]
    Header(String),
    /// The client would have to be able to do what it did not declare.
    #[error("The client did not declare what this needs: {0}")]
    Capability(Value),
    #[error("Unsupported protocol version: {0}")]
    Version(String),
    #[error("The request was cancelled.")]
    Cancelled,
    /// Ours; the log has the cause.
    #[error("Internal error. The log has it as {0}.")]
    Internal(uuid::Uuid),
}

impl Fault {
    /// A failure of ours: logged with its cause, told with an id that leads to the log.
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        let support = uuid::Uuid::now_v7();
        tracing::error!(%support, %cause, "internal failure");
        Self::Internal(support)
    }

    pub fn code(&self) -> i64 {
        match self {
            Self::Parse(_) => -32700,
            Self::Request(_) => -32600,
            Self::Method(_) => -32601,
            Self::Params(_) => -32602,
            Self::Internal(_) => -32603,
            Self::Header(_) => -32020,
            Self::Capability(_) => -32021,
            Self::Version(_) => -32022,
            Self::Cancelled => -32800,
        }
    }

    /// The HTTP status. Before 2026-07-28 a request that could be read is answered with 200, whatever became of it.
    pub fn status(&self, version: Version) -> u16 {
        match self {
            Self::Parse(_) | Self::Request(_) | Self::Header(_) | Self::Version(_) => 400,
            Self::Params(_) | Self::Capability(_) if version.is_stateless() => 400,
            Self::Method(_) if version.is_stateless() => 404,
            _ => 200,
        }
    }

    /// The JSON-RPC error.
    pub fn body(&self, id: Option<&RequestId>) -> Value {
        let mut error = json!({"code": self.code(), "message": self.to_string()});
        match self {
            Self::Version(requested) => error["data"] = json!({"supported": Version::names(), "requested": requested}),
            Self::Capability(needed) => error["data"] = json!({"requiredCapabilities": needed}),
            _ => {}
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }
}
