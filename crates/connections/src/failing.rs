//! Credentials that a service refuses. The connection stays usable by name, because the next success shows that it works again; where there
//! is a choice, another is taken.

use catalog::Integration;
use catalog::auth::AuthScheme;

use crate::{Connection, ConnectionError, Connections, HookEvent, Usable, store};

/// The longest text that is kept of what a service said.
const MAX_REASON: usize = 300;

impl Connection {
    /// Whether its credential was refused at its last use.
    pub fn is_failing(&self) -> bool {
        self.failing_since.is_some()
    }
}

/// How many connections do not work, over all projects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// Ended, revoked, or with an authorization that failed; not those that only wait for a person.
    pub not_valid: i64,
    /// Valid, and refused by their service.
    pub failing: i64,
}

impl Connections {
    /// The service refused the credential, also after a renewal where one was possible. A provider that keeps accounts itself knows better
    /// how they stand, so there nothing is noted.
    pub(crate) async fn refused(&self, connection: &Connection, integration: &Integration, used: &Usable, reason: &str) {
        if let Some(AuthScheme::Hosted(_)) = used.scheme.as_deref() {
            return;
        }
        let reason: String = reason.chars().filter(|c| !c.is_control()).take(MAX_REASON).collect();
        let text = format!("{} refused the credential of `{}`: {reason}. Connect the account again.", integration.name, connection.slug);
        let now = self.0.clock.now();
        match store::set_failing(&self.0.db, connection, used.generation(), &text, now).await {
            Ok(true) if !connection.is_failing() => {
                tracing::warn!(connection = %connection.id, reason, "a credential is refused");
                self.announce(connection, HookEvent::Broken, Some(&text)).await;
            }
            Ok(_) => {}
            Err(error) => tracing::error!(connection = %connection.id, %error, "a refused credential could not be noted"),
        }
    }

    /// Marks a connection as not valid, with a reason for people, and tells the hooks, unless it changed meanwhile.
    pub(crate) async fn invalidate(&self, connection: &Connection, event: HookEvent, reason: &str) -> Result<(), ConnectionError> {
        if store::invalidate(&self.0.db, connection, reason, self.0.clock.now()).await? {
            self.announce(connection, event, Some(reason)).await;
        }
        Ok(())
    }

    /// The service took the credential.
    pub(crate) async fn worked(&self, connection: &Connection) {
        if connection.is_failing()
            && let Err(error) = store::clear_failing(&self.0.db, connection.project, connection.id).await
        {
            tracing::error!(connection = %connection.id, %error, "could not be noted that a credential works again");
        }
    }

    /// How many connections do not work.
    #[kernel::boxed]
    pub async fn broken(&self) -> Result<Broken, ConnectionError> {
        Ok(store::broken(&self.0.db).await?)
    }
}
