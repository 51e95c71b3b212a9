//! Making, replacing and removing imports. A credential stays with the hosts it was given for: a new version that would send it elsewhere
//! is refused as long as accounts are connected, or takes their credentials away when it is forced.

use std::time::Duration;

use ::store::Usage;
use connections::{AccountsOf, Connection, NewOAuthApp, OAuthApp, Owner, Usable};
use kernel::{ConnectionId, ImportId, ProjectId, Scope};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::difference::{self, Difference};
use crate::model::{check_key, key_of, name_of};
use crate::store::{self as rows, Write};
use crate::{Import, ImportError, Imports, Order, Origin, Plan, Skipped, Source, Stored};

/// How long the source may take to be read; less than a request has.
const READING: Duration = Duration::from_secs(45);
/// The longest definition.
const MAX_DEFINITION: usize = 24 << 20;
const MAX_SKIPPED: usize = 2000;
/// What those who used a connection hear that lost its credential.
const MOVED_HOSTS: &str = "Its integration was imported anew and sends credentials to other hosts.";

/// How far an import shall go.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportMode {
    /// Say what would happen, and write nothing.
    pub dry_run: bool,
    /// Take credentials away where the import needs it.
    pub force: bool,
    /// No person asked for it: what takes one's word is left as it is.
    pub unasked: bool,
}

/// What an import came to.
#[derive(Debug)]
pub struct Made {
    /// The row; in a dry run the one that would be written.
    pub import: Import,
    pub is_new: bool,
    pub difference: Difference,
    pub skipped: Vec<Skipped>,
    pub warnings: Vec<String>,
    /// Connections that lost their credential.
    pub released: Vec<ConnectionId>,
}

/// What was connected for an integration.
#[derive(Debug)]
struct Connected {
    connections: Vec<Connection>,
    apps: Vec<OAuthApp>,
}

impl Connected {
    fn names(&self, wanted: impl Fn(&Connection) -> bool) -> Vec<String> {
        let connections = self.connections.iter().filter(|connection| wanted(connection));
        let connections = connections.map(|connection| format!("connection `{}`", connection.slug));
        connections.chain(self.apps.iter().map(|app| format!("OAuth app `{}`", app.client_id))).collect()
    }
}

impl Imports {
    /// Imports something; what was imported under the same key is replaced.
    #[kernel::boxed]
    pub async fn make(&self, scope: Scope, provider: &str, order: Order, mode: ImportMode) -> Result<Made, ImportError> {
        if let Some(key) = &order.key {
            check_key(key)?;
        }
        let plan = self.plan(provider, &order).await?;
        let name = name_of(order.name.as_deref().unwrap_or(&plan.name));
        let key = order.key.clone().unwrap_or_else(|| key_of(&name));
        let known = rows::stored_by_key(&self.0.db, &self.0.sealer, scope.project, provider, &key).await?;
        if let Some(known) = &known {
            let same = match &order.from {
                _ if order.key.is_some() => true,
                Origin::Url(url) => known.import.source.url.as_ref() == Some(url),
                Origin::Settings => known.import.source == Source::of(&order),
                Origin::Text(_) | Origin::Json(_) => false,
            };
            if !same {
                return Err(ImportError::Taken { key });
            }
        }
        self.settle(scope, provider, &key, name, order, plan, known, mode).await
    }

    /// Reads the source of an import again.
    #[kernel::boxed]
    pub async fn refresh(&self, scope: Scope, id: ImportId, mode: ImportMode) -> Result<Made, ImportError> {
        let account = self.account(scope.project, id).await?;
        self.refresh_as(scope, id, mode, account).await
    }

    /// The same, with the credential of an account.
    pub(crate) async fn refresh_as(
        &self,
        scope: Scope,
        id: ImportId,
        mode: ImportMode,
        account: Option<Usable>,
    ) -> Result<Made, ImportError> {
        let known = rows::stored(&self.0.db, &self.0.sealer, scope.project, id).await?.ok_or(ImportError::NotFound)?;
        let Import { provider, key, name, source, .. } = known.import.clone();
        let from = self.0.mirror.importer(&provider)?.again(&source).ok_or(ImportError::NothingToFetch)?;
        let order = Order {
            project: scope.project,
            key: Some(key.clone()),
            name: Some(name.clone()),
            from,
            settings: source.settings,
            secret: known.secret.clone(),
            account,
            again: Some(id),
        };
        let mut plan = self.plan(&provider, &order).await?;
        if mode.unasked
            && let Ok(before) = serde_json::from_str(&known.definition)
        {
            self.0.mirror.importer(&provider)?.hold_back(&before, &mut plan)?;
        }
        self.settle(scope, &provider, &key, name, order, plan, Some(known), mode).await
    }

