//! The accounts of an end user, as what is kept about them.

use ::store::args;
use end_users::{Export, Forgotten, PersonalError, PersonalRows};
use futures_util::future::BoxFuture;
use kernel::{ConnectionId, EndUserId, Scope};
use serde_json::{Value, json};

use crate::{AccountsOf, Connection, ConnectionError, Connections, store};

impl PersonalRows for Connections {
    /// Deletes them one by one, so that whoever uses one is told, and its provider where it listens.
    fn forget(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Forgotten, PersonalError>> {
        Box::pin(async move {
            let sql = "select id from gateway_connections where project_id = $1 and owner = $2";
            let owner = AccountsOf::end_user(scope.project, end_user).owner.stored();
            let told = "delete from connection_messages where project_id = $1 and end_user_id = $2";
            self.0.db.execute(told, args![scope.project, end_user]).await?;
            let mut gone = 0;
            for row in self.0.db.all(sql, args![scope.project, owner]).await? {
                match self.delete(scope, row.get::<ConnectionId>("id")?).await {
                    Ok(()) => gone += 1,
                    Err(ConnectionError::NotFound) => {}
                    Err(ConnectionError::Store(error)) => return Err(error.into()),
                    Err(error) => return Err(PersonalError::Failed(error.to_string())),
                }
            }
            Ok(Forgotten::from([("connections", gone)]))
        })
    }

    fn export(&self, scope: Scope, end_user: EndUserId) -> BoxFuture<'_, Result<Export, PersonalError>> {
        Box::pin(async move {
            let rows = store::all_of(&self.0.db, AccountsOf::end_user(scope.project, end_user)).await?;
            Ok(Export::from([("connections", rows.iter().map(shown).collect())]))
        })
    }
}

/// A connection without its credential.
fn shown(row: &Connection) -> Value {
    json!({
        "id": row.id, "slug": row.slug, "alias": row.alias, "provider": row.provider, "integration": row.integration, "name": row.name,
        "account": row.account, "scopes": row.granted, "is_valid": row.is_valid, "created_at": row.created_at.to_string(),
        "last_used_at": row.last_used_at.map(|at| at.to_string()),
    })
}
