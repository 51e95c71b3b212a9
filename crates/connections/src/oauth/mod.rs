//! OAuth2: authorize URLs and token requests.

pub(crate) mod authorize;
pub(crate) mod token;

use catalog::auth::{ClientAuth, TokenBody};

/// The client that asks for tokens.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) auth: ClientAuth,
    pub(crate) body: TokenBody,
}
