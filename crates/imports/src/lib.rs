//! What projects import: rows, plans, differences, and the mirror that lists them in the catalog; the port `Importer`. It must never
//! know what a source looks like or how its actions are run; that is the provider's business.

mod changes;
mod difference;
mod error;
mod make;
mod mirror;
mod model;
mod port;
mod room;
mod store;

use std::sync::Arc;
use std::time::Duration;

use ::store::Db;
use connections::Connections;
use kernel::seal::Sealer;
use kernel::{Clock, ImportId, ProjectId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::room::Turns;
pub use changes::Changed;
pub use difference::Difference;
pub use error::ImportError;
pub use make::{Made, Mode};
pub use mirror::Mirror;
pub use model::{Import, Source, Stored};
pub use port::{Importer, Order, Origin, Plan, Registered, Skipped};
pub use room::Workbench;
pub use store::reseal;

/// How often other nodes' changes are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The imports of a deployment.
#[derive(Clone, Debug)]
pub struct Imports(Arc<Inner>);

/// What imports are made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub mirror: Mirror,
    pub connections: Connections,
}

#[derive(Debug)]
struct Inner {
    parts: Parts,
    turns: Turns,
    bench: Workbench,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Imports {
    pub fn new(parts: Parts) -> Self {
        let (turns, bench) = (Turns::default(), Workbench::default());
        Self(Arc::new(Inner { parts, turns, bench, tasks: TaskTracker::new(), stop: CancellationToken::new() }))
    }

    /// Starts to look for changes of other nodes.
    pub fn start(&self) {
        self.0.tasks.spawn(self.clone().follow(self.0.stop.clone()));
    }

    pub async fn drain(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    async fn follow(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.mirror.catch_up().await {
                tracing::warn!(%error, "changes of imports could not be read; trying again");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// A project's imports, the oldest first.
    pub async fn list(&self, project: ProjectId) -> Result<Vec<Import>, ImportError> {
        Ok(store::list(&self.db, project).await?)
    }

    pub async fn get(&self, project: ProjectId, id: ImportId) -> Result<Import, ImportError> {
        store::by_id(&self.db, project, id).await?.ok_or(ImportError::NotFound)
    }
}

impl std::ops::Deref for Imports {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0.parts
    }
}
