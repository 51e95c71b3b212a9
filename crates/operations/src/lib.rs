//! Operations: from an action and its arguments to an HTTP request, and from a service's answer to a tool's result. Compiling and building
//! are functions of values; `OperationRunner` sends. It must never know where an operation was written down, be it a manifest or an OpenAPI
//! document, nor anything of events.

mod action;
mod filters;
mod idempotency;
mod limits;
mod line;
mod operation;
mod output;
mod pairs;
mod param;
mod prove;
mod reply;
mod run;
mod service;
mod values;

pub use action::{ActionSpec, Pagination};
pub use idempotency::{Idempotency, KeyLocation, key_length};
pub use limits::TimeLimits;
pub use line::{RequestLine, placeholders};
pub use operation::{BuildError, Built, Encoding, Operation, RequestParts, Scalar};
pub use output::output_schema;
pub use param::{Param, ParamLocation, ParamText, Style, input_schema};
pub use reply::read as read_reply;
pub use run::{ActionRequest, OperationRunner, Unanswered, missing, needs};
pub use service::{AccountSpec, Failure, Service, ServiceSpec};
