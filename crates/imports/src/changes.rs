//! Sources that say by themselves that they changed: they are read again, each not too often and one reading at a time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use connections::Usable;
use kernel::{AccountOwner, ImportId, PermissionSet, ProjectId, Scope, UserId};
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use crate::{ImportError, ImportMode, Imports};

/// A change seldom comes alone.
const GATHER: Duration = Duration::from_millis(200);
/// The time between two readings of one source, and the longest while they fail.
const REST: Duration = Duration::from_secs(2);
const LONGEST_REST: Duration = Duration::from_mins(5);

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

/// A source that is being read; however that ends, it can be read again afterwards.
struct ReadInProgress {
    import: ImportId,
    busy: Busy,
    is_over: bool,
}

impl ReadInProgress {
    fn new(import: ImportId, busy: Busy) -> Self {
        Self { import, busy, is_over: false }
    }

    /// The change that came since. Without one the source is free in the same moment, so that no change falls between.
    fn next(&mut self) -> Option<Changed> {
        let mut busy = lock(&self.busy);
        let next = busy.get_mut(&self.import).and_then(Option::take);
        if next.is_none() {
            busy.remove(&self.import);
            self.is_over = true;
        }
        next
    }
}

impl Drop for ReadInProgress {
    fn drop(&mut self) {
        if !self.is_over {
            lock(&self.busy).remove(&self.import);
        }
    }
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
        let (this, stop) = (self.clone(), self.0.stop.clone());
        let reading = ReadInProgress::new(change.import, busy.clone());
        self.0.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = this.keep_reading(change, reading) => {}
            }
        });
    }

    /// Reads until there was no change since the last reading.
    async fn keep_reading(&self, mut change: Changed, mut reading: ReadInProgress) {
        let mut failures = 0;
        loop {
            tokio::time::sleep(GATHER).await;
            match self.renew(change).await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    tracing::warn!(import = %reading.import, %error, "a source that changed could not be read again");
                }
            }
            tokio::time::sleep(rest_after(failures)).await;
            let Some(next) = reading.next() else { return };
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
            is_for_agents: false,
            acts_for: AccountOwner::Project,
        };
        let mode = ImportMode { unasked: true, ..ImportMode::default() };
        let made = match change.account {
            Some(account) => self.refresh_as(scope, change.import, mode, Some(account)).await,
            None => self.refresh(scope, change.import, mode).await,
        };
        made.map(|made| tracing::info!(import = %change.import, version = made.import.version, "read again after a change"))
    }
}

fn rest_after(failures: u32) -> Duration {
    REST.saturating_mul(4_u32.saturating_pow(failures)).min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_fails_is_left_alone_longer_and_longer() {
        assert_eq!([0, 1, 2, 3].map(|failures| rest_after(failures).as_secs()), [2, 8, 32, 128]);
        assert_eq!([4, 100].map(rest_after), [LONGEST_REST; 2]);
    }

    #[test]
    fn a_source_is_free_however_its_reading_ends() {
        let (busy, import) = (Busy::default(), ImportId::new());
        let change = || Changed { project: ProjectId::new(), import, account: None };
        let begin = |waiting| {
            lock(&busy).insert(import, waiting);
            ReadInProgress::new(import, busy.clone())
        };
        let mut reading = begin(Some(change()));
        assert!(reading.next().is_some());
        assert!(reading.next().is_none());
        assert!(lock(&busy).is_empty());
        let another = begin(None);
        drop(reading);
        assert!(lock(&busy).contains_key(&import), "that is another's reading");
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _reading = another;
            panic!("somewhere below");
        }));
        assert!(died.is_err() && lock(&busy).is_empty());
    }
}
