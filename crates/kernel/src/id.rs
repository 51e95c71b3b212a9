//! Ids: a UUID with the kind of thing it names, so that one kind cannot be passed for another.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The id of a `T`.
pub struct Id<T>(Uuid, PhantomData<fn() -> T>);

macro_rules! kinds {
    ($($kind:ident => $alias:ident),* $(,)?) => {
        /// The kinds of things that have ids; they have no values.
        pub mod kind {
            $(#[derive(Debug)] pub enum $kind {})*
        }
        $(pub type $alias = Id<kind::$kind>;)*
    };
}

kinds! {
    User => UserId,
    Project => ProjectId,
    Key => KeyId,
    Connection => ConnectionId,
    App => AppId,
    Call => CallId,
    Artifact => ArtifactId,
    Variant => VariantId,
    Revision => RevisionId,
    Run => RunId,
    Approval => ApprovalId,
    Notice => NoticeId,
    UseCase => UseCaseId,
    Subscription => SubscriptionId,
    Schedule => ScheduleId,
    Event => EventId,
    Delivery => DeliveryId,
    Agent => AgentId,
    Import => ImportId,
    Secret => SecretId,
    SecretRead => SecretReadId,
    Member => MemberId,
    Invitation => InvitationId,
    Session => SessionId,
    Grant => GrantId,
    EndUser => EndUserId,
    UserSession => UserSessionId,
    Hook => HookId,
    HookMessage => HookMessageId,
    AuthConfig => AuthConfigId,
    ComposioWebhook => ComposioWebhookId,
}

impl<T> Id<T> {
    /// A new id; ids of one process sort by time of creation.
    pub fn new() -> Self {
        Self(Uuid::now_v7(), PhantomData)
    }

    /// The id that no row has.
    pub const fn nil() -> Self {
        Self(Uuid::nil(), PhantomData)
    }

    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl<T> Default for Id<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<Uuid> for Id<T> {
    fn from(uuid: Uuid) -> Self {
        Self(uuid, PhantomData)
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Id<T> {}

impl<T> std::hash::Hash for Id<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> fmt::Display for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> FromStr for Id<T> {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(|uuid| Self(uuid, PhantomData))
    }
}

impl<T> Serialize for Id<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Id<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Uuid::deserialize(deserializer).map(|uuid| Self(uuid, PhantomData))
    }
}
