//! Connected accounts: our connections, as Composio lists and changes them.
//!
//! `api.link(scope, &config, ...)` begins one for a user; `AccountBody` is one as it is shown.

mod body;
mod connect;
mod list;
mod values;

use std::collections::BTreeMap;

use connections::{Connection, ConnectionError, ConnectionState};
use document::ToSchema;
use kernel::Scope;
use serde::Deserialize;
use serde_json::Value;

use crate::choice::status;
use crate::{ApiError, ComposioApi, Refusal, ids};

pub use body::{AccountBody, ChangedBody, InitiatedBody, LinkBody, RefreshedBody, RevokedAccount, RevokedBody, SuccessBody};
pub(crate) use connect::NewConnect;
pub use connect::{CreateAccount, CreateLink, NewAccountState};
use connect::{acl_refused, refused};
pub use list::AccountsFilter;

fn not_found(id: &str) -> Refusal {
    let shown: String = id.chars().filter(|letter| !letter.is_control()).take(60).collect();
    Refusal::not_found("ConnectedAccount_NotFound", format!("There is no connected account `{shown}`."))
}

/// Whether an account is to be used.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(as = composio::EnableAccount)]
pub struct EnableAccount {
    pub enabled: bool,
}

/// A change of an account. What is left out stays.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::ChangeAccount)]
pub struct ChangeAccount {
    /// An empty one takes it away.
    pub alias: Option<String>,
    pub connection: Option<ChangedCredential>,
    #[schema(value_type = Option<Object>)]
    pub experimental: Option<Value>,
}

/// Other values for some fields of a credential; null takes a field away.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = composio::ChangedCredential)]
pub struct ChangedCredential {
    pub state: NewAccountState,
}

impl ComposioApi {
    /// The row behind an id that a caller sent.
    async fn account_row(&self, scope: Scope, id: &str) -> Result<Connection, ApiError> {
        let account = ids::ACCOUNT.read(id).ok_or_else(|| not_found(id))?;
        match self.parts().connections.seen(scope, account).await {
            Err(ConnectionError::NotFound) => Err(not_found(id).into()),
            found => Ok(found?),
        }
    }

    /// One account. A provider that connects accounts itself is asked whether it is done.
    #[kernel::boxed]
    pub async fn show_account(&self, scope: Scope, id: &str) -> Result<AccountBody, ApiError> {
        let row = self.account_row(scope, id).await?;
        let row = self.parts().connections.look_again(row).await?;
        Ok(self.account_bodies(scope, std::slice::from_ref(&row)).await?.remove(0))
    }

    /// Accounts as they are shown, with the names of their users.
    pub(crate) async fn account_bodies(&self, scope: Scope, rows: &[Connection]) -> Result<Vec<AccountBody>, ApiError> {
        let (names, now) = (self.names(scope).await?, self.parts().clock.now());
        let users = self.users_of(scope.project, rows.iter().filter_map(|row| row.owner.end_user()).collect()).await?;
        let mut bodies = Vec::new();
        for row in rows {
            let config = self.config_of(row).await?;
            let toolkit =
                names.toolkit_of(&row.provider, &row.integration).map_or(row.integration.as_str(), |toolkit| toolkit.slug.as_str());
            let user = match row.owner.end_user() {
                None => crate::DEFAULT_USER,
                Some(end_user) => users.get(&end_user).map(String::as_str).unwrap_or_default(),
            };
            bodies.push(AccountBody::of(row, toolkit, &config, user, now));
        }
        Ok(bodies)
    }

