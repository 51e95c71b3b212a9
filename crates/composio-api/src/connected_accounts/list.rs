//! Lists of accounts: filters in Composio's words become those of `connections`, and the database counts and cuts.

use connections::{AccountFilter, AccountOrder, ConnectionState};
use kernel::Scope;

use super::AccountBody;
use crate::choice::status;
use crate::page::{Page, Window, commas};
use crate::{ApiError, ComposioApi, Refusal, ids};

/// The most on a page, and as many values as one filter may name.
const MOST: usize = 200;
const MAX_NAMED: usize = 100;
/// Statuses that Composio knows and no account here has.
const NEVER: [&str; 2] = ["INITIALIZING", "INACTIVE"];

/// Which accounts to list; lists are texts with commas. What is left out does not matter.
#[derive(Clone, Debug, Default)]
pub struct AccountsFilter {
    pub user_ids: Option<String>,
    pub toolkit_slugs: Option<String>,
    pub statuses: Option<String>,
    pub auth_config_ids: Option<String>,
    pub connected_account_ids: Option<String>,
    /// `PRIVATE`, `SHARED` or `ALL`.
    pub account_type: Option<String>,
    /// `created_at` or `updated_at`.
    pub order_by: Option<String>,
    /// `asc` or `desc`.
    pub order_direction: Option<String>,
}

/// The values of a filter; nothing where it was left out.
fn named(what: &str, text: Option<&str>) -> Result<Option<Vec<String>>, Refusal> {
    let values = commas(text);
    if values.len() > MAX_NAMED {
        return Err(Refusal::bad_request(format!("`{what}` may name {MAX_NAMED} values.")));
    }
    Ok(Some(values).filter(|values| !values.is_empty()))
}

fn one_of(what: &str, text: Option<&str>, known: &[&'static str]) -> Result<Option<&'static str>, Refusal> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let found = known.iter().find(|known| known.eq_ignore_ascii_case(text));
    found.copied().map(Some).ok_or_else(|| Refusal::bad_request(format!("`{what}` must be `{}`.", known.join("` or `"))))
}

fn states(words: Option<Vec<String>>) -> Result<Option<Vec<ConnectionState>>, Refusal> {
    let Some(words) = words else { return Ok(None) };
    let mut states = Vec::new();
    for word in words {
        let word = word.to_uppercase();
        match ConnectionState::ALL.into_iter().find(|state| status(*state) == word) {
            Some(state) => states.push(state),
            None if NEVER.contains(&word.as_str()) => {}
            None => {
                let known = ConnectionState::ALL.map(status).join("`, `");
                return Err(Refusal::bad_request(format!("`statuses` may name `{known}`.")));
            }
        }
    }
    Ok(Some(states))
}

fn order(by: Option<&str>, direction: Option<&str>) -> Result<AccountOrder, Refusal> {
    let by = one_of("order_by", by, &["created_at", "updated_at"])?;
    let direction = one_of("order_direction", direction, &["asc", "desc"])?;
    Ok(match (by, direction) {
        (Some("updated_at"), Some("asc")) => AccountOrder::FirstChanged,
        (Some("updated_at"), _) => AccountOrder::LastChanged,
        (_, Some("asc")) => AccountOrder::Oldest,
        _ => AccountOrder::Newest,
    })
}

impl ComposioApi {
    /// Accounts, newest first unless another order is asked for.
    #[kernel::boxed]
    pub async fn list_accounts(
        &self,
        scope: Scope,
        filter: &AccountsFilter,
        limit: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<AccountBody>, ApiError> {
        let window = Window::read(limit, cursor, MOST)?;
        let is_shared = one_of("account_type", filter.account_type.as_deref(), &["PRIVATE", "SHARED", "ALL"])? == Some("SHARED");
        let query = self.account_filter(scope, filter).await?;
        if is_shared {
            return Ok(window.page(Vec::new(), 0));
        }
        let found = self.parts().connections.list(scope, &query, window.offset(), window.limit()).await?;
        let bodies = self.account_bodies(scope, &found.rows).await?.into_iter().map(AccountBody::in_list).collect();
        Ok(window.page(bodies, found.total))
    }

    /// What nobody has fits nothing.
    async fn account_filter(&self, scope: Scope, filter: &AccountsFilter) -> Result<AccountFilter, ApiError> {
        let mut query = AccountFilter {
            states: states(named("statuses", filter.statuses.as_deref())?)?,
            order: order(filter.order_by.as_deref(), filter.order_direction.as_deref())?,
            ..AccountFilter::default()
        };
        if let Some(users) = named("user_ids", filter.user_ids.as_deref())? {
            let mut owners = Vec::new();
            for user in users {
                owners.push(self.looking_for(scope, &user).await?.acts_for);
            }
            query.owners = Some(owners);
        }
        if let Some(slugs) = named("toolkit_slugs", filter.toolkit_slugs.as_deref())? {
            let names = self.names(scope).await?;
            let found = slugs.iter().filter_map(|slug| names.find_toolkit(slug));
            query.integrations =
                Some(found.map(|toolkit| (toolkit.integration.provider.to_owned(), toolkit.integration.key.clone())).collect());
        }
        if let Some(configs) = named("auth_config_ids", filter.auth_config_ids.as_deref())? {
            let mut made_with = Vec::new();
            for id in configs {
                match self.auth_config(scope, &id).await {
                    Ok(config) => made_with.push(config.made_with()),
                    Err(ApiError::Refused(refusal)) if refusal.status == 404 => {}
                    Err(error) => return Err(error),
                }
            }
            query.made_with = Some(made_with);
        }
        if let Some(accounts) = named("connected_account_ids", filter.connected_account_ids.as_deref())? {
            query.ids = Some(accounts.iter().filter_map(|id| ids::ACCOUNT.read(id)).collect());
        }
        Ok(query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_composio() {
        let read = |text: &str| states(named("statuses", Some(text)).unwrap());
        assert_eq!(read("ACTIVE,initiated").unwrap(), Some(vec![ConnectionState::Connected, ConnectionState::Waiting]));
        assert_eq!(read("INACTIVE").unwrap(), Some(Vec::new()), "no account is ever so");
        assert_eq!(read("").unwrap(), None);
        assert_eq!(read("ACTIVE,GONE").unwrap_err().status, 400);
    }

    #[test]
    fn an_order_is_known_or_refused() {
        assert_eq!(order(None, None), Ok(AccountOrder::Newest));
        assert_eq!(order(Some("updated_at"), Some("asc")), Ok(AccountOrder::FirstChanged));
        assert_eq!(order(Some("created_at"), Some("ASC")), Ok(AccountOrder::Oldest));
        assert!(order(Some("name"), None).is_err() && order(None, Some("up")).is_err());
        assert!(named("user_ids", Some(&vec!["x"; MAX_NAMED + 1].join(","))).is_err());
    }
}
