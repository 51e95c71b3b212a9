//! The address where a person agrees.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catalog::auth::OAuth2;
use sha2::{Digest, Sha256};
use url::Url;

/// What the authorize URL says.
#[derive(Debug)]
pub(crate) struct Authorize<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) redirect_uri: &'a str,
    pub(crate) state: &'a str,
    pub(crate) scopes: &'a [String],
    /// The PKCE verifier, when the provider takes one.
    pub(crate) verifier: Option<&'a str>,
}

impl Authorize<'_> {
    pub(crate) fn url(&self, scheme: &OAuth2) -> Option<Url> {
        let mut url: Url = self.endpoint.parse().ok()?;
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("response_type", "code");
            query.append_pair("client_id", self.client_id);
            query.append_pair("redirect_uri", self.redirect_uri);
            query.append_pair("state", self.state);
            if !self.scopes.is_empty() {
                query.append_pair(&scheme.scope_param, &self.scopes.join(&scheme.scope_separator));
            }
            if let Some(verifier) = self.verifier {
                query.append_pair("code_challenge", &challenge(verifier));
                query.append_pair("code_challenge_method", "S256");
            }
            for (name, value) in &scheme.authorize_params {
                query.append_pair(name, value);
            }
        }
        Some(url)
    }
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::challenge;

    #[test]
    fn the_challenge_is_the_one_of_rfc_7636() {
        assert_eq!(challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
