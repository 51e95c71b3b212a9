//! The port: what a provider does for subscriptions.

use std::time::Duration;

use catalog::{Event, Integration};
use connections::Usable;
use egress::EgressError;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use kernel::{ConnectionId, ProjectId, Timestamp};
use serde_json::{Map, Value};

/// A request that claims to come from a provider.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    pub method: &'a str,
    /// The address as it was given to the provider, never one read from the request: it may be part of what is signed.
    pub url: &'a str,
    /// The decoded parameters of the query.
    pub query: &'a [(String, String)],
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
}

/// A request that its provider sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// When it was signed, in seconds since 1970.
    pub timestamp: Option<i64>,
    /// The signature that matched, as lower-case hex; for a bare token, a digest of token and body.
    pub signature: String,
    /// The sender's id, where it stands in a header.
    pub id: Option<String>,
}

/// Why a request is not taken. A sender learns no more than that it is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("no secret is known for it")]
    NoSecret,
    #[error("the secret cannot be used as a key")]
    BadSecret,
    #[error("`{0}` is missing")]
    Missing(String),
    #[error("`{0}` is malformed")]
    Malformed(String),
    #[error("it was signed too long ago, or in the future")]
    Stale,
    #[error("the signature is another one")]
    Mismatch,
    #[error("its scheme cannot be checked: {0}")]
    Scheme(String),
    #[error("the body is not JSON")]
    NotJson,
}

/// A request, judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Judged {
    /// A handshake: answered at once, and nothing else happens. A secret that came with it is kept.
    Handshake { answer: Answer, secret: Option<String> },
    /// An event; `keys` are the events of the integration that it is, none when it is one that nobody described.
    Event { verified: Option<Verified>, keys: Vec<String>, id: String, payload: Value },
}

/// What a handshake wants back.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Text(String),
    Json(Value),
    Header { name: String, value: String },
}

/// How events of one kind come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchMethod {
    /// The provider is told where to send them.
    Register,
    /// A person tells the provider; the text says how.
    ByHand(Option<String>),
    /// They are asked for, this often.
    Poll(Duration),
}

/// What is watched, through which account.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    pub integration: &'a Integration,
    pub event: &'a Event,
    /// The subscriber's `trigger_config`.
    pub config: &'a Map<String, Value>,
    pub project: ProjectId,
    pub connection: ConnectionId,
    pub usable: &'a Usable,
    /// Where events are to be sent.
    pub url: &'a str,
    /// With what they are to be signed, where we choose.
    pub secret: &'a str,
    /// The client secret of the connection's OAuth app, when a webhook is made.
    pub client_secret: Option<&'a str>,
}

/// A webhook that the provider made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// The provider's name for it, to remove it by.
    pub remote: Option<String>,
    /// The provider's secret, where it chooses.
    pub secret: Option<String>,
}

/// Something new that polling found.
#[derive(Clone, Debug, PartialEq)]
pub struct PolledItem {
    pub id: String,
    pub payload: Value,
}

/// What a poll found, oldest first, and where to go on. The first poll, without a cursor, finds nothing and remembers what was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Polled {
    pub items: Vec<PolledItem>,
    pub cursor: Value,
}

/// Why a provider did not do what was asked.
#[derive(Debug)]
pub enum WatchError {
    /// The request could not be made from this configuration or connection.
    Config(String),
    /// The provider refused the credential.
    Unauthorized(String),
    /// The provider takes the credential, and does not let it do this.
    Forbidden(String),
    /// The provider refused, or answered with something that is no answer.
    Upstream(String),
    /// The provider failed.
    Server { status: u16, message: String },
    /// The provider could not be reached, or not in time.
    Unreachable(EgressError),
}

/// Where the events of one provider come from.
pub trait EventSource: Send + Sync + std::fmt::Debug {
    /// How events of this kind come; none when there is no such event.
    fn method(&self, integration: &str, event: &str) -> Option<WatchMethod>;

    /// Whether the provider chooses what it signs with, so that a person or a handshake has to bring it here.
    fn has_own_secret(&self, integration: &str) -> bool;

    /// Judges a request to a subscription's address. `secret` is what is known; `now` is in seconds since 1970.
    fn judge(&self, integration: &str, incoming: &Incoming<'_>, secret: Option<&str>, now: i64) -> Result<Judged, Refusal>;

    /// Tells the provider to send events.
    fn register<'a>(&'a self, watch: Watch<'a>) -> BoxFuture<'a, Result<Registered, WatchError>>;

    /// Tells it to stop. A webhook that is gone already is as good as removed.
    fn unregister<'a>(&'a self, watch: Watch<'a>, remote: &'a str) -> BoxFuture<'a, Result<(), WatchError>>;

    /// Asks for what is new since the cursor.
    fn poll<'a>(&'a self, watch: Watch<'a>, cursor: Option<&'a Value>) -> BoxFuture<'a, Result<Polled, WatchError>>;

    /// The one address of all its events, for a provider that has one.
    fn hub(&self) -> Option<&dyn Hub> {
        None
    }
}

/// What a provider signs with that sends all its events to one address.
#[derive(Clone)]
pub struct Signed {
    /// The secret, where the provider shows it.
    pub secret: Option<String>,
    /// What had to be put right, for the operator.
    pub repaired: Option<String>,
}

impl std::fmt::Debug for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signed").field("repaired", &self.repaired).finish_non_exhaustive()
    }
}

/// A trigger that a provider has.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteTrigger {
    pub id: String,
    pub event: String,
    pub config: Value,
    pub is_disabled: bool,
    pub updated_at: Option<Timestamp>,
}

/// What a message to the one address of a provider is about.
#[derive(Clone, Debug, PartialEq)]
pub enum HubMessage {
    Event {
        trigger: String,
        /// The same for every retry of one event.
        id: String,
        /// What kind of event it is, where that is said.
        kind: Option<String>,
        payload: Value,
    },
    /// An account cannot be used any more.
    AccountLost { account: String, why: String },
    /// A trigger was switched off.
    TriggerDisabled { trigger: String, why: String },
    /// Nothing that anybody here waits for.
    Other,
}

/// A provider that sends all events of a deployment to one address, signed with one secret.
pub trait Hub: Send + Sync + std::fmt::Debug {
    /// Proves a message with one of the secrets that the provider told, or what the operator gave. `now` is in seconds since 1970.
    fn prove(&self, secrets: &[String], incoming: &Incoming<'_>, now: i64) -> Result<Verified, Refusal>;

    /// Reads a message that was proven.
    fn read(&self, headers: &HeaderMap, body: &Value) -> HubMessage;

    /// Makes sure that events are sent to the address. Where the secret is neither known here nor shown there, it is changed.
    fn ensure<'a>(&'a self, url: &'a str, knows_secret: bool) -> BoxFuture<'a, Result<Signed, WatchError>>;

    /// Has the provider sign with another secret from now on.
    fn rotate(&self) -> BoxFuture<'_, Result<String, WatchError>>;

    /// The triggers of these accounts, switched off or not.
    fn instances(&self, accounts: Vec<String>) -> BoxFuture<'_, Result<Vec<RemoteTrigger>, WatchError>>;

    /// One trigger, switched off or not; none if it is gone.
    fn instance<'a>(&'a self, trigger: &'a str) -> BoxFuture<'a, Result<Option<RemoteTrigger>, WatchError>>;

    /// Removes a trigger. One that is gone already is as good as removed.
    fn remove<'a>(&'a self, trigger: &'a str) -> BoxFuture<'a, Result<(), WatchError>>;
}
