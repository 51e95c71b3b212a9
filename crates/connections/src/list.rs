//! Lists of accounts over all owners of a project, for whoever looks after it: filtered, counted and cut into pages by the database.

use kernel::{AccountOwner, AuthConfigId, ConnectionId, ProjectId, Scope, Timestamp};
use store::{Row, StoreError, args};

use crate::state::{SETTLING, state_sql};
use crate::store::{columns, read};
use crate::{Connection, ConnectionError, ConnectionState, Connections};

/// How an account was made: with an auth config, or without one by a scheme of its integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MadeWith {
    AuthConfig(AuthConfigId),
    Scheme { provider: String, integration: String, scheme: String },
}

impl MadeWith {
    fn word(&self) -> String {
        match self {
            Self::AuthConfig(id) => id.to_string(),
            Self::Scheme { provider, integration, scheme } => format!("{provider}/{integration}/{scheme}"),
        }
    }
}

/// Which accounts. What is left out does not matter; an empty list fits nothing.
#[derive(Clone, Debug, Default)]
pub struct AccountFilter {
    pub owners: Option<Vec<AccountOwner>>,
    /// Provider and key.
    pub integrations: Option<Vec<(String, String)>>,
    pub states: Option<Vec<ConnectionState>>,
    pub made_with: Option<Vec<MadeWith>>,
    pub ids: Option<Vec<ConnectionId>>,
    pub order: AccountOrder,
}

/// In which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccountOrder {
    #[default]
    Newest,
    Oldest,
    LastChanged,
    FirstChanged,
}

/// Some accounts, of so many.
#[derive(Clone, Debug)]
pub struct AccountPage {
    pub rows: Vec<Connection>,
    pub total: usize,
}

macro_rules! fitting {
    () => {
        concat!(
            " from gateway_connections where project_id = $1 and ($4 is null or owner = $4) \
             and ($5 is null or $5 like '%,' || owner || ',%') \
             and ($6 is null or $6 like '%,' || replace(provider_key || '/' || integration_key, '_', '\\_') || ',%' escape '\\') \
             and ($7 is null or $7 like '%,' || ",
            state_sql!(),
            " || ',%') \
             and ($8 is null or $8 like '%,' || case when auth_config <> '' then auth_config \
             else replace(provider_key || '/' || integration_key || '/' || coalesce(auth_scheme, ''), '_', '\\_') end || ',%' escape '\\') \
             and ($9 is null or auth_config = $9)"
        )
    };
}

/// Words between commas, so that each is found by its commas.
fn listed(words: impl IntoIterator<Item = String>) -> String {
    words.into_iter().fold(",".to_owned(), |list, word| format!("{list}{word},"))
}

