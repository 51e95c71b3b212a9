//! The words that every room shares: ids, slugs, call refs, scope and permissions, the clock, sealing, templates, schema checks and
//! budgets of work. Pure values and functions; it must never know a database, a socket or a file.

pub mod access;
pub mod budget;
pub mod call_ref;
mod end_user;
pub mod hex;
pub mod id;
pub mod json;
pub mod key;
mod keyed_lock;
mod language;
mod origin;
mod period;
pub mod schema;
pub mod scrub;
pub mod seal;
mod shared;
pub mod signed;
pub mod slug;
pub mod suggest;
pub mod template;
pub mod time;

/// Makes an async function answer with a boxed future. What other crates await is compiled once, where it stands: without the box, each of
/// them would compile it again, with all that it awaits itself.
pub use async_recursion::async_recursion as boxed;

pub use access::{Permission, PermissionSet, Role, Scope};
pub use budget::{Budget, Exceeded, Limits};
pub use call_ref::{CallName, CallRef};
pub use end_user::{AccountOwner, BadEndUserName, EndUserName};
pub use id::{
    AgentId, AppId, ApprovalId, ArtifactId, AuthConfigId, CallId, ComposioWebhookId, ConnectionId, DeliveryId, EndUserId, EventId, GrantId,
    HookId, HookMessageId, Id, ImportId, InvitationId, KeyId, MemberId, NoticeId, ProjectId, RevisionId, RunId, ScheduleId, SecretId,
    SecretReadId, SessionId, SubscriptionId, UseCaseId, UserId, UserSessionId, VariantId,
};
pub use keyed_lock::{Keyed, KeyedLock};
pub use language::{Language, UnknownLanguage};
pub use origin::Origin;
pub use period::{NotAPeriod, Period};
pub use scrub::Scrubber;
pub use shared::{Shared, WeakShared};
pub use slug::Slug;
pub use time::{Clock, Timestamp};
