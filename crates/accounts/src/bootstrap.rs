//! The first start: a project and a key to begin with.

use kernel::key::PlainKey;
use kernel::{ProjectId, Role};
use store::args;

use crate::keys::insert_key;
use crate::{AccountError, Accounts, DEFAULT_PROJECT, NewKey};

/// What the first start made.
#[derive(Debug)]
pub struct FirstStart {
    pub key: PlainKey,
}

impl Accounts {
    /// Makes the default project and its owner's key, unless there are projects already. Nodes that start together make one.
    #[kernel::boxed]
    pub async fn bootstrap(&self) -> Result<Option<FirstStart>, AccountError> {
        if self.db.optional("select id from projects limit 1", args![]).await?.is_some() {
            return Ok(None);
        }
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        let project = ProjectId::new();
        let sql = "insert into projects (id, slug, name, created_at) values ($1, $2, 'Default', $3) on conflict (slug) do nothing";
        if tx.execute(sql, args![project, DEFAULT_PROJECT, now]).await? == 0 {
            return Ok(None);
        }
        let new = NewKey { name: "first key".to_owned(), role: Role::Owner, only: None, is_for_agents: false };
        let (_, key) = insert_key(&mut tx, project, None, new, now).await?;
        tx.commit().await?;
        Ok(Some(FirstStart { key }))
    }
}
