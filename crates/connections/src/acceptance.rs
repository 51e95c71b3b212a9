//! Using a credential: after a refusal it is renewed once and used again, and how the service took it is noted.

use std::sync::Arc;

use catalog::Integration;

use crate::{Connection, ConnectionError, Connections, Usable};

/// What an answer says about the credential that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The service took it.
    Accepted,
    /// The service refused it, in these words.
    Refused(String),
    /// The service refused what was asked, which a renewed credential may be let do. The connection is not to blame.
    Forbidden,
    /// It says nothing about the credential.
    Unknown,
}

impl Connections {
    /// Does something with the credential that `usable` gave. One that is refused is renewed, where that is possible, and used once more;
    /// a connection whose credential is still refused is marked as failing, and one that works is no longer. The outer error is that of the
    /// renewal.
    pub async fn with_credential<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        connection: &Connection,
        integration: &Integration,
        mut usable: Arc<Usable>,
        attempt: impl Fn(Arc<Usable>) -> F,
        judge: impl Fn(&Result<T, E>) -> Acceptance,
    ) -> Result<Result<T, E>, ConnectionError> {
        self.note_use(connection);
        let mut outcome = attempt(usable.clone()).await;
        if matches!(judge(&outcome), Acceptance::Refused(_) | Acceptance::Forbidden)
            && let Some(fresh) = self.after_refusal(connection, integration, &usable).await?
        {
            usable = fresh;
            outcome = attempt(usable.clone()).await;
        }
        match judge(&outcome) {
            Acceptance::Accepted => self.worked(connection).await,
            Acceptance::Refused(reason) => self.refused(connection, integration, &usable, &reason).await,
            Acceptance::Forbidden | Acceptance::Unknown => {}
        }
        Ok(outcome)
    }
}
