//! Which account a call in a session goes through: one of its user's, among those that the session names where it names some.

use connections::Connection;

use super::Within;
use super::config::Config;
use crate::choice::ChosenAccount;
use crate::names::Toolkit;
use crate::{ApiError, ComposioApi, Refusal, ids};

impl ComposioApi {
    /// The accounts that a session can use of a toolkit: those of its user, in the order in which they are picked.
    pub(super) async fn accounts_in(&self, session: &Within, toolkit: &Toolkit) -> Result<Vec<Connection>, ApiError> {
        let integration = &toolkit.integration;
        // A query names the owner, so that a pinned id of somebody else finds nothing.
        let rows = self.parts().connections.choices(session.scope, Some(integration.provider), Some(&integration.key)).await?;
        Ok(pinned(&session.config, &toolkit.slug, rows))
    }

    /// The account for a call: the one that it names, by id, alias or slug; else the first that works.
    pub(super) async fn account_in(&self, session: &Within, toolkit: &Toolkit, wanted: Option<&str>) -> Result<ChosenAccount, ApiError> {
        let scope = session.scope;
        if toolkit.integration.is_no_auth() {
            return Ok(ChosenAccount { scope, connection: None });
        }
        let rows = self.accounts_in(session, toolkit).await?;
        let connection = choose(&session.config, toolkit, rows, wanted)?;
        self.require_usable(&connection).await?;
        Ok(ChosenAccount { scope, connection: Some(connection) })
    }

    /// Refuses a config that names an account or an auth config which the session could not use.
    pub(super) async fn check_named(&self, within: kernel::Scope, config: &Config) -> Result<(), ApiError> {
        let names = self.names(within).await?;
        for (slug, wanted) in &config.connected_accounts {
            let toolkit = names.toolkit(slug)?;
            if wanted.len() > config.most_accounts() {
                let message = format!("`connected_accounts.{slug}` may name {} of them; see `multi_account`.", config.most_accounts());
                return Err(Refusal::bad_request(message).into());
            }
            let integration = &toolkit.integration;
            let rows = self.parts().connections.choices(within, Some(integration.provider), Some(&integration.key)).await?;
            if let Some(missing) = wanted.iter().find(|wanted| !rows.iter().any(|row| ids::ACCOUNT.show(row.id) == **wanted)) {
                let shown: String = missing.chars().filter(|letter| !letter.is_control()).take(60).collect();
                let message = format!("`connected_accounts.{slug}`: the user has no connected account `{shown}` of this toolkit.");
                return Err(Refusal::no_account(message).into());
            }
        }
        for (slug, wanted) in &config.auth_configs {
            let toolkit = names.toolkit(slug)?;
            let config = match self.auth_config(within, wanted).await {
                Err(ApiError::Refused(refusal)) => {
                    return Err(Refusal::bad_request(format!("`auth_configs.{slug}`: {}", refusal.message)).into());
                }
                found => found?,
            };
            if config.provider != toolkit.integration.provider || config.integration != toolkit.integration.key {
                return Err(Refusal::bad_request(format!("`auth_configs.{slug}`: this auth config is one of another toolkit.")).into());
            }
        }
        Ok(())
    }
}

/// The rows that a session names, in its order, or all where it names none.
fn pinned(config: &Config, slug: &str, rows: Vec<Connection>) -> Vec<Connection> {
    let Some(pinned) = config.connected_accounts.get(slug).filter(|pinned| !pinned.is_empty()) else { return rows };
    let place = |row: &Connection| pinned.iter().position(|id| *id == ids::ACCOUNT.show(row.id));
    let mut kept: Vec<Connection> = rows.into_iter().filter(|row| place(row).is_some()).collect();
    kept.sort_by_key(place);
    kept
}

/// What an account is called: by its alias where it has one.
pub(super) fn called(row: &Connection) -> String {
    row.alias.clone().unwrap_or_else(|| ids::ACCOUNT.show(row.id))
}

fn choose(config: &Config, toolkit: &Toolkit, mut rows: Vec<Connection>, wanted: Option<&str>) -> Result<Connection, Refusal> {
    let all = |rows: &[Connection]| rows.iter().map(|row| format!("`{}`", called(row))).collect::<Vec<_>>().join(", ");
    let usable = rows.iter().filter(|row| row.is_usable()).count();
    if let Some(wanted) = wanted.map(str::trim).filter(|wanted| !wanted.is_empty()) {
        let is_it = |row: &Connection| ids::ACCOUNT.show(row.id) == wanted || row.alias.as_deref() == Some(wanted) || row.slug == wanted;
        let shown: String = wanted.chars().filter(|letter| !letter.is_control()).take(60).collect();
        let found = rows.iter().position(is_it).ok_or_else(|| {
            let others = if rows.is_empty() { String::new() } else { format!(" There are {}.", all(&rows)) };
            Refusal::no_account(format!("The user has no account `{shown}` of toolkit `{}` in this session.{others}", toolkit.slug))
        })?;
        return Ok(rows.swap_remove(found));
    }
    if config.must_choose() && usable > 1 {
        let message = format!("The user has several accounts of toolkit `{}`: {}. Name one as `account`.", toolkit.slug, all(&rows));
        return Err(Refusal::of_status(400, "ToolRouterV2_AccountSelectionRequired", message));
    }
    // Where a session names accounts, the first is meant, whether it works or not.
    let is_pinned = config.connected_accounts.get(&toolkit.slug).is_some_and(|pinned| !pinned.is_empty());
    let best = if is_pinned { 0 } else { rows.iter().position(Connection::is_usable).unwrap_or(0) };
    if rows.is_empty() {
        let refusal = Refusal::no_account(format!("The user has no connected account of toolkit `{}`.", toolkit.slug));
        let fix =
            if config.connects() { "Connect one with COMPOSIO_MANAGE_CONNECTIONS." } else { "Connect an account for this user first." };
        return Err(refusal.fix(fix));
    }
    Ok(rows.swap_remove(best))
}
