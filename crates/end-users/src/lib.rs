//! End users: the people whom a project's agents serve, by the names that the project gives them; and forgetting one. It must never know
//! what is kept about them: whoever keeps something says so by the port `PersonalRows`.

mod error;
mod forget;
mod names;

use std::sync::{Arc, PoisonError, RwLock, Weak};

use kernel::{Clock, EndUserId, ProjectId, Shared, Timestamp};
use store::{Db, Remembered};
use tokio_util::task::TaskTracker;

pub use error::EndUserError;
pub use forget::{Export, Forgotten, PersonalError, PersonalRows};
pub use names::{EndUserFilter, EndUserPage};

/// How many end users a project may have.
pub const MOST: i64 = 1_000_000;
/// How many names are remembered.
const MAX_REMEMBERED: usize = 8192;

/// The end users of a deployment.
#[derive(Clone, Debug)]
pub struct EndUsers(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    known: Remembered<(ProjectId, String), EndUserId>,
    /// Whoever keeps something about end users; they may hold this, so they are not held here.
    keepers: RwLock<Vec<Weak<dyn PersonalRows>>>,
    tasks: TaskTracker,
}

/// One end user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndUser {
    pub id: EndUserId,
    /// What the project calls them.
    pub name: String,
    pub created_at: Timestamp,
}

impl EndUsers {
    pub fn new(db: Db, clock: Clock) -> Self {
        let known = Remembered::new(&db, &["end_user_names"], MAX_REMEMBERED);
        Self(Shared::new(Inner { db, clock, known, keepers: RwLock::default(), tasks: TaskTracker::new() }))
    }

    /// From now on the keeper is asked when an end user is forgotten or exported, as long as the caller keeps it. They are asked in the
    /// order in which they came.
    pub fn register(&self, keeper: &Arc<dyn PersonalRows>) {
        self.0.keepers.write().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(keeper));
    }

    /// Waits until what was begun is done.
    #[kernel::boxed]
    pub async fn drain(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
