//! What can go wrong with a grant, in the words of OAuth where a client has to understand it.

use store::{Full, StoreError};

/// Why a client is refused, by the names that RFC 6749 and those after it give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    InvalidRequest,
    InvalidClient,
    InvalidGrant,
    UnsupportedGrantType,
    UnsupportedResponseType,
    InvalidScope,
    InvalidTarget,
    AccessDenied,
    AuthorizationPending,
    SlowDown,
    ExpiredToken,
    InvalidRedirectUri,
    InvalidClientMetadata,
    TooManyClients,
}

impl Refusal {
    /// The `error` of an answer.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::AccessDenied => "access_denied",
            Self::AuthorizationPending => "authorization_pending",
            Self::SlowDown => "slow_down",
            Self::ExpiredToken => "expired_token",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::TooManyClients => "too_many_clients",
        }
    }
}

/// A failure of the grants.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error("{1}")]
    Refused(Refusal, String),
    #[error("Grant not found")]
    NotFound,
    #[error(transparent)]
    Full(#[from] Full),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl GrantError {
    pub fn refused(refusal: Refusal, text: impl Into<String>) -> Self {
        Self::Refused(refusal, text.into())
    }
}