    /// The credential of an account that is connected to the integration.
    async fn account(&self, project: ProjectId, id: ImportId) -> Result<Option<Usable>, ImportError> {
        let import = self.get(project, id).await?;
        if !self.0.mirror.importer(&import.provider)?.reads_as_account() {
            return Ok(None);
        }
        self.0.catalog.ready(project).await.map_err(connections::ConnectionError::from)?;
        let Ok(integration) = self.0.catalog.integration(project, &import.provider, &import.key) else { return Ok(None) };
        for connection in self.0.connections.choices(AccountsOf::project(project), Some(&import.provider), Some(&import.key)).await? {
            if connection.is_usable()
                && !connection.is_no_auth()
                && let Ok(usable) = self.0.connections.usable(&connection, &integration).await
            {
                return Ok(Some(Usable::clone(&usable)));
            }
        }
        Ok(None)
    }

    async fn plan(&self, provider: &str, order: &Order) -> Result<Plan, ImportError> {
        let importer = self.0.mirror.importer(provider)?.clone();
        let reading = async {
            let _turn = self.0.reads.lock(&order.project).await;
            importer.plan(order, &self.0.workers).await
        };
        let late = || ImportError::Upstream(format!("it took longer than {} seconds", READING.as_secs()));
        let mut plan = tokio::time::timeout(READING, reading).await.map_err(|_| late())??;
        if plan.skipped.len() > MAX_SKIPPED {
            plan.warnings.push(format!("{} more were skipped", plan.skipped.len() - MAX_SKIPPED));
            plan.skipped.truncate(MAX_SKIPPED);
        }
        Ok(plan)
    }

    #[expect(clippy::too_many_arguments, reason = "what a plan was made from, and what it meets")]
    async fn settle(
        &self,
        scope: Scope,
        provider: &str,
        key: &str,
        name: String,
        order: Order,
        plan: Plan,
        known: Option<Stored>,
        mode: ImportMode,
    ) -> Result<Made, ImportError> {
        let now = self.0.clock.now();
        let count = difference::count(&plan.definition);
        let old = known.as_ref().map(|known| &known.import);
        let import = Import {
            id: old.map_or_else(ImportId::new, |old| old.id),
            project: scope.project,
            provider: provider.to_owned(),
            key: key.to_owned(),
            name,
            source: Source::of(&order),
            origins: plan.origins,
            actions_count: i64::try_from(count).unwrap_or(i64::MAX),
            version: old.map_or(1, |old| old.version + 1),
            created_at: old.map_or(now, |old| old.created_at),
            updated_at: now,
            created_by: old.map_or(Some(scope.author()), |old| old.created_by),
            updated_by: old.map(|_| scope.author()),
        };
        let before: Option<Map<String, Value>> = known.as_ref().and_then(|known| serde_json::from_str(&known.definition).ok());
        let difference = Difference::between(before.as_ref(), &plan.definition);
        let same = before.as_ref() == Some(&plan.definition);
        let definition = Value::Object(plan.definition).to_string();
        self.check_room(&import, definition.len()).await?;
        let mut made =
            Made { import, is_new: known.is_none(), difference, skipped: plan.skipped, warnings: plan.warnings, released: Vec::new() };
        if let Some(known) = &known {
            self.keep_credentials_home(scope, &known.import, mode, &mut made).await?;
        }
        if mode.dry_run {
            return Ok(made);
        }
        let write = Write { import: &made.import, definition: &definition, secret: order.secret.as_ref() };
        match known {
            None => rows::insert(&self.0.db, &self.0.sealer, &write).await.map_err(|error| match error {
                ::store::StoreError::Conflict => ImportError::Moved,
                other => other.into(),
            })?,
            Some(known) if same && is_same_secret(known.secret.as_ref(), order.secret.as_ref()) && is_same(&known.import, &made.import) => {
                made.import = known.import;
                self.register(&definition, &mut made).await?;
                return Ok(made);
            }
            Some(known) => {
                if !rows::replace(&self.0.db, &self.0.sealer, &write, known.import.version).await? {
                    return Err(ImportError::Moved);
                }
            }
        }
        self.0.mirror.reload(scope.project).await?;
        self.register(&definition, &mut made).await?;
        Ok(made)
    }

