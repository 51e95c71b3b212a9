//! The words that every room shares: ids, slugs, call refs, scope and permissions, the clock, sealing, templates and schema checks.
//! Pure values and functions; it must never know a database, a socket or a file.

pub mod access;
pub mod call_ref;
pub mod hex;
pub mod id;
pub mod json;
pub mod key;
mod origin;
pub mod schema;
pub mod seal;
pub mod signed;
pub mod slug;
pub mod suggest;
pub mod template;
pub mod time;

pub use access::{Permission, PermissionSet, Role, Scope};
pub use call_ref::CallRef;
pub use id::{
    AgentId, AppId, ApprovalId, ArtifactId, CallId, ConnectionId, DeliveryId, EventId, Id, ImportId, KeyId, ProjectId, RevisionId, RunId,
    ScheduleId, SubscriptionId, UseCaseId, UserId, VariantId,
};
pub use origin::Origin;
pub use slug::Slug;
pub use time::{Clock, Timestamp};
