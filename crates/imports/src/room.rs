//! How much is imported at once. Reading waits for somebody else's server, so nobody else's project waits with it; converting is work for
//! this machine, so little of it is done at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::ProjectId;
use tokio::sync::{OwnedMutexGuard, Semaphore};

use crate::ImportError;

/// How many sources are converted at once; each may be large.
const AT_ONCE: usize = 2;

/// Where what was read becomes actions.
#[derive(Clone, Debug)]
pub struct Workbench(Arc<Semaphore>);

impl Default for Workbench {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Workbench {
    /// Does work that takes its time, when it is its turn. The place is taken until the work ends, even if nobody waits for it any more.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, ImportError> {
        let interrupted = |error: &dyn std::fmt::Display| ImportError::Interrupted(error.to_string());
        let place = self.0.clone().acquire_owned().await.map_err(|error| interrupted(&error))?;
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.map_err(|error| interrupted(&error))?.map_err(ImportError::Invalid)
    }
}

/// One reading of a project at a time.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<ProjectId, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    pub(crate) async fn take(&self, project: ProjectId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            turns.entry(project).or_default().clone()
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_project_waits_for_itself_alone() {
        let (turns, one) = (Turns::default(), ProjectId::new());
        let first = turns.take(one).await;
        assert!(turns.take(one).now_or_never().is_none());
        assert!(turns.take(ProjectId::new()).now_or_never().is_some());
        drop(first);
        assert!(turns.take(one).now_or_never().is_some());
        drop(turns.take(ProjectId::new()).await);
        assert!(turns.0.lock().unwrap().len() <= 1, "nothing is kept of those who are done");
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_still_takes_its_place() {
        let bench = Workbench::default();
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        for _ in 0..AT_ONCE {
            let gate = gate.clone();
            let work = bench.run(move || gate.lock().unwrap().recv().map_err(|error| error.to_string()));
            assert!(tokio::time::timeout(std::time::Duration::from_millis(20), work).await.is_err());
        }
        assert_eq!(bench.0.available_permits(), 0);
        drop(go);
        assert!(matches!(bench.run(|| Ok(7)).await, Ok(7)));
    }
}
