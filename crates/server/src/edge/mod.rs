//! What every request passes through, whatever it is for.

pub mod auth;
pub mod error;
pub mod extract;
pub mod mount;
pub mod read;
pub mod watch;

pub use auth::{Operator, Scoped};
pub use error::{ApiError, ApiResult};
pub use extract::{LargePayload, NoFilters, OptionalPayload, PathOf, Payload, QueryOf, moment};
pub use read::Unused;