impl Connections {
    /// Accounts of a project and of its end users, also those that are switched off; for an end user, their own.
    #[kernel::boxed]
    pub async fn list(&self, scope: Scope, filter: &AccountFilter, offset: usize, limit: usize) -> Result<AccountPage, ConnectionError> {
        if let Some(ids) = &filter.ids {
            return self.list_of_ids(scope, filter, ids, offset, limit).await;
        }
        let (now, project) = (self.0.clock.now(), scope.project);
        let own = scope.end_user().map(AccountOwner::EndUser);
        let owners = match (&filter.owners, own) {
            (None, None) => None,
            (None, Some(own)) => Some(vec![own]),
            (Some(owners), _) => Some(owners.iter().copied().filter(|owner| scope.sees(*owner)).collect()),
        };
        // One owner and one auth config are looked up; for several, the rows are gone through.
        let one_owner = owners.as_ref().filter(|owners| owners.len() == 1).map(|owners| owners[0].stored());
        let several_owners = owners.filter(|_| one_owner.is_none()).map(|owners| listed(owners.into_iter().map(AccountOwner::stored)));
        let one_config = match filter.made_with.as_deref() {
            Some([MadeWith::AuthConfig(id)]) => Some(id.to_string()),
            _ => None,
        };
        let made_with = filter.made_with.as_ref().filter(|_| one_config.is_none()).map(|all| listed(all.iter().map(MadeWith::word)));
        let integrations = filter.integrations.as_ref().map(|all| listed(all.iter().map(|(provider, key)| format!("{provider}/{key}"))));
        let states = filter.states.as_ref().map(|states| listed(states.iter().map(|state| state.word().to_owned())));
        let (offset, limit) = (i64::try_from(offset).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
        let since = now.minus(SETTLING);
        let several_owners = several_owners.as_deref();
        let common = || {
            args![
                project,
                now,
                since,
                one_owner.as_deref(),
                several_owners,
                integrations.as_deref(),
                states.as_deref(),
                made_with.as_deref(),
                one_config.as_deref()
            ]
        };
        let sql = match filter.order {
            AccountOrder::Newest => {
                concat!("select ", columns!(), fitting!(), " order by id desc limit $10 offset $11")
            }
            AccountOrder::Oldest => concat!("select ", columns!(), fitting!(), " order by id limit $10 offset $11"),
            AccountOrder::LastChanged => {
                concat!("select ", columns!(), fitting!(), " order by updated_at desc, id desc limit $10 offset $11")
            }
            AccountOrder::FirstChanged => concat!("select ", columns!(), fitting!(), " order by updated_at, id limit $10 offset $11"),
        };
        let rows = self.0.db.all(sql, common().into_iter().chain(args![limit, offset])).await?;
        let rows: Vec<Connection> = rows.iter().map(read).collect::<Result<_, _>>()?;
        let total = self.0.db.optional(concat!("select count(*) as many", fitting!()), common()).await?;
        Ok(AccountPage { rows, total: counted(total.as_ref())? })
    }

    /// The same among accounts that are named.
    async fn list_of_ids(
        &self,
        scope: Scope,
        filter: &AccountFilter,
        ids: &[ConnectionId],
        offset: usize,
        limit: usize,
    ) -> Result<AccountPage, ConnectionError> {
        let now = self.0.clock.now();
        let mut rows: Vec<Connection> = Vec::new();
        for id in ids {
            match self.seen(scope, *id).await {
                Ok(row) if filter.fits(&row, now) && rows.iter().all(|known| known.id != row.id) => rows.push(row),
                Ok(_) | Err(ConnectionError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        match filter.order {
            AccountOrder::Newest => rows.sort_by_key(|row| std::cmp::Reverse(row.id.uuid())),
            AccountOrder::Oldest => rows.sort_by_key(|row| row.id.uuid()),
            AccountOrder::LastChanged => rows.sort_by_key(|row| std::cmp::Reverse((row.updated_at, row.id.uuid()))),
            AccountOrder::FirstChanged => rows.sort_by_key(|row| (row.updated_at, row.id.uuid())),
        }
        let total = rows.len();
        Ok(AccountPage { rows: rows.into_iter().skip(offset).take(limit).collect(), total })
    }

    /// How many accounts were made with an auth config.
    #[kernel::boxed]
    pub async fn count_made_with(&self, project: ProjectId, config: AuthConfigId) -> Result<usize, ConnectionError> {
        let sql = "select count(*) as many from gateway_connections where project_id = $1 and auth_config = $2";
        Ok(counted(self.0.db.optional(sql, args![project, config.to_string()]).await?.as_ref())?)
    }

    /// Deletes every account that was made with an auth config, and tells who used them; how many there were.
    #[kernel::boxed]
    pub async fn delete_made_with(&self, scope: Scope, config: AuthConfigId) -> Result<usize, ConnectionError> {
        let this = self.clone();
        self.undisturbed(async move {
            let sql = "select id from gateway_connections where project_id = $1 and auth_config = $2 limit 200";
            let mut gone = 0;
            loop {
                let rows = this.0.db.all(sql, args![scope.project, config.to_string()]).await?;
                if rows.is_empty() {
                    return Ok(gone);
                }
                for row in rows {
                    match this.delete(scope, row.get::<ConnectionId>("id")?).await {
                        Ok(()) => gone += 1,
                        Err(ConnectionError::NotFound) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        })
        .await
    }
}

fn counted(row: Option<&Row>) -> Result<usize, StoreError> {
    let many = row.map_or(Ok(0), |row| row.get::<i64>("many"))?;
    Ok(usize::try_from(many).unwrap_or_default())
}

impl AccountFilter {
    fn fits(&self, row: &Connection, now: Timestamp) -> bool {
        let made_with = || match row.auth_config {
            Some(id) => MadeWith::AuthConfig(id),
            None => MadeWith::Scheme {
                provider: row.provider.clone(),
                integration: row.integration.clone(),
                scheme: row.auth_scheme.clone().unwrap_or_default(),
            },
        };
        self.owners.as_ref().is_none_or(|owners| owners.contains(&row.owner))
            && self
                .integrations
                .as_ref()
                .is_none_or(|all| all.iter().any(|(provider, key)| *provider == row.provider && *key == row.integration))
            && self.states.as_ref().is_none_or(|states| states.contains(&row.state(now).0))
            && self.made_with.as_ref().is_none_or(|all| all.contains(&made_with()))
    }
}
