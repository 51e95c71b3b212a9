//! What projects imported, in memory. A project is read when it is first used and let go when nobody uses it any more; what changes on
//! another node is noticed within a second.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use catalog::{CatalogError, Integration, Provider, Source};
use futures_util::future::BoxFuture;
use kernel::seal::Sealer;
use kernel::{ImportId, ProjectId};
use store::{Db, StoreError};
use tokio::sync::Mutex;

use crate::{ImportError, Importer, Stored, store as rows};

/// How long a project that nobody uses stays in memory; much longer than any request takes.
const IDLE: Duration = Duration::from_mins(30);
/// How many projects are read at once.
const READ_LOCKS: usize = 8;
/// How often a list that changes while it is read is read again.
const TRIES: usize = 8;

/// Every project's imports, as far as they are in use.
#[derive(Clone, Debug)]
pub struct Mirror(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    sealer: Sealer,
    importers: HashMap<&'static str, Arc<dyn Importer>>,
    projects: RwLock<HashMap<ProjectId, Arc<ProjectImports>>>,
    /// One reading per project at a time.
    read_locks: [Mutex<()>; READ_LOCKS],
    /// The last change of all that was looked at.
    seen: AtomicI64,
    started: Instant,
}

/// One project's imports.
#[derive(Debug)]
struct ProjectImports {
    edition: i64,
    items: Vec<KeptImport>,
    /// When it was last asked for, in seconds since the start.
    used: AtomicU64,
}

#[derive(Clone, Debug)]
struct KeptImport {
    id: ImportId,
    version: i64,
    /// Nothing when it could not be made; the log says why.
    integration: Option<Arc<Integration>>,
}

impl Mirror {
    pub fn new(db: Db, sealer: Sealer, importers: Vec<Arc<dyn Importer>>) -> Self {
        Self(Arc::new(Inner {
            db,
            sealer,
            importers: importers.into_iter().map(|importer| (importer.provider().key, importer)).collect(),
            projects: RwLock::default(),
            read_locks: Default::default(),
            seen: AtomicI64::new(0),
            started: Instant::now(),
        }))
    }

    /// What one importer's provider lists.
    pub fn source(&self, provider: Provider) -> Arc<dyn Source> {
        Arc::new(Imported { provider, mirror: self.clone() })
    }

    pub(crate) fn importer(&self, provider: &str) -> Result<&Arc<dyn Importer>, ImportError> {
        self.0.importers.get(provider).ok_or_else(|| ImportError::UnknownProvider(provider.chars().take(40).collect()))
    }

    fn kept(&self, project: ProjectId) -> Option<Arc<ProjectImports>> {
        self.0.projects.read().unwrap_or_else(PoisonError::into_inner).get(&project).cloned()
    }

    /// Seconds since the start.
    fn now(&self) -> u64 {
        self.0.started.elapsed().as_secs()
    }

    /// Whether a project was read, which is used now.
    fn is_ready(&self, project: ProjectId) -> bool {
        let kept = self.kept(project);
        if let Some(kept) = &kept {
            kept.used.store(self.now(), Ordering::Relaxed);
        }
        kept.is_some()
    }

    async fn ready(&self, project: ProjectId) -> Result<(), ImportError> {
        if self.is_ready(project) {
            return Ok(());
        }
        let _turn = self.read_lock(project).lock().await;
        if self.kept(project).is_none() {
            self.read(project).await?;
        }
        Ok(())
    }

    /// Reads a project again, after a change.
    pub(crate) async fn reload(&self, project: ProjectId) -> Result<(), ImportError> {
        let _turn = self.read_lock(project).lock().await;
        self.read(project).await
    }

    fn read_lock(&self, project: ProjectId) -> &Mutex<()> {
        &self.0.read_locks[usize::from(project.uuid().as_bytes()[15]) % READ_LOCKS]
    }

    async fn read(&self, project: ProjectId) -> Result<(), ImportError> {
        let known = self.kept(project);
        for _ in 0..TRIES {
            let (edition, parts) = rows::outline(&self.0.db, project).await?;
            if known.as_ref().is_some_and(|known| known.edition == edition) {
                return Ok(());
            }
            if let Some(items) = self.items(project, known.as_deref(), &parts).await? {
                let known = known.iter().flat_map(|known| &known.items).map(|item| item.id);
                let gone: Vec<ImportId> = known.filter(|id| !items.iter().any(|item| item.id == *id)).collect();
                let kept = ProjectImports { edition, items, used: AtomicU64::new(self.now()) };
                self.0.projects.write().unwrap_or_else(PoisonError::into_inner).insert(project, Arc::new(kept));
                for id in gone {
                    self.0.importers.values().for_each(|importer| importer.dropped(project, id));
                }
                return Ok(());
            }
        }
        Err(ImportError::Moved)
    }

