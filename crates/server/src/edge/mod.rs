//! What every request passes through, whatever it is for.

pub mod auth;
pub mod error;
pub mod extract;
pub mod mount;
pub mod watch;

pub use auth::{Operator, Scoped};
pub use error::{ApiError, ApiResult};
pub use extract::{LargePayload, OptionalPayload, PathOf, Payload, QueryOf};
