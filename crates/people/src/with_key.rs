//! Signing in with a project key or the operator's key, for an installation without accounts.

use kernel::key::KeyHash;
use secrecy::{ExposeSecret, SecretString};

use crate::sessions::Holder;
use crate::{OpenedSession, People, PeopleError, Visitor};

impl People {
    /// Signs in with a key. One that acts for agents alone opens no pages.
    #[kernel::boxed]
    pub async fn by_key(&self, key: &SecretString, visitor: &Visitor) -> Result<OpenedSession, PeopleError> {
        self.count_address(visitor).await?;
        let key = key.expose_secret().trim();
        if self.0.operator_key.matches(&KeyHash::of(key)) {
            return self.open_session(Holder::Operator, "operator", visitor).await;
        }
        let scope = self.0.accounts.authenticator().authenticate(key).await?;
        let scope = scope.filter(|scope| !scope.is_for_agents).ok_or(PeopleError::Refused)?;
        self.open_session(Holder::Key(scope.key), "key", visitor).await
    }
}
