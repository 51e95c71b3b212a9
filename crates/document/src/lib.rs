//! Owns how routes and bodies are described: `path` names the place of a handler and says what it takes and answers, `ToSchema` and
//! `IntoParams` say what bodies and queries look like. Built with the feature `describe`, as tests are, the descriptions are utoipa's and
//! become the OpenAPI document; without it they are left out, because the document that is served was made before.
//!
//! Must never know: any route or body.

#[cfg(not(feature = "describe"))]
pub use document_macros::{IntoParams, ToSchema};
pub use document_macros::{path, routes};
#[cfg(feature = "describe")]
pub use utoipa::{IntoParams, ToSchema};

/// Where a handler answers.
pub trait Place {
    /// The method, in capitals.
    const METHOD: &'static str;
    const PATH: &'static str;
}
