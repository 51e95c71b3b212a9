//! The apps of a project: what the catalog has, what is connected, what was added. How an app stands follows from these alone, so that a
//! connection that goes suspends its assignments and one that comes back restores them, without a write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use catalog::{Catalog, Integration};
use connections::{AccountsOf, Connection, NEWEST};
use kernel::{ProjectId, Timestamp};

use crate::{AppName, AppPolicy, Reason};

/// How an app stands in a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppStatus {
    /// There is a working connection.
    Active,
    /// An authorization was begun and not completed.
    Pending,
    /// It was chosen and never connected.
    Added,
    /// Its connection was revoked.
    Disabled,
    /// Its authorization failed, or does not hold any more.
    Failed,
    NotConnected,
    Unknown,
}

impl AppStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Pending => "pending",
            Self::Added => "added",
            Self::Disabled => "disabled",
            Self::Failed => "failed",
            Self::NotConnected => "not_connected",
            Self::Unknown => "unknown",
        }
    }

    /// Whether it may be given to an agent.
    pub fn is_assignable(self) -> bool {
        matches!(self, Self::Active | Self::Pending | Self::Added)
    }

    /// Whether its tools can be called.
    pub fn is_usable(self) -> bool {
        self == Self::Active
    }
}

/// The way to an app: its integration and the connection to use.
#[derive(Clone, Debug)]
pub struct Route {
    pub integration: Arc<Integration>,
    pub connection: String,
    /// What there is to say about a connection that its service refuses.
    pub failure: Option<String>,
}

/// Every app that a project can see.
#[derive(Debug)]
pub struct Apps {
    project: ProjectId,
    /// Whose connections count.
    of: AccountsOf,
    catalog: Catalog,
    /// In the order in which they are picked.
    rows: HashMap<AppName, Vec<Connection>>,
    added: HashMap<AppName, Timestamp>,
    offered: OnceLock<BTreeMap<AppName, Vec<Arc<Integration>>>>,
}

impl Apps {
    pub(crate) fn new(of: AccountsOf, catalog: Catalog, connections: Vec<Connection>, added: Vec<(AppName, Timestamp)>) -> Self {
        let mut rows: HashMap<AppName, Vec<Connection>> = HashMap::new();
        for connection in connections {
            rows.entry(AppName::of(&connection.integration)).or_default().push(connection);
        }
        Self { project: of.of_project(), of, catalog, rows, added: added.into_iter().collect(), offered: OnceLock::new() }
    }

    /// What the catalog offers, by app; the providers in their order.
    pub fn offered(&self) -> &BTreeMap<AppName, Vec<Arc<Integration>>> {
        self.offered.get_or_init(|| {
            let mut offered: BTreeMap<AppName, Vec<Arc<Integration>>> = BTreeMap::new();
            let sources = self.catalog.providers().into_iter().filter_map(|provider| self.catalog.source(provider.key).ok());
            for integration in sources.flat_map(|source| source.integrations(self.project)) {
                offered.entry(AppName::of(&integration.key)).or_default().push(integration);
            }
            offered
        })
    }

    /// The integrations behind an app.
    pub fn integrations(&self, app: &AppName) -> &[Arc<Integration>] {
        self.offered().get(app).map_or(&[], Vec::as_slice)
    }

    /// The apps that the project connected or chose.
    pub fn own(&self) -> BTreeSet<&AppName> {
        self.rows.keys().chain(self.added.keys()).collect()
    }

    /// The apps that have a connection of any kind.
    pub fn connected(&self) -> impl Iterator<Item = &AppName> {
        self.rows.keys()
    }

    pub fn rows(&self, app: &AppName) -> &[Connection] {
        self.rows.get(app).map_or(&[], Vec::as_slice)
    }

    /// When somebody chose the app before it was connected.
    pub fn added_at(&self, app: &AppName) -> Option<Timestamp> {
        self.added.get(app).copied()
    }

