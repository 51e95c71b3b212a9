//! Clients: who asks, and whether it is who it says.

use std::fmt;

use kernel::key::{KeyHash, PlainKey};
use secrecy::SecretString;
use serde_json::Value;
use store::{Row, StoreError, args};

use crate::{GrantError, Grants, Refusal, document, redirect};

/// The client id of our own command line, which everybody has and nobody registers.
pub const COMMAND_LINE: &str = "toolyard-cli";

/// Somebody who asks people for access.
#[derive(Clone, Debug)]
pub struct Client {
    pub id: String,
    pub name: String,
    /// A page about it.
    pub uri: Option<String>,
    pub redirect_uris: Vec<String>,
    pub(crate) secret: Option<KeyHash>,
}

/// The secret that a client proves itself with, as far as it sent one.
#[derive(Clone)]
pub struct ClientSecret(Option<SecretString>);

impl ClientSecret {
    pub fn new(secret: Option<String>) -> Self {
        Self(secret.map(SecretString::from))
    }

    fn hash(&self) -> Option<KeyHash> {
        self.0.as_ref().map(|secret| PlainKey::from(secrecy::ExposeSecret::expose_secret(secret).to_owned()).hash())
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret")
    }
}

impl Client {
    pub(crate) fn read(row: &Row) -> Result<Self, StoreError> {
        let uris: Value = row.get("redirect_uris")?;
        let secret: Option<Vec<u8>> = row.get("secret_hash")?;
        let secret = secret.map(|bytes| KeyHash::stored(&bytes).ok_or_else(|| StoreError::Column("secret_hash".to_owned())));
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            uri: row.get("uri")?,
            redirect_uris: uris.as_array().into_iter().flatten().filter_map(|uri| uri.as_str().map(str::to_owned)).collect(),
            secret: secret.transpose()?,
        })
    }

    fn command_line() -> Self {
        Self { id: COMMAND_LINE.to_owned(), name: "Toolyard command line".to_owned(), uri: None, redirect_uris: Vec::new(), secret: None }
    }

    /// Whether a person may be sent back there with an answer for this client.
    pub fn may_return_to(&self, uri: &str) -> bool {
        redirect::is_registered(&self.redirect_uris, uri)
    }

    /// Whether the client keeps a secret.
    pub fn is_confidential(&self) -> bool {
        self.secret.is_some()
    }

    /// The host that vouches for the client: of one that describes itself at its own address.
    pub fn vouched_by(&self) -> Option<String> {
        document::is_address(&self.id).then(|| self.id.parse::<url::Url>().ok()?.host_str().map(str::to_owned)).flatten()
    }

    /// Whether the secret proves the client. A public one has none, and sending one is a mix-up.
    fn is_proven_by(&self, secret: &ClientSecret) -> bool {
        match (&self.secret, secret.hash()) {
            (None, None) => true,
            (Some(kept), Some(sent)) => kept.matches(&sent),
            _ => false,
        }
    }
}

fn unknown() -> GrantError {
    GrantError::refused(Refusal::InvalidClient, "The client is unknown, or its secret is wrong. Register it at `POST /oauth/register`.")
}

impl Grants {
    /// The client that a person is asked to let in. One that is named by an address is read from there.
    #[kernel::boxed]
    pub async fn client(&self, id: &str) -> Result<Client, GrantError> {
        if document::is_address(id) {
            return self.0.documents.client(id).await;
        }
        self.registered(id).await?.ok_or_else(unknown)
    }

    /// The client of a request that it makes itself, proven by its secret where it has one.
    #[kernel::boxed]
    pub async fn prove(&self, id: &str, secret: &ClientSecret) -> Result<Client, GrantError> {
        if document::is_address(id) {
            // Such a client has no secret; what it may redeem is bound to its id, so nothing has to be read from there.
            let client = Client { id: id.to_owned(), name: id.to_owned(), uri: None, redirect_uris: Vec::new(), secret: None };
            return if client.is_proven_by(secret) { Ok(client) } else { Err(unknown()) };
        }
        self.registered(id).await?.filter(|client| client.is_proven_by(secret)).ok_or_else(unknown)
    }

    async fn registered(&self, id: &str) -> Result<Option<Client>, GrantError> {
        if id == COMMAND_LINE {
            return Ok(Some(Client::command_line()));
        }
        let sql = "select id, name, uri, redirect_uris, secret_hash from oauth_clients where id = $1";
        match self.0.db.optional(sql, args![id]).await {
            // What no id can be is no id.
            Err(StoreError::Nul) => Ok(None),
            found => Ok(found?.as_ref().map(Client::read).transpose()?),
        }
    }

    /// Notes that a person let a client in, so that it is kept.
    pub(crate) async fn keep_client(&self, id: &str) -> Result<(), StoreError> {
        let sql = "update oauth_clients set used_at = $2 where id = $1 and used_at is null";
        self.0.db.execute(sql, args![id, self.0.clock.now()]).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_proves_only_who_has_one() {
        let public = Client::command_line();
        let confidential = Client { secret: Some(KeyHash::of("right")), ..Client::command_line() };
        let sent = |secret: Option<&str>| ClientSecret::new(secret.map(str::to_owned));
        for (client, secret, proven) in [
            (&public, None, true),
            (&public, Some("right"), false),
            (&public, Some(""), false),
            (&confidential, Some("right"), true),
            (&confidential, Some("wrong"), false),
            (&confidential, Some(""), false),
            (&confidential, None, false),
        ] {
            assert_eq!(client.is_proven_by(&sent(secret)), proven, "{secret:?}");
        }
        assert!(!format!("{:?}", sent(Some("right"))).contains("right"));
    }
}
