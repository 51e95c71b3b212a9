//! The first start: a project and a key to begin with.

use kernel::Role;
use kernel::key::PlainKey;
use store::args;

use crate::{AccountError, Accounts, DEFAULT_PROJECT, NewKey};

/// What the first start made.
#[derive(Debug)]
pub struct FirstStart {
    pub key: PlainKey,
}

impl Accounts {
    /// Makes the default project and its owner's key, unless there are projects already. Nodes that start together make one.
    pub async fn bootstrap(&self) -> Result<Option<FirstStart>, AccountError> {
        if self.db.optional("select id from projects limit 1", args![]).await?.is_some() {
            return Ok(None);
        }
        let project = match self.create_project(DEFAULT_PROJECT, Some("Default")).await {
            Ok(project) => project,
            Err(AccountError::SlugTaken(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (_, key) = self.create_key(project.id, NewKey { name: "first key".to_owned(), role: Role::Owner, only: None }).await?;
        Ok(Some(FirstStart { key }))
    }
}
