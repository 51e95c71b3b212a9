//! Migrations: embedded, in order, one text for both databases.

use sqlx::SqlSafeStr;
use sqlx::error::DatabaseError;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};

use crate::{Db, StoreError};

macro_rules! migrations {
    ($($version:literal $name:literal),* $(,)?) => {
        [$(($version, $name, include_str!(concat!("../migrations/", $name, ".sql")))),*]
    };
}

const MIGRATIONS: &[(i64, &str, &str)] = &migrations![
    1 "0001_foundation", 2 "0002_connections", 3 "0003_tool_calls", 4 "0004_workflows", 5 "0005_approvals", 6 "0006_triggers",
    7 "0007_agents", 8 "0008_imports", 9 "0009_discovery", 10 "0010_hosted_accounts", 11 "0011_trigger_ends", 12 "0012_connection_states",
    13 "0013_call_origins", 14 "0014_run_steps", 15 "0015_agent_keys", 17 "0017_key_use",
];

/// A migration that has not run on this database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub version: i64,
    pub name: String,
}

fn migrator() -> Migrator {
    Migrator::with_migrations(
        MIGRATIONS
            .iter()
            .map(|(version, name, sql)| Migration::new(*version, (*name).into(), MigrationType::Simple, (*sql).into_sql_str(), false))
            .collect(),
    )
}

impl Db {
    /// Brings the tables up to this program's version. Nodes that start together wait for each other.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.pending().await?;
        match self {
            Self::Sqlite(file) => migrator().run(file.writer().await?.get()?).await?,
            Self::Postgres(server) => migrator().run(&mut *server.acquire().await?).await?,
        }
        Ok(())
    }

    /// Every migration there is.
    pub fn all_migrations() -> Vec<Pending> {
        MIGRATIONS.iter().map(|(version, name, _)| Pending { version: *version, name: (*name).to_owned() }).collect()
    }

    /// What `migrate` would do; nothing is changed. A database made by a later version of this program is an error.
    pub async fn pending(&self) -> Result<Vec<Pending>, StoreError> {
        let migrator = migrator();
        let applied = match self {
            Self::Sqlite(file) => {
                let mut held = file.writer().await?;
                held.get()?.list_applied_migrations(&migrator.table_name).await
            }
            Self::Postgres(server) => {
                let mut connection = server.acquire().await?;
                connection.list_applied_migrations(&migrator.table_name).await
            }
        };
        let applied =
            match applied {
                Ok(applied) => applied,
                // A database without the table of migrations has none.
                Err(
                    MigrateError::Execute(sqlx::Error::Database(error)) | MigrateError::ExecuteMigration(sqlx::Error::Database(error), _),
                ) if is_missing_table(error.as_ref()) => Vec::new(),
                Err(error) => return Err(error.into()),
            };
        let known = |version: i64| MIGRATIONS.iter().any(|(known, ..)| *known == version);
        if let Some(unknown) = applied.iter().find(|migration| !known(migration.version)) {
            return Err(StoreError::Newer(format!("it has migration {}, which this version does not know", unknown.version)));
        }
        Ok(Self::all_migrations()
            .into_iter()
            .filter(|pending| !applied.iter().any(|migration| migration.version == pending.version))
            .collect())
    }
}

fn is_missing_table(error: &dyn DatabaseError) -> bool {
    error.code().as_deref() == Some("42P01") || error.message().starts_with("no such table")
}
