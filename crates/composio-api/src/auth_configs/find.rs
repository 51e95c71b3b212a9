//! Finding the auth config that is meant, and what it says about an account.

use std::sync::Arc;

use catalog::Integration;
use connections::{Connection, MadeWith};
use kernel::Scope;

use super::{AuthConfig, CreateAuthConfig, not_found};
use crate::names::Toolkit;
use crate::{ApiError, ComposioApi, Refusal, ids};

impl ComposioApi {
    /// The auth config of an id: a row, or the implied one of an integration and scheme.
    pub(crate) async fn auth_config(&self, scope: Scope, id: &str) -> Result<AuthConfig, ApiError> {
        let config = ids::AUTH_CONFIG.read(id).ok_or_else(|| not_found(id))?;
        if let Some(config) = self.find_auth_config(scope.project, config).await? {
            return Ok(config);
        }
        let names = self.names(scope).await?;
        let implied = names.toolkits().iter().find_map(|toolkit| {
            let integration = &toolkit.integration;
            integration.schemes().map(|scheme| AuthConfig::implied(scope.project, integration, scheme)).find(|implied| implied.id == config)
        });
        Ok(implied.ok_or_else(|| not_found(id))?)
    }

    /// The same for whoever wants to change it.
    pub(super) async fn own_auth_config(&self, scope: Scope, id: &str) -> Result<AuthConfig, ApiError> {
        let config = self.auth_config(scope, id).await?;
        if config.is_implied {
            let message = "This auth config stands for accounts that were connected without one; it cannot be changed.";
            return Err(Refusal::bad_request(message).fix("Make an auth config of your own.").into());
        }
        Ok(config)
    }

    /// The config that an account was made with, or the implied one of its scheme.
    pub(crate) async fn config_of(&self, connection: &Connection) -> Result<AuthConfig, ApiError> {
        if let Some(id) = connection.auth_config
            && let Some(config) = self.find_auth_config(connection.project, id).await?
        {
            return Ok(config);
        }
        Ok(AuthConfig::implied_by(connection))
    }

    /// The auth config that accounts of a toolkit are connected with in sessions, where nobody named one: the newest that is enabled for them, or
    /// a managed one that is made now.
    pub(crate) async fn usual_auth_config(&self, scope: Scope, toolkit: &Arc<Toolkit>) -> Result<AuthConfig, ApiError> {
        let Integration { provider, key, .. } = &*toolkit.integration;
        let rows = self.auth_config_rows(scope).await?;
        let is_for_sessions = |config: &AuthConfig| config.is_enabled && config.access.tool_router.unwrap_or(true);
        let own = |config: &AuthConfig| is_for_sessions(config) && config.provider == *provider && config.integration == *key;
        if let Some(config) = rows.into_iter().find(own) {
            return Ok(config);
        }
        let request = CreateAuthConfig::managed(&toolkit.slug);
        let made = self.create_auth_config(scope, request).await?;
        self.auth_config(scope, &made.auth_config.id).await
    }

    /// Refuses an account whose auth config was disabled.
    pub(crate) async fn require_enabled(&self, connection: &Connection) -> Result<(), ApiError> {
        if connection.auth_config.is_none() || self.config_of(connection).await?.is_enabled {
            return Ok(());
        }
        let id = ids::ACCOUNT.show(connection.id);
        let message = format!("The auth config of connected account `{id}` is disabled.");
        Err(Refusal::unusable("ActionExecute_AuthConfigDisabled", message).fix("Enable the auth config.").into())
    }

    /// Why an account may not run a tool, if its auth config says which it may.
    pub(crate) async fn not_for(&self, connection: &Connection, tool: &str) -> Result<Option<String>, ApiError> {
        if connection.auth_config.is_none() {
            return Ok(None);
        }
        let config = self.config_of(connection).await?;
        let allowed = config.access.execution.as_ref().is_none_or(|tools| tools.iter().any(|known| known == tool));
        Ok((!allowed).then(|| format!("The auth config of this account does not allow `{tool}`.")))
    }
}

impl AuthConfig {
    /// How accounts of it are told from others.
    pub(crate) fn made_with(&self) -> MadeWith {
        if self.is_implied {
            let (provider, integration, scheme) = (self.provider.clone(), self.integration.clone(), self.scheme.clone());
            return MadeWith::Scheme { provider, integration, scheme };
        }
        MadeWith::AuthConfig(self.id)
    }
}
