//! Which account a call goes through.
//!
//! `api.account_for(scope, &toolkit, user, account)` follows Composio's rules: the account that is named, if it is of this toolkit and of
//! this user; else the user's newest that works; a toolkit that needs no account goes without one. What it answers with reaches that
//! account's owner and nobody else.

use connections::{AccountFilter, AccountsOf, Connection, ConnectionError, ConnectionState, NEWEST};
use kernel::Scope;

use crate::names::Toolkit;
use crate::{ApiError, ComposioApi, DEFAULT_USER, Refusal, ids};

/// Through what a call goes, and for whom.
#[derive(Clone, Debug)]
pub struct ChosenAccount {
    /// Acts with the accounts of the owner of this one.
    pub scope: Scope,
    /// Nothing where the toolkit needs no account.
    pub connection: Option<Connection>,
}

impl ChosenAccount {
    /// What the account is called in a call ref.
    pub fn name(&self) -> &str {
        self.connection.as_ref().map_or(NEWEST, |connection| &connection.slug)
    }

    /// The account as Composio names it.
    pub fn id(&self) -> Option<String> {
        self.connection.as_ref().map(|connection| ids::ACCOUNT.show(connection.id))
    }
}

/// What Composio calls the state of an account.
pub fn status(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Waiting => "INITIATED",
        ConnectionState::Connected => "ACTIVE",
        ConnectionState::Failed => "FAILED",
        ConnectionState::Expired => "EXPIRED",
        ConnectionState::Revoked => "REVOKED",
    }
}

impl ComposioApi {
    /// The account for a call of a toolkit: the one that is named, else the newest of the user that works.
    #[kernel::boxed]
    pub async fn account_for(
        &self,
        scope: Scope,
        toolkit: &Toolkit,
        user: Option<&str>,
        account: Option<&str>,
    ) -> Result<ChosenAccount, ApiError> {
        let chosen = match account {
            Some(account) => self.named_account(scope, toolkit, user, account).await?,
            None => self.newest_account(scope, toolkit, user.unwrap_or(DEFAULT_USER)).await?,
        };
        if let Some(connection) = &chosen.connection {
            self.require_usable(connection).await?;
        }
        Ok(chosen)
    }

    async fn named_account(&self, scope: Scope, toolkit: &Toolkit, user: Option<&str>, account: &str) -> Result<ChosenAccount, ApiError> {
        let shown: String = account.chars().filter(|letter| !letter.is_control()).take(60).collect();
        let unknown = || {
            let whose = user.map(|user| format!(" of user `{user}`")).unwrap_or_default();
            Refusal::no_account(format!("There is no connected account `{shown}`{whose} for toolkit `{}`.", toolkit.slug))
        };
        let id = ids::ACCOUNT.read(account).ok_or_else(unknown)?;
        let connection = match self.parts().connections.seen(scope, id).await {
            Ok(connection) => connection,
            Err(ConnectionError::NotFound) => return Err(unknown().into()),
            Err(error) => return Err(error.into()),
        };
        let integration = &toolkit.integration;
        if connection.provider != integration.provider || connection.integration != integration.key {
            return Err(unknown().into());
        }
        if let Some(user) = user
            && self.looking_for(scope, user).await?.acts_for != connection.owner
        {
            return Err(unknown().into());
        }
        Ok(ChosenAccount { scope: Scope { acts_for: connection.owner, ..scope }, connection: Some(connection) })
    }

    async fn newest_account(&self, scope: Scope, toolkit: &Toolkit, user: &str) -> Result<ChosenAccount, ApiError> {
        let integration = &toolkit.integration;
        if integration.is_no_auth() {
            // The call is on record as this user's.
            return Ok(ChosenAccount { scope: self.acting_for(scope, user).await?, connection: None });
        }
        let scope = self.looking_for(scope, user).await?;
        let connections = &self.parts().connections;
        let rows = connections.choices(AccountsOf::from(scope), Some(integration.provider), Some(&integration.key)).await?;
        for row in rows.iter().filter(|row| row.is_usable()) {
            if row.auth_config.is_none() || self.config_of(row).await?.is_enabled {
                return Ok(ChosenAccount { scope, connection: Some(row.clone()) });
            }
        }
        // Where none can be used, the newest says why; one that is switched off is no choice, but it is there.
        let of_toolkit = Some(vec![(integration.provider.to_owned(), integration.key.clone())]);
        let filter = AccountFilter { owners: Some(vec![scope.acts_for]), integrations: of_toolkit, ..AccountFilter::default() };
        let newest = connections.list(scope, &filter, 0, 1).await?.rows.into_iter().next();
        let missing = || Refusal::no_account(format!("User `{user}` has no connected account for toolkit `{}`.", toolkit.slug));
        Ok(ChosenAccount { scope, connection: Some(newest.ok_or_else(missing)?) })
    }

    /// Refuses an account that cannot be used, with its status.
    #[kernel::boxed]
    pub async fn require_usable(&self, connection: &Connection) -> Result<(), ApiError> {
        let id = ids::ACCOUNT.show(connection.id);
        let unusable =
            |why: String| Refusal::unusable("ActionExecute_ConnectedAccountNotActive", format!("Connected account `{id}` {why}."));
        if !connection.is_active {
            return Err(unusable("is disabled".to_owned()).fix("Enable the account.").into());
        }
        let (state, reason) = connection.state(self.parts().clock.now());
        if state == ConnectionState::Connected {
            return self.require_enabled(connection).await;
        }
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        Err(unusable(format!("is {}{}", status(state), reason.trim_end_matches('.'))).fix("Connect the account again.").into())
    }
}
