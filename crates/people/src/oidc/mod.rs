//! Signing in with an OpenID provider: discovery, authorization code with PKCE, and an ID token that is checked before it is believed.

mod claims;
mod flow;
mod jwt;
mod provider;
mod rules;

pub use flow::{Arrived, Returned, Start};
pub(crate) use provider::Provider;
pub use provider::{ClientAuth, ProviderConfig};
pub use rules::Rule;
