//! What every request passes through, whatever it is for.

pub mod auth;
pub(crate) mod bearer;
mod code;
pub(crate) mod end_user;
pub mod error;
pub mod extract;
mod json;
pub mod mount;
mod node;
pub(crate) mod page;
pub mod read;
pub mod session;
mod stats;
pub mod watch;

pub use auth::{Operator, Scoped};
pub use code::Code;
pub use error::{ApiError, ApiResult};
pub use extract::{LargePayload, NoFilters, OptionalPayload, PathOf, Payload, QueryOf, moment};
pub use json::Json;
pub(crate) use read::CONTEXT;
pub use read::Unused;
pub use session::{Peer, Signed};
pub use stats::StatsQuery;
