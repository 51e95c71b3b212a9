//! `/oauth`: an authorization server for MCP clients and others. People let clients in on a page; clients get tokens for that. The answers
//! are those of OAuth, and every error is also one of ours.

pub mod authorize;
mod consent;
pub mod device;
mod form;
pub mod introspect;
pub mod metadata;
pub mod register;
mod resource;
pub mod revoke;
pub mod token;

use ::grants::{GrantError, Refusal};
use axum::response::{IntoResponse, Response};
use document::ToSchema;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::json;
use store::StoreError;

pub(crate) use resource::{resource_url, surface_of};

use crate::edge::{ApiError, Code, Json};

/// Why a client is refused, as OAuth says it.
#[derive(Debug, Serialize, ToSchema)]
pub struct OauthErrorBody {
    /// The name that RFC 6749, or one after it, gives the error.
    pub error: &'static str,
    /// A sentence for the people who make the client.
    pub error_description: String,
    /// The same sentence.
    pub detail: String,
    /// The same name.
    pub code: &'static str,
}

/// A refusal on its way out.
#[derive(Debug)]
pub(crate) enum OauthError {
    Refused(Refusal, String),
    Other(ApiError),
}

pub(crate) type OauthResult<T> = Result<T, OauthError>;

impl OauthError {
    pub(crate) fn new(refusal: Refusal, text: impl Into<String>) -> Self {
        Self::Refused(refusal, text.into())
    }
}

impl From<GrantError> for OauthError {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Refused(refusal, text) => Self::Refused(refusal, text),
            // What holds a character that no token has, is none.
            GrantError::Store(StoreError::Nul) => Self::new(Refusal::InvalidRequest, "A value holds a NUL character."),
            other => Self::Other(other.into()),
        }
    }
}

impl From<ApiError> for OauthError {
    fn from(error: ApiError) -> Self {
        Self::Other(error)
    }
}

impl From<StoreError> for OauthError {
    fn from(error: StoreError) -> Self {
        GrantError::from(error).into()
    }
}

/// The code of a refusal.
pub(crate) const fn code(refusal: Refusal) -> Code {
    match refusal {
        Refusal::InvalidRequest => Code::OauthRequestInvalid,
        Refusal::InvalidClient => Code::OauthClientInvalid,
        Refusal::InvalidGrant => Code::OauthGrantInvalid,
        Refusal::UnsupportedGrantType => Code::OauthGrantTypeUnsupported,
        Refusal::UnsupportedResponseType => Code::OauthResponseTypeUnsupported,
        Refusal::InvalidScope => Code::OauthScopeInvalid,
        Refusal::InvalidTarget => Code::OauthTargetInvalid,
        Refusal::AccessDenied => Code::OauthAccessDenied,
        Refusal::AuthorizationPending => Code::OauthAuthorizationPending,
        Refusal::SlowDown => Code::OauthSlowDown,
        Refusal::ExpiredToken => Code::OauthCodeExpired,
        Refusal::InvalidRedirectUri => Code::OauthRedirectUriInvalid,
        Refusal::InvalidClientMetadata => Code::OauthClientMetadataInvalid,
        Refusal::TooManyClients => Code::OauthTooManyClients,
    }
}

impl IntoResponse for OauthError {
    fn into_response(self) -> Response {
        let (refusal, text) = match self {
            Self::Refused(refusal, text) => (refusal, text),
            Self::Other(error) => return error.into_response(),
        };
        let code = code(refusal);
        let body = json!(OauthErrorBody { error: refusal.name(), error_description: text.clone(), detail: text, code: code.name() });
        let mut response = private((code.status(), Json(body)).into_response());
        if code.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"toolyard\""));
        }
        response
    }
}

/// An answer that nobody on the way may keep.
pub(crate) fn private(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_one_name() {
        for refusal in [
            Refusal::InvalidRequest,
            Refusal::InvalidClient,
            Refusal::InvalidGrant,
            Refusal::UnsupportedGrantType,
            Refusal::UnsupportedResponseType,
            Refusal::InvalidScope,
            Refusal::InvalidTarget,
            Refusal::AccessDenied,
            Refusal::AuthorizationPending,
            Refusal::SlowDown,
            Refusal::ExpiredToken,
            Refusal::InvalidRedirectUri,
            Refusal::InvalidClientMetadata,
            Refusal::TooManyClients,
        ] {
            assert_eq!(code(refusal).name(), refusal.name());
        }
    }
}
