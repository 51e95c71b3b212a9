//! What can go wrong, as Composio's SDKs read it.
//!
//! A `Refusal` is Composio's own error: status, code, slug and words. Make one with `Refusal::bad_request`, `not_found`, `conflict`, ... or
//! with a function for what SDKs look for (`no_account`, `tool_not_found`), and turn it into an `ApiError` with `?` or `.into()`. What a
//! domain says is passed on with `?` as it is: the edge has one place that knows the status and the words of each domain's errors.

use std::borrow::Cow;

use calls::CallError;
use catalog::CatalogError;
use connections::ConnectionError;
use definitions::ResolveError;
use discovery::DiscoveryError;
use end_users::EndUserError;
use kernel::seal::SealError;
use store::StoreError;
use triggers::TriggerError;
use user_sessions::UserSessionError;
use work::WorkError;

/// A failure on its way to an SDK.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Definition(#[from] ResolveError),
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error(transparent)]
    Trigger(#[from] TriggerError),
    #[error(transparent)]
    EndUser(#[from] EndUserError),
    #[error(transparent)]
    UserSession(#[from] UserSessionError),
    #[error(transparent)]
    Sealed(#[from] SealError),
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

/// An error in Composio's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub status: u16,
    /// SDKs act on some of them.
    pub code: u32,
    pub slug: Cow<'static, str>,
    pub message: String,
    pub suggested_fix: Option<String>,
    /// What is wrong, one by one, where that is more than the message says.
    pub errors: Vec<String>,
}

/// What Composio adds to a status where it has no code of its own.
const USUAL_CODE: u32 = 10_000;
/// Codes that SDKs look for.
const NO_ACCOUNT: u32 = 1803;
const TOOL_NOT_FOUND: u32 = 2401;

impl Refusal {
    pub fn new(status: u16, code: u32, slug: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { status, code, slug: slug.into(), message: message.into(), suggested_fix: None, errors: Vec::new() }
    }

    /// One whose code says no more than its status.
    pub fn of_status(status: u16, slug: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(status, USUAL_CODE + u32::from(status), slug, message)
    }

    /// 400: what was asked for is not possible.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::of_status(400, "HTTP_BadRequest", message)
    }

    /// 403: outside of what the caller may use.
    pub fn forbidden(slug: &'static str, message: impl Into<String>) -> Self {
        Self::of_status(403, slug, message)
    }

    /// 404: there is no such thing in this project. The slug says what kind of thing, such as `Toolkit_NotFound`.
    pub fn not_found(slug: &'static str, message: impl Into<String>) -> Self {
        Self::of_status(404, slug, message)
    }

    /// 409: something else is there already, or was changed meanwhile.
    pub fn conflict(slug: &'static str, message: impl Into<String>) -> Self {
        Self::of_status(409, slug, message)
    }

    /// 422: it is there and cannot be used.
    pub fn unusable(slug: &'static str, message: impl Into<String>) -> Self {
        Self::of_status(422, slug, message)
    }

    /// 501: a part of Composio's API that is not served here.
    pub fn not_served(message: impl Into<String>) -> Self {
        Self::of_status(501, "HTTP_NotImplemented", message)
    }

    /// No account that the call may use. The TypeScript SDK knows it by its code.
    pub fn no_account(message: impl Into<String>) -> Self {
        Self::new(400, NO_ACCOUNT, "ActionExecute_ConnectedAccountNotFound", message).fix("Connect an account for this user first.")
    }

    /// No such tool, or no such version of it.
    pub fn tool_not_found(message: impl Into<String>) -> Self {
        Self::new(404, TOOL_NOT_FOUND, "Tool_ToolNotFound", message)
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.suggested_fix = Some(fix.into());
        self
    }

    /// The same with what is wrong, one by one.
    #[must_use]
    pub fn with_errors(mut self, errors: Vec<String>) -> Self {
        self.errors = errors;
        self
    }
}