    /// The items of an outline, those that are known already as they are; nothing when one changed since.
    async fn items(
        &self,
        project: ProjectId,
        known: Option<&ProjectImports>,
        parts: &[(ImportId, i64)],
    ) -> Result<Option<Vec<KeptImport>>, ImportError> {
        let mut items = Vec::with_capacity(parts.len());
        for &(id, version) in parts {
            let same = known.and_then(|known| known.items.iter().find(|item| item.id == id && item.version == version));
            if let Some(same) = same {
                items.push(same.clone());
                continue;
            }
            let integration = match rows::stored(&self.0.db, &self.0.sealer, project, id).await {
                Ok(Some(stored)) if stored.import.version == version => self.load(stored).await,
                Ok(_) => return Ok(None),
                // One that does not open keeps nobody from the others.
                Err(error @ ImportError::Sealed(_)) => Err(error.to_string()),
                Err(error) => return Err(error),
            };
            if let Err(error) = &integration {
                tracing::error!(%project, import = %id, %error, "an import cannot be used");
            }
            items.push(KeptImport { id, version, integration: integration.ok().map(Arc::new) });
        }
        Ok(Some(items))
    }

    async fn load(&self, stored: Stored) -> Result<Integration, String> {
        let importer = self.importer(&stored.import.provider).map_err(|error| error.to_string())?.clone();
        tokio::task::spawn_blocking(move || importer.load(&stored)).await.map_err(|error| error.to_string())?
    }

    /// Reads again what changed on other nodes, and lets go of what nobody uses.
    #[kernel::boxed]
    pub async fn catch_up(&self) -> Result<(), ImportError> {
        let (changed, last) = rows::changed_since(&self.0.db, self.0.seen.load(Ordering::Relaxed)).await?;
        for (edition, project) in changed {
            let project = ProjectId::from(project);
            if self.kept(project).is_some_and(|kept| kept.edition < edition) {
                self.reload(project).await?;
            }
        }
        self.0.seen.store(last, Ordering::Relaxed);
        let oldest = self.now().saturating_sub(IDLE.as_secs());
        let mut projects = self.0.projects.write().unwrap_or_else(PoisonError::into_inner);
        projects.retain(|_, kept| kept.used.load(Ordering::Relaxed) >= oldest);
        Ok(())
    }
}

/// A provider's part of the mirror.
#[derive(Debug)]
struct Imported {
    provider: Provider,
    mirror: Mirror,
}

impl Source for Imported {
    fn provider(&self) -> Provider {
        self.provider.clone()
    }

    fn integrations(&self, project: ProjectId) -> Vec<Arc<Integration>> {
        let Some(kept) = self.mirror.kept(project) else { return Vec::new() };
        let integrations = kept.items.iter().filter_map(|item| item.integration.as_ref());
        integrations.filter(|integration| integration.provider == self.provider.key).cloned().collect()
    }

    fn integration(&self, project: ProjectId, key: &str) -> Option<Arc<Integration>> {
        let kept = self.mirror.kept(project)?;
        let mut integrations = kept.items.iter().filter_map(|item| item.integration.as_ref());
        integrations.find(|integration| integration.provider == self.provider.key && integration.key == key).cloned()
    }

    fn edition(&self, project: ProjectId) -> u64 {
        self.mirror.kept(project).map_or(0, |kept| kept.edition.unsigned_abs())
    }

    fn ready(&self, project: ProjectId) -> BoxFuture<'_, Result<(), CatalogError>> {
        if self.mirror.is_ready(project) {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(async move { self.mirror.ready(project).await.map_err(not_read) })
    }
}

fn not_read(error: ImportError) -> CatalogError {
    match error {
        ImportError::Store(away @ (StoreError::Away(_) | StoreError::Closed)) => CatalogError::Away(away.to_string()),
        other => CatalogError::NotRead(other.to_string()),
    }
}