    pub fn status(&self, app: &AppName) -> AppStatus {
        let rows = self.rows(app);
        match () {
            () if rows.iter().any(Connection::is_usable) => AppStatus::Active,
            // A row that waits has no reason yet; one that was revoked or failed has.
            () if rows.iter().any(|row| row.reason.is_none()) => AppStatus::Pending,
            () if rows.first().is_some_and(Connection::is_revoked) => AppStatus::Disabled,
            () if !rows.is_empty() => AppStatus::Failed,
            () if self.added.contains_key(app) => AppStatus::Added,
            () if self.offered().contains_key(app) => AppStatus::NotConnected,
            () => AppStatus::Unknown,
        }
    }

    /// The working connection that is picked first of those that the policy lets through, or why there is none.
    pub fn route(&self, app: &AppName, policy: &AppPolicy) -> Result<Route, Reason> {
        let fitting = || self.rows(app).iter().filter(|row| policy.fits(&row.provider, &row.slug));
        let mut usable = fitting().filter(|row| row.is_usable()).peekable();
        if usable.peek().is_none() {
            return Err(self.why_not(app, policy, fitting().next().is_some()));
        }
        let route = usable.find_map(|row| {
            let integration = self.catalog.integration(self.project, &row.provider, &row.integration).ok()?;
            Some(Route { integration, connection: row.slug.clone(), failure: row.failure.clone() })
        });
        route.ok_or_else(|| Reason::NotInCatalog(app.clone()))
    }

    /// The way through one connection, or why it is closed.
    pub fn through(&self, provider: &str, integration: &str, connection: &str) -> Result<Route, Reason> {
        let app = AppName::of(integration);
        let rows = self.rows(&app).iter();
        let named = |row: &Connection| row.slug == connection || row.alias.as_deref() == Some(connection);
        let mut rows = rows.filter(|row| row.provider == provider && row.integration == integration);
        let row = match connection {
            NEWEST => rows.clone().find(|row| row.is_usable()).or_else(|| rows.next()),
            _ => rows.find(|row| named(row)),
        };
        let listed = self.catalog.integration(self.project, provider, integration).ok();
        let is_implicit = |listed: &Integration| match connection {
            NEWEST => Connection::implicit(self.of, listed).is_some(),
            slug => Connection::implicit_named(self.of, listed, slug).is_some(),
        };
        match (row, listed) {
            (Some(row), _) if !row.is_usable() => Err(waiting(app, row)),
            (None, listed) if !listed.as_deref().is_some_and(is_implicit) => {
                Err(Reason::NoSuchConnection { app, connection: connection.to_owned() })
            }
            (row, Some(integration)) => {
                let failure = row.and_then(|row| row.failure.clone());
                Ok(Route { integration, connection: connection.to_owned(), failure })
            }
            (_, None) => Err(Reason::NotInCatalog(app)),
        }
    }

    fn why_not(&self, app: &AppName, policy: &AppPolicy, has_fitting_row: bool) -> Reason {
        let app = app.clone();
        if !has_fitting_row && !self.rows(&app).is_empty() {
            return match (&policy.connection, &policy.provider) {
                (Some(connection), _) => Reason::NoSuchConnection { app, connection: connection.clone() },
                (None, provider) => Reason::NoSuchProvider { app, provider: provider.clone().unwrap_or_default() },
            };
        }
        match self.rows(&app).iter().find(|row| policy.fits(&row.provider, &row.slug)) {
            Some(row) => waiting(app, row),
            None if self.added.contains_key(&app) || self.offered().contains_key(&app) => Reason::NotConnected(app),
            None => Reason::UnknownApp(app),
        }
    }
}

fn waiting(app: AppName, row: &Connection) -> Reason {
    match &row.reason {
        None => Reason::Pending(app),
        Some(_) if row.is_revoked() => Reason::Disabled(app),
        Some(why) => Reason::Failed { app, why: why.clone() },
    }
}