    fn status_of(&self, row: &Connection) -> &'static str {
        status(row.state(self.parts().clock.now()).0)
    }

    /// Switches an account on or off.
    #[kernel::boxed]
    pub async fn enable_account(&self, scope: Scope, id: &str, enabled: bool) -> Result<SuccessBody, ApiError> {
        let row = self.account_row(scope, id).await?;
        self.parts().connections.switch(scope, row.id, enabled).await?;
        Ok(SuccessBody { success: true })
    }

    /// Changes what an account is called, or its credential.
    #[kernel::boxed]
    pub async fn change_account(&self, scope: Scope, id: &str, change: ChangeAccount) -> Result<ChangedBody, ApiError> {
        let mut row = self.account_row(scope, id).await?;
        if change.experimental.as_ref().and_then(|more| more.get("acl_config_for_shared")).is_some_and(|acl| !acl.is_null()) {
            return Err(acl_refused().into());
        }
        if let Some(ChangedCredential { state }) = change.connection {
            row = self.change_credential(scope, &row, &state).await?;
        }
        if let Some(alias) = change.alias.as_deref().map(str::trim) {
            let alias = Some(alias).filter(|alias| !alias.is_empty());
            row = self.parts().connections.set_alias(scope, row.id, alias).await.map_err(refused)?;
        }
        Ok(ChangedBody { success: true, id: ids::ACCOUNT.show(row.id), status: self.status_of(&row) })
    }

    async fn change_credential(&self, scope: Scope, row: &Connection, state: &NewAccountState) -> Result<Connection, ApiError> {
        let own = body::word(row);
        if state.auth_scheme.as_deref().is_some_and(|scheme| !scheme.eq_ignore_ascii_case(own)) {
            return Err(Refusal::bad_request(format!("The account was connected by {own}; `authScheme` must say so.")).into());
        }
        let integration = self.parts().catalog.reach_integration(row.project, &row.provider, &row.integration).await?;
        let scheme = integration.schemes().find(|scheme| Some(scheme.name()) == row.auth_scheme.as_deref());
        let scheme = scheme.ok_or_else(|| Refusal::bad_request("The toolkit cannot be connected this way any more."))?;
        let fields: BTreeMap<String, Option<String>> = values::fields(scheme, &state.val)?;
        if fields.is_empty() {
            return Err(Refusal::bad_request("`connection.state.val` names no field of the credential.").into());
        }
        self.parts().connections.replace_fields(scope, row.id, fields).await.map_err(refused)
    }

    /// Renews what an account is used with, or begins anew where a person is needed. What works goes on working meanwhile.
    #[kernel::boxed]
    pub async fn refresh_account(&self, scope: Scope, id: &str, return_to: Option<&str>) -> Result<RefreshedBody, ApiError> {
        let row = self.account_row(scope, id).await?;
        let link = self.link_options(scope, row.id, return_to).await?;
        let refreshed = self.parts().connections.refresh_by(scope, row.id, false, link).await.map_err(|error| match error {
            ConnectionError::Inactive(_) => {
                Refusal::unusable("ConnectedAccount_Disabled", "The account is disabled.").fix("Enable it first.").into()
            }
            other => refused(other),
        })?;
        let status = self.status_of(&refreshed.connection);
        Ok(RefreshedBody { id: ids::ACCOUNT.show(row.id), status, redirect_url: refreshed.redirect_url })
    }

    /// Takes an account out of use for good, and tells its provider, if it listens.
    #[kernel::boxed]
    pub async fn revoke_account(&self, scope: Scope, id: &str) -> Result<RevokedBody, ApiError> {
        let row = self.account_row(scope, id).await?;
        let body = |row: &Connection, revoked_tokens| RevokedBody {
            revoked_tokens,
            connected_account: RevokedAccount { id: ids::ACCOUNT.show(row.id), status: self.status_of(row) },
        };
        match row.state(self.parts().clock.now()).0 {
            ConnectionState::Revoked => return Ok(body(&row, Vec::new())),
            ConnectionState::Connected => {}
            other => {
                let message =
                    format!("Connected account `{}` is {}, so there is nothing to revoke.", ids::ACCOUNT.show(row.id), status(other));
                return Err(Refusal::conflict("ConnectedAccount_NotRevokable", message).into());
            }
        }
        let (revoked, told) = self.parts().connections.revoke_there(scope, row.id, "The account was revoked.").await?;
        Ok(body(&revoked, vec![told.unwrap_or("credential")]))
    }

    /// Deletes an account, and tells its provider, if it listens.
    #[kernel::boxed]
    pub async fn delete_account(&self, scope: Scope, id: &str) -> Result<SuccessBody, ApiError> {
        let account = self.account_row(scope, id).await?.id;
        self.parts().connections.delete(scope, account).await?;
        Ok(SuccessBody { success: true })
    }
}
