//! Who uses connections, and what they are told. Telling is part of what happened: a caller who hangs up does not stop it.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use kernel::{ConnectionId, ProjectId, Scope};

use crate::life::Usage;
use crate::{Connection, ConnectionError, ConnectionUser, Connections, Consumer};

/// Everybody who uses connections. They hold connections themselves, so they are not held here: nothing would ever be let go.
#[derive(Debug, Default)]
pub(crate) struct Consumers(RwLock<Vec<Weak<dyn Consumer>>>);

impl Consumers {
    fn all(&self) -> Vec<Arc<dyn Consumer>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }
}

impl Connections {
    /// From now on the consumer is counted in `usage` and told what happens to connections, as long as the caller keeps it.
    pub fn register(&self, consumer: &Arc<dyn Consumer>) {
        self.0.consumers.0.write().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(consumer));
    }

    /// Who uses a connection.
    #[kernel::boxed]
    pub async fn usage(&self, scope: Scope, id: ConnectionId) -> Result<Usage, ConnectionError> {
        self.seen(scope, id).await?;
        let mut usage = Usage::new();
        for consumer in self.0.consumers.all() {
            usage.insert(consumer.kind(), consumer.count(scope.project, id).await?);
        }
        Ok(usage)
    }

    /// Who would miss a connection, by name.
    #[kernel::boxed]
    pub async fn users(&self, scope: Scope, id: ConnectionId) -> Result<Vec<ConnectionUser>, ConnectionError> {
        let connection = self.seen(scope, id).await?;
        let mut users = Vec::new();
        for consumer in self.0.consumers.all() {
            users.extend(consumer.users(&connection).await?);
        }
        Ok(users)
    }

    /// Tells everybody that a connection is of no use any more. One who fails keeps nobody else from hearing it.
    pub(crate) async fn tell_released(&self, project: ProjectId, id: ConnectionId, why: &str) -> Result<(), ConnectionError> {
        let _turn = self.0.telling.lock(&id).await;
        let mut told = Ok(());
        for consumer in self.0.consumers.all() {
            if let Err(error) = consumer.released(project, id, why).await {
                tracing::error!(connection = %id, consumer = consumer.kind(), %error, "could not be told that a connection is gone");
                told = Err(error.into());
            }
        }
        told
    }

    /// Tells everybody that a connection works, in the background: it may take longer than the person waits who sees the page that says so.
    /// `former` is the row as it was, where another account was behind it.
    pub(crate) fn tell_connected(&self, connection: Connection, former: Option<Connection>) {
        let this = self.clone();
        self.0.tasks.spawn(async move {
            let _turn = this.0.telling.lock(&connection.id).await;
            // It may have been revoked again while this waited.
            let is_usable = this.get(connection.project, connection.id).await.is_ok_and(|now| now.is_usable());
            for consumer in this.0.consumers.all().into_iter().filter(|_| is_usable) {
                if let Err(error) = consumer.connected(&connection, former.as_ref()).await {
                    tracing::error!(connection = %connection.id, consumer = consumer.kind(), %error, "could not be told that a connection works");
                }
            }
        });
    }
}

impl Connection {
    /// Whether another account is behind the row now; one that nobody named is taken for the same.
    pub(crate) fn is_another_than(&self, former: &Self) -> bool {
        let id = |row: &Self| row.account.as_ref().map(|account| account["id"].clone()).filter(|id| !id.is_null());
        let known = id(self).zip(id(former)).is_some_and(|(now, before)| now != before);
        known || self.remote.as_ref().zip(former.remote.as_ref()).is_some_and(|(now, before)| now != before)
    }
}
