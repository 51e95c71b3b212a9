//! What can go wrong with a message. A tool that fails is no fault: it is a result that says so.

use mcp_wire::{Malformed, code};
use serde_json::{Value, json};

use crate::version::SERVED;
use crate::{RequestId, Version};

/// Why a message has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RpcError {
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

impl RpcError {
    /// A failure of ours: logged with its cause, told with an id that leads to the log.
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        let support = uuid::Uuid::now_v7();
        tracing::error!(%support, %cause, "internal failure");
        Self::Internal(support)
    }

    pub fn code(&self) -> i64 {
        match self {
            Self::Parse(_) => code::PARSE_ERROR,
            Self::Request(_) => code::INVALID_REQUEST,
            Self::Method(_) => code::METHOD_NOT_FOUND,
            Self::Params(_) => code::INVALID_PARAMS,
            Self::Internal(_) => code::INTERNAL_ERROR,
            Self::Header(_) => code::HEADER_MISMATCH,
            Self::Capability(_) => code::MISSING_CAPABILITY,
            Self::Version(_) => code::UNSUPPORTED_VERSION,
            Self::Cancelled => code::REQUEST_CANCELLED,
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
        let data = match self {
            Self::Version(requested) => Some(json!({"supported": SERVED.map(Version::name), "requested": requested})),
            Self::Capability(needed) => Some(json!({"requiredCapabilities": needed})),
            _ => None,
        };
        mcp_wire::error(id, self.code(), &self.to_string(), data)
    }
}

impl From<Malformed> for RpcError {
    fn from(why: Malformed) -> Self {
        match why {
            Malformed::Message(why) => Self::Request(why.to_owned()),
            Malformed::Params(why) => Self::Params(why.to_owned()),
        }
    }
}
