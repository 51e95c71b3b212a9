//! Showing a value, and the record of who was shown it.

use kernel::{KeyId, ProjectId, Scope, SecretId, SecretReadId, Timestamp, UserId};
use secrecy::SecretString;
use store::{Page, PageSize, Row, StoreError, args, page_sql, row};
use uuid::Uuid;

use crate::{Secret, SecretError, Secrets, rows};

/// What a value was shown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Somebody asked for the value.
    Value,
    /// A code tool was given to a runner.
    CodeTool,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::CodeTool => "code_tool",
        }
    }
}

/// That a key was shown a value.
#[derive(Clone, Debug)]
pub struct SecretRead {
    pub id: SecretReadId,
    pub key: KeyId,
    pub user: Option<UserId>,
    pub purpose: String,
    pub read_at: Timestamp,
}

impl SecretRead {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            key: row.get("key_id")?,
            user: row.get("user_id")?,
            purpose: row.get("purpose")?,
            read_at: row.get("read_at")?,
        })
    }
}

impl Secrets {
    /// Shows a value. It is recorded first: one that cannot be recorded is not shown. Whoever calls this has seen that the key may read.
    #[kernel::boxed]
    pub async fn show(&self, scope: Scope, named: &str, purpose: Purpose) -> Result<(Secret, SecretString), SecretError> {
        let Some(found) = rows::find(&self.db, scope.project, named).await? else { return Err(self.missing(scope.project, named).await) };
        let secret = Secret::read(&found)?;
        let value = self.open(secret.id, &found)?;
        let read = row! {
            project_id: scope.project,
            id: SecretReadId::new(),
            secret_id: secret.id,
            key_id: scope.key,
            user_id: scope.user,
            purpose: purpose.name(),
            read_at: self.clock.now(),
        };
        self.db.insert("secret_reads", read).await?;
        Ok((secret, value))
    }

    /// Who was shown a value, newest first.
    #[kernel::boxed]
    pub async fn reads(
        &self,
        project: ProjectId,
        secret: SecretId,
        limit: Option<i64>,
        cursor: Option<Uuid>,
    ) -> Result<Page<SecretRead>, SecretError> {
        let size = PageSize::asked(limit);
        let sql = page_sql!(
            select "id, key_id, user_id, purpose, read_at",
            bytes "200",
            from "secret_reads",
            where "project_id = $1 and secret_id = $2 and ($3 is null or id < $3)",
            by id "desc",
            limit "$4"
        );
        let rows = self.db.all(sql, args![project, secret, cursor, size.rows()]).await?;
        Ok(size.read(&rows, SecretRead::read)?)
    }

    /// Drops the record of what was shown long ago.
    #[kernel::boxed]
    pub async fn forget_reads(&self, project: ProjectId) -> Result<u64, SecretError> {
        let before = self.clock.now().minus(self.reads_kept);
        Ok(self.db.execute("delete from secret_reads where project_id = $1 and read_at < $2", args![project, before]).await?)
    }
}
