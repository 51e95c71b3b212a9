//! When a connection was last used, for people who wonder whether anybody needs it.

use std::time::Duration;

use crate::{Connection, Connections, store};

/// How often a use is noted. A write makes this node read the connections that it remembers anew, so it is rare: seldom enough that no call
/// notices, and often enough to tell what is in use from what is not.
const NOTED_EVERY: Duration = Duration::from_hours(1);

impl Connections {
    /// Notes that a connection is used. Nobody waits for the note, and one that cannot be written is no reason to refuse.
    pub(crate) fn note_use(&self, connection: &Connection) {
        let now = self.0.clock.now();
        let before = now.minus(NOTED_EVERY);
        if connection.is_implicit() || connection.last_used_at.is_some_and(|last| last > before) {
            return;
        }
        let (db, project, id) = (self.0.db.clone(), connection.project, connection.id);
        self.0.tasks.spawn(async move {
            if let Err(error) = store::note_use(&db, project, id, now, before).await {
                tracing::warn!(connection = %id, %error, "cannot note that a connection was used");
            }
        });
    }
}
