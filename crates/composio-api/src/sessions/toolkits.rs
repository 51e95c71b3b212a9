//! The toolkits of a session, with the accounts that its user has of them.

use std::sync::Arc;

use document::ToSchema;
use serde::Serialize;

use super::Within;
use crate::choice::status;
use crate::names::Toolkit;
use crate::page::{Page, Window};
use crate::toolkits::OAuthApps;
use crate::{ApiError, ComposioApi, Refusal, ids, schemes};

/// Which toolkits of a session to list.
#[derive(Clone, Debug, Default)]
pub struct SessionToolkitFilter {
    /// Only these, in the session or not.
    pub toolkits: Vec<String>,
    /// Only those that the user has an account of.
    pub is_connected: bool,
    /// A part of the slug, the name or the description.
    pub search: Option<String>,
}

/// A toolkit of a session.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionToolkit)]
pub struct SessionToolkit {
    pub slug: String,
    pub name: String,
    /// Whether the session has it.
    pub enabled: bool,
    pub is_no_auth: bool,
    pub composio_managed_auth_schemes: Vec<&'static str>,
    pub meta: SessionToolkitMeta,
    #[schema(required)]
    pub connected_account: Option<SessionToolkitAccount>,
}

/// What is said about a toolkit of a session.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionToolkitMeta)]
pub struct SessionToolkitMeta {
    pub logo: String,
    pub description: String,
}

/// The account that calls in the session go through.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionToolkitAccount)]
pub struct SessionToolkitAccount {
    pub id: String,
    pub user_id: String,
    pub status: &'static str,
    pub created_at: String,
    pub auth_config: SessionAuthConfig,
}

/// What an account was connected with.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionAuthConfig)]
pub struct SessionAuthConfig {
    pub id: String,
    pub auth_scheme: &'static str,
    pub is_composio_managed: bool,
}

impl ComposioApi {
    /// A page of the toolkits of a session.
    #[kernel::boxed]
    pub async fn session_toolkits(
        &self,
        session: &Within,
        filter: &SessionToolkitFilter,
        window: Window,
    ) -> Result<Page<SessionToolkit>, ApiError> {
        let names = self.names(session.scope).await?;
        let mut kits: Vec<Arc<Toolkit>> = if filter.toolkits.is_empty() {
            names.toolkits().iter().filter(|kit| session.config.has_toolkit(&kit.slug)).cloned().collect()
        } else {
            let wanted = filter.toolkits.iter().map(|slug| names.toolkit(slug).cloned());
            wanted.collect::<Result<_, _>>().map_err(|refusal| Refusal::bad_request(refusal.message))?
        };
        if let Some(part) = filter.search.as_deref().map(str::trim).filter(|part| !part.is_empty()) {
            let part = part.to_lowercase();
            kits.retain(|kit| {
                let integration = &kit.integration;
                [&kit.slug, &integration.name, &integration.description].iter().any(|text| text.to_lowercase().contains(&part))
            });
        }
        // One look at the user's accounts tells which toolkits have any.
        let rows = self.parts().connections.choices(session.scope, None, None).await?;
        let has_rows = |kit: &Arc<Toolkit>| {
            let integration = &kit.integration;
            rows.iter().any(|row| row.provider == integration.provider && row.integration == integration.key)
        };
        let has_account = |kit: &Arc<Toolkit>| {
            let integration = &kit.integration;
            rows.iter().any(|row| row.is_usable() && row.provider == integration.provider && row.integration == integration.key)
        };
        if filter.is_connected {
            kits.retain(has_account);
        }
        // Those that the user connected come first.
        kits.sort_by_key(|kit| !has_account(kit));
        let page = window.cut(kits);
        let user = self.user_of(session.scope.project, session.scope.acts_for).await?;
        let apps = self.oauth_apps(session.scope).await?;
        let mut items = Vec::with_capacity(page.items.len());
        for kit in &page.items {
            let account = if has_rows(kit) { self.toolkit_account(session, kit, &user).await? } else { None };
            items.push(shown(session, kit, &apps, account));
        }
        let Page { next_cursor, total_pages, current_page, total_items, .. } = page;
        Ok(Page { items, next_cursor, total_pages, current_page, total_items })
    }

    /// The account that a call of this toolkit would go through.
    async fn toolkit_account(&self, session: &Within, kit: &Toolkit, user: &str) -> Result<Option<SessionToolkitAccount>, ApiError> {
        let rows = self.accounts_in(session, kit).await?;
        let Some(row) = rows.iter().find(|row| row.is_usable()).or(rows.first()) else { return Ok(None) };
        let config = self.config_of(row).await?;
        Ok(Some(SessionToolkitAccount {
            id: ids::ACCOUNT.show(row.id),
            user_id: user.to_owned(),
            status: status(row.state(self.parts().clock.now()).0),
            created_at: row.created_at.to_string(),
            auth_config: SessionAuthConfig {
                id: ids::AUTH_CONFIG.show(config.id),
                auth_scheme: schemes::word_of_name(&config.scheme),
                is_composio_managed: config.is_managed,
            },
        }))
    }
}

fn shown(session: &Within, kit: &Toolkit, apps: &OAuthApps, connected_account: Option<SessionToolkitAccount>) -> SessionToolkit {
    let integration = &kit.integration;
    SessionToolkit {
        slug: kit.slug.clone(),
        name: integration.name.clone(),
        enabled: session.config.has_toolkit(&kit.slug),
        is_no_auth: integration.is_no_auth(),
        composio_managed_auth_schemes: apps.managed(integration),
        meta: SessionToolkitMeta { logo: integration.logo.clone().unwrap_or_default(), description: integration.description.clone() },
        connected_account,
    }
}
