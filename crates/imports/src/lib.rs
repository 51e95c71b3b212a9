//! What projects import: rows, plans, differences, and the mirror that lists them in the catalog; the port `Importer`. It must never
//! know what a source looks like or how its actions are run; that is the provider's business.

mod changes;
mod convert;
mod difference;
mod error;
mod make;
mod mirror;
mod model;
mod port;
mod store;

use std::time::Duration;

use ::store::{Db, Quota};
use catalog::Catalog;
use connections::Connections;
use kernel::seal::Sealer;
use kernel::{Clock, ImportId, KeyedLock, ProjectId, Shared};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use work::Workers;

pub use changes::Changed;
pub use convert::convert;
pub use difference::Difference;
pub use error::ImportError;
pub use make::{ImportMode, Made};
pub use mirror::Mirror;
pub use model::{Import, Source, Stored};
pub use port::{Importer, Order, Origin, Plan, Registered, Skipped};
pub use store::reseal;

/// How often other nodes' changes are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The imports of a deployment.
#[derive(Clone, Debug)]
pub struct Imports(Shared<Inner>);

/// What imports are made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub catalog: Catalog,
    pub mirror: Mirror,
    pub connections: Connections,
    /// How many imports a project may have.
    pub quota: Quota,
    /// Where what was read becomes actions.
    pub workers: Workers,
}

/// How many imports a project may have where nothing else is said.
pub const QUOTA: Quota = Quota {
    what: "imports",
    rows: 100,
    bytes: 96 << 20,
    rows_setting: "imports_per_project",
    bytes_setting: "import_bytes_per_project",
    remedy: "Delete some that you do not need",
};

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    sealer: Sealer,
    catalog: Catalog,
    mirror: Mirror,
    connections: Connections,
    quota: Quota,
    workers: Workers,
    /// One source of a project is read at a time.
    reads: KeyedLock<ProjectId>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Imports {
    pub fn new(parts: Parts) -> Self {
        let Parts { db, clock, sealer, catalog, mirror, connections, quota, workers } = parts;
        Self(Shared::new(Inner {
            db,
            clock,
            sealer,
            catalog,
            mirror,
            connections,
            quota,
            workers,
            reads: KeyedLock::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Starts to look for changes of other nodes.
    pub fn start(&self) {
        self.0.tasks.spawn(self.clone().follow(self.0.stop.clone()));
    }

    #[kernel::boxed]
    pub async fn drain(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    async fn follow(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.0.mirror.catch_up().await {
                tracing::warn!(%error, "changes of imports could not be read; trying again");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Takes over what other nodes changed.
    #[kernel::boxed]
    pub async fn catch_up(&self) -> Result<(), ImportError> {
        self.0.mirror.catch_up().await
    }

    /// A project's imports, the oldest first.
    #[kernel::boxed]
    pub async fn list(&self, project: ProjectId) -> Result<Vec<Import>, ImportError> {
        Ok(store::list(&self.0.db, project).await?)
    }

    #[kernel::boxed]
    pub async fn get(&self, project: ProjectId, id: ImportId) -> Result<Import, ImportError> {
        store::by_id(&self.0.db, project, id).await?.ok_or(ImportError::NotFound)
    }
}
