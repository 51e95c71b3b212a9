//! Which account is used. Whoever looks for one says whose accounts are meant, so that what is done for one end user cannot reach an
//! account of another, nor one of the project.

use kernel::{AccountOwner, ConnectionId, EndUserId, ProjectId, Scope};

use crate::{Connection, ConnectionError, Connections, store};

/// In place of a slug: the newest account that works.
pub const NEWEST: &str = "auto";
/// In place of a slug: the account, if there is one only.
pub const ONLY: &str = "only";

/// Whose accounts are meant: those of a project itself, or of one of its end users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccountsOf {
    pub(crate) project: ProjectId,
    pub(crate) owner: AccountOwner,
}

impl AccountsOf {
    /// The project's own.
    pub fn project(project: ProjectId) -> Self {
        Self { project, owner: AccountOwner::Project }
    }

    /// The project that they are in.
    pub fn of_project(self) -> ProjectId {
        self.project
    }

    pub fn end_user(project: ProjectId, end_user: EndUserId) -> Self {
        Self { project, owner: AccountOwner::EndUser(end_user) }
    }
}

impl From<Scope> for AccountsOf {
    fn from(scope: Scope) -> Self {
        Self { project: scope.project, owner: scope.acts_for }
    }
}

/// Several accounts fit, and whoever asked wants to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeveralAccounts {
    pub integration: String,
    /// What each can be named by.
    pub names: Vec<String>,
}

impl Connections {
    /// The account of that name: its slug or alias, and for an end user also its id; or `auto` or `only`. An integration without accounts
    /// needs no row.
    pub async fn find(
        &self,
        of: impl Into<AccountsOf>,
        provider: &str,
        integration: &str,
        name: &str,
    ) -> Result<Option<Connection>, ConnectionError> {
        let of = of.into();
        let key = (of.project, format!("{}/{provider}/{integration}/{name}", of.owner.stored()));
        let row = self.0.called.or_find(key, || self.look_up(of, provider, integration, name)).await?;
        Ok(row.or_else(|| {
            let listed = self.0.catalog.integration(of.project, provider, integration).ok()?;
            match name {
                NEWEST | ONLY => Connection::implicit(of, &listed),
                slug => Connection::implicit_named(of, &listed, slug),
            }
        }))
    }

    async fn look_up(&self, of: AccountsOf, provider: &str, integration: &str, name: &str) -> Result<Option<Connection>, ConnectionError> {
        if let Some(row) = store::by_slug(&self.0.db, of, provider, integration, name).await? {
            return Ok(Some(row));
        }
        if of.owner == AccountOwner::Project && !matches!(name, NEWEST | ONLY) {
            return Ok(store::by_alias(&self.0.db, of, provider, integration, name).await?);
        }
        choose(self.choices(of, Some(provider), Some(integration)).await?, name)
            .map_err(|names| ConnectionError::Several(SeveralAccounts { integration: integration.to_owned(), names }))
    }

    /// The active connections of one owner, newest first.
    pub async fn query(
        &self,
        of: impl Into<AccountsOf>,
        provider: Option<&str>,
        integration: Option<&str>,
    ) -> Result<Vec<Connection>, ConnectionError> {
        Ok(store::query(&self.0.db, of.into(), provider, integration).await?)
    }

    /// The same in the order in which they are to be picked: first those that are not refused, of those the newest.
    pub async fn choices(
        &self,
        of: impl Into<AccountsOf>,
        provider: Option<&str>,
        integration: Option<&str>,
    ) -> Result<Vec<Connection>, ConnectionError> {
        let mut rows = self.query(of, provider, integration).await?;
        rows.sort_by_key(Connection::is_failing);
        Ok(rows)
    }

    /// The active connections of a project and of all its end users, newest first, so many after a given one. They are for whoever looks
    /// after the project, not for whoever looks for an account.
    #[kernel::boxed]
    pub async fn everybody(
        &self,
        project: ProjectId,
        provider: Option<&str>,
        integration: Option<&str>,
        after: Option<ConnectionId>,
        limit: i64,
    ) -> Result<Vec<Connection>, ConnectionError> {
        Ok(store::everybody(&self.0.db, project, provider, integration, after, limit).await?)
    }
}

/// The account among those of one owner, best first, that a name means; all of their names where it means no one in particular.
fn choose(mut rows: Vec<Connection>, name: &str) -> Result<Option<Connection>, Vec<String>> {
    if !matches!(name, NEWEST | ONLY) {
        let id: Option<ConnectionId> = name.parse().ok();
        return Ok(rows.into_iter().find(|row| row.alias.as_deref() == Some(name) || Some(row.id) == id));
    }
    // Where none works, the newest says why.
    if let Some(first) = rows.iter().position(Connection::is_usable) {
        rows.swap(0, first);
        if name == ONLY && rows.iter().filter(|row| row.is_usable()).count() > 1 {
            return Err(rows.iter().filter(|row| row.is_usable()).map(|row| row.alias.clone().unwrap_or(row.slug.clone())).collect());
        }
    }
    Ok(rows.into_iter().next())
}
