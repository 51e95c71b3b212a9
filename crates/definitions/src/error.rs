//! What can go wrong with definitions.

use connections::ConnectionError;
use kernel::Permission;
use secrets::SecretError;
use workflows::WorkflowError;

use crate::config::ConfigError;
use crate::format::NameCollision;

/// Why tools were not resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("A `{0}` tool cannot be resolved here; give builtin, gateway and gateway_connection tools.")]
    Kind(&'static str),
    #[error("Invalid tool slug: {reference} — Invalid slug segment: '{segment}'")]
    Segment { reference: String, segment: String },
    #[error("{0}")]
    Op(String),
    #[error("Tool `{tool}`: {error}")]
    Secret { tool: String, error: SecretError },
    #[error("The tools have different callbacks: {0} and {1}")]
    TwoCallbacks(String, String),
    #[error("Provider not found: {0}")]
    Provider(String),
    /// The key may see tools, but not what these embed.
    #[error("This key lacks `{0}`, which this tool needs.")]
    Forbidden(Permission),
    #[error("Integration not found: {0}")]
    IntegrationNotFound(String),
    #[error("Connection not found: {0}")]
    ConnectionNotFound(String),
    #[error("Action not found: {0}")]
    ActionNotFound(String),
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
    #[error(transparent)]
    Names(#[from] NameCollision),
}
