//! Sources that say by themselves that they changed: they are read again, each not too often and one reading at a time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use connections::Usable;
use kernel::{ImportId, PermissionSet, ProjectId, Scope, UserId};
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use crate::{ImportError, Imports, Mode};

/// A change seldom comes alone.
const GATHER: Duration = Duration::from_millis(200);
/// The time between two readings of one source.
const REST: Duration = Duration::from_secs(2);

/// The source of an import is not what it was.
#[derive(Clone, Debug)]
pub struct Changed {
    pub project: ProjectId,
    pub import: ImportId,
    /// The credential to read it with, where one is at hand.
    pub account: Option<Usable>,
}

/// The imports that are being read, with the change that came meanwhile.
type Busy = Arc<Mutex<HashMap<ImportId, Option<Changed>>>>;

fn lock(busy: &Busy) -> MutexGuard<'_, HashMap<ImportId, Option<Changed>>> {
    busy.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Imports {
    /// Reads sources again when they change, until the imports are drained.
    pub fn hear(&self, mut changes: UnboundedReceiver<Changed>) {
        let (this, stop, busy) = (self.clone(), self.0.stop.clone(), Busy::default());
        self.0.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    change = changes.recv() => match change {
                        Some(change) => this.read_again(change, &busy),
                        None => return,
                    },
                }
            }
        });
    }

    fn read_again(&self, change: Changed, busy: &Busy) {
        match lock(busy).entry(change.import) {
            Entry::Occupied(mut waiting) => {
                waiting.insert(Some(change));
                return;
            }
            Entry::Vacant(free) => free.insert(None),
        };
        let (this, stop, busy) = (self.clone(), self.0.stop.clone(), busy.clone());
        self.0.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = this.keep_reading(change, &busy) => {}
            }
        });
    }

    /// Reads until there was no change since the last reading.
    async fn keep_reading(&self, mut change: Changed, busy: &Busy) {
        let id = change.import;
        loop {
            tokio::time::sleep(GATHER).await;
            if let Err(error) = self.renew(change).await {
                tracing::warn!(import = %id, %error, "a source that changed could not be read again");
            }
            tokio::time::sleep(REST).await;
            let mut waiting = lock(busy);
            let Some(next) = waiting.get_mut(&id).and_then(Option::take) else {
                waiting.remove(&id);
                return;
            };
            change = next;
        }
    }

    /// In the name of whoever imported it; nothing that needs a decision is done.
    async fn renew(&self, change: Changed) -> Result<(), ImportError> {
        let import = self.get(change.project, change.import).await?;
        let author = import.updated_by.or(import.created_by).unwrap_or(Uuid::nil());
        let scope = Scope {
            project: change.project,
            key: Uuid::nil().into(),
            user: Some(UserId::from(author)),
            permissions: PermissionSet::default(),
        };
        let made = match change.account {
            Some(account) => self.refresh_as(scope, change.import, Mode::default(), Some(account)).await,
            None => self.refresh(scope, change.import, Mode::default()).await,
        };
        made.map(|made| tracing::info!(import = %change.import, version = made.import.version, "read again after a change"))
    }
}
