//! Switching an account off and on again, and what it is called among those of its owner.

use kernel::{ConnectionId, Scope};

use crate::create::alias;
use crate::{Connection, ConnectionError, Connections, store};

impl Connections {
    /// Switches a connection on or off. One that is off keeps its credential and is used by nobody; who used it is told, and told again when
    /// it is back.
    #[kernel::boxed]
    pub async fn switch(&self, scope: Scope, id: ConnectionId, is_active: bool) -> Result<Connection, ConnectionError> {
        let this = self.clone();
        self.undisturbed(async move {
            let connection = this.seen(scope, id).await?;
            let Some(switched) = store::switch(&this.0.db, scope.project, id, is_active, scope.author(), this.0.clock.now()).await? else {
                return Ok(connection);
            };
            if !is_active {
                this.tell_released(scope.project, id, "The connection was switched off.").await?;
            } else if switched.is_usable() {
                this.tell_connected(switched.clone(), None);
            }
            Ok(switched)
        })
        .await
    }

    /// Gives a connection another alias, or takes it away.
    #[kernel::boxed]
    pub async fn set_alias(&self, scope: Scope, id: ConnectionId, name: Option<&str>) -> Result<Connection, ConnectionError> {
        self.seen(scope, id).await?;
        let name = name.map(alias).transpose()?;
        let name = name.as_ref().map(kernel::Slug::as_str);
        match store::set_alias(&self.0.db, scope.project, id, name, scope.author(), self.0.clock.now()).await {
            Ok(renamed) => renamed.ok_or(ConnectionError::NotFound),
            Err(::store::StoreError::Conflict) => Err(ConnectionError::AliasTaken(name.unwrap_or_default().to_owned())),
            Err(error) => Err(error.into()),
        }
    }
}