    /// Sees to it that accounts can be connected, where that takes an OAuth app which the source's own server hands out.
    async fn register(&self, definition: &str, made: &mut Made) -> Result<(), ImportError> {
        let Import { project, provider, key, .. } = &made.import;
        let apps = self.0.connections.list_apps(Owner::Project(*project)).await?;
        if apps.iter().any(|app| app.provider == *provider && app.integration == *key) {
            return Ok(());
        }
        let callback = self.0.connections.redirect_url(Owner::Project(*project), provider, key);
        match self.0.mirror.importer(provider)?.register(definition, &callback).await {
            Ok(None) => {}
            Ok(Some(registered)) => {
                let app = NewOAuthApp {
                    provider: provider.clone(),
                    integration: key.clone(),
                    client_id: registered.client_id,
                    client_secret: registered.client_secret.expose_secret().to_owned(),
                    scopes: None,
                };
                self.0.connections.set_app(Owner::Project(*project), app).await?;
            }
            Err(why) => made.warnings.push(format!("no OAuth app was registered: {why}; save one of your own to connect accounts")),
        }
        Ok(())
    }

    async fn check_room(&self, import: &Import, length: usize) -> Result<(), ImportError> {
        if length > MAX_DEFINITION {
            return Err(ImportError::Invalid(format!("what it makes is larger than {} MiB; import a part of it", MAX_DEFINITION >> 20)));
        }
        let others = rows::weight(&self.0.db, import.project, Some(import.id)).await?;
        Ok(self.0.quota.admit(others, Usage::row(length))?)
    }

    /// Sees to it that no credential goes to an origin that it was not given for.
    async fn keep_credentials_home(&self, scope: Scope, old: &Import, mode: ImportMode, made: &mut Made) -> Result<(), ImportError> {
        let elsewhere: Vec<&str> = made.import.origins.difference(&old.origins).map(String::as_str).collect();
        if elsewhere.is_empty() {
            return Ok(());
        }
        let mut held = self.held(scope.project, old).await?;
        held.connections.retain(|connection| !connection.is_no_auth());
        let names = held.names(Connection::is_usable);
        if !names.is_empty() {
            made.warnings.push(format!("credentials would go to {}: {} are disconnected", elsewhere.join(", "), names.join(", ")));
        }
        if mode.dry_run {
            return Ok(());
        }
        if !names.is_empty() && !mode.force {
            return Err(ImportError::InUse { why: "it would send credentials to other hosts than they were given for", names });
        }
        // Those that only wait for a person are stopped too: what the person types was meant for the old hosts.
        for connection in held.connections {
            self.0.connections.revoke(scope, connection.id, MOVED_HOSTS).await?;
            made.released.push(connection.id);
        }
        self.drop_apps(scope.project, &held.apps).await
    }

    /// Removes an import. While it is connected, only by force, and then its connections go with it.
    #[kernel::boxed]
    pub async fn delete(&self, scope: Scope, id: ImportId, force: bool) -> Result<(), ImportError> {
        let import = self.get(scope.project, id).await?;
        let held = self.held(scope.project, &import).await?;
        let names = held.names(|_| true);
        if !names.is_empty() && !force {
            return Err(ImportError::InUse { why: "it is connected", names });
        }
        for connection in held.connections {
            match self.0.connections.delete(scope, connection.id).await {
                Ok(()) | Err(connections::ConnectionError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.drop_apps(scope.project, &held.apps).await?;
        let deleted = rows::delete(&self.0.db, scope.project, id).await?;
        self.0.mirror.reload(scope.project).await?;
        if deleted { Ok(()) } else { Err(ImportError::NotFound) }
    }

    async fn held(&self, project: ProjectId, import: &Import) -> Result<Connected, ImportError> {
        let connections = self.0.connections.everybody(project, Some(&import.provider), Some(&import.key), None, i64::MAX).await?;
        let mut apps = self.0.connections.list_apps(Owner::Project(project)).await?;
        apps.retain(|app| app.provider == import.provider && app.integration == import.key);
        Ok(Connected { connections, apps })
    }

    async fn drop_apps(&self, project: ProjectId, apps: &[OAuthApp]) -> Result<(), ImportError> {
        for app in apps {
            match self.0.connections.delete_app(Owner::Project(project), app.id).await {
                Ok(()) | Err(connections::ConnectionError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn is_same_secret(old: Option<&SecretString>, new: Option<&SecretString>) -> bool {
    old.map(ExposeSecret::expose_secret) == new.map(ExposeSecret::expose_secret)
}

/// Whether two rows say the same beside their version and times.
fn is_same(old: &Import, new: &Import) -> bool {
    (&old.name, &old.source, &old.origins) == (&new.name, &new.source, &new.origins)
}
