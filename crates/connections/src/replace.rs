//! Other values for some fields of a credential that was typed: proven first, then put in the place of the old ones.

use std::collections::BTreeMap;

use catalog::auth::AuthScheme;
use kernel::{ConnectionId, Scope};
use serde_json::json;

use crate::create::{asked, check_fields};
use crate::store::{self, Grant};
use crate::{Connection, ConnectionError, Connections, HookEvent};

impl Connections {
    /// Changes fields of a typed credential; what is not named stays, and nothing in the place of a value takes it away.
    #[kernel::boxed]
    pub async fn replace_fields(
        &self,
        scope: Scope,
        id: ConnectionId,
        changes: BTreeMap<String, Option<String>>,
    ) -> Result<Connection, ConnectionError> {
        let this = self.clone();
        self.undisturbed(async move { this.replace_now(scope, id, changes).await }).await
    }

    async fn replace_now(
        &self,
        scope: Scope,
        id: ConnectionId,
        changes: BTreeMap<String, Option<String>>,
    ) -> Result<Connection, ConnectionError> {
        let former = self.seen(scope, id).await?;
        let integration = self.integration_of(&former).await?;
        let scheme = former.scheme(&integration).ok_or(ConnectionError::NotFound)?;
        if matches!(**scheme, AuthScheme::OAuth2(_) | AuthScheme::Hosted(_) | AuthScheme::None(_)) {
            let reason = format!("an account of scheme `{}` has no credential that can be typed; connect it again", scheme.name());
            return Err(ConnectionError::Field(reason));
        }
        let names: Vec<String> = scheme.fields().into_iter().map(|(name, _)| name).collect();
        let mut fields = match &former.credentials {
            Some(sealed) => store::open_fields(&self.0.sealer, id, sealed)?,
            None => catalog::auth::Fields::default(),
        };
        let kept = fields.expose().filter(|(name, _)| names.iter().any(|known| known == name));
        let mut given: BTreeMap<String, String> = kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for (name, value) in changes {
            match value {
                Some(value) => given.insert(name, value),
                None => given.remove(&name),
            };
        }
        let found_by = json!(asked(scheme, &given));
        fields = check_fields(scheme, given)?;
        let terms = self.acquire(&integration, scheme, &mut fields).await?;
        let identity = self.prove(&integration, scheme, &fields).await?;
        let account = identity.account();
        identity.fields.into_iter().for_each(|(name, value)| fields.set(name, value));
        let grant = Grant { sealed: store::seal_fields(&self.0.sealer, id, &fields), terms, remote: None };
        if !store::replace_grant(&self.0.db, &former, &grant, account.as_ref(), &found_by, self.0.clock.now()).await? {
            return Err(ConnectionError::Words("the account was changed by somebody else meanwhile; try again".to_owned()));
        }
        let connection = self.get(scope.project, id).await?;
        if !former.is_valid {
            self.announce(&connection, HookEvent::Connected, None).await;
        }
        self.tell_connected(connection.clone(), connection.is_another_than(&former).then(|| former.clone()));
        Ok(connection)
    }
}
