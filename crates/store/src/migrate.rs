//! Migrations: embedded, in order, one text for both databases.

use sqlx::SqlSafeStr;
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
    13 "0013_call_origins", 14 "0014_run_steps", 15 "0015_agent_keys", 17 "0017_key_use", 18 "0018_call_intentions",
    20 "0020_own_redirects", 21 "0021_usage", 22 "0022_history_words", 23 "0023_secrets", 24 "0024_sentence_vectors",
    25 "0025_people", 27 "0027_grants", 30 "0030_call_stats", 31 "0031_approval_facts", 32 "0032_kept_calls", 33 "0033_approval_notices",
    35 "0035_status", 36 "0036_connection_facts", 37 "0037_trigger_times",
    38 "0038_run_states", 39 "0039_project_settings", 40 "0040_agent_runs", 46 "0046_notices_to_send",
    50 "0050_end_users", 51 "0051_connection_hooks", 52 "0052_agent_run_users", 53 "0053_unsent_calls", 56 "0056_call_approvals",
    57 "0057_rare_deliveries", 61 "0061_auth_configs", 62 "0062_connect_links", 64 "0064_webhook_triggers", 65 "0065_project_webhooks",
    66 "0066_end_user_limits", 67 "0067_router_sessions",
];

/// PostgreSQL's code for a database without the table of migrations, which has none.
const UNDEFINED_TABLE: &str = "42P01";

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
            Self::Sqlite(file) => file.migrate(migrator()).await,
            Self::Postgres(server) => Ok(migrator().run(&mut *server.acquire().await?).await?),
        }
    }

    /// Every migration there is.
    pub fn all_migrations() -> Vec<Pending> {
        MIGRATIONS.iter().map(|(version, name, _)| Pending { version: *version, name: (*name).to_owned() }).collect()
    }

    /// What `migrate` would do; nothing is changed. A database made by a later version of this program is an error.
    pub async fn pending(&self) -> Result<Vec<Pending>, StoreError> {
        let applied = match self {
            Self::Sqlite(file) => file.applied().await?,
            Self::Postgres(server) => {
                let mut connection = server.acquire().await?;
                match connection.list_applied_migrations(&migrator().table_name).await {
                    Ok(applied) => applied.into_iter().map(|migration| migration.version).collect(),
                    Err(
                        MigrateError::Execute(sqlx::Error::Database(error))
                        | MigrateError::ExecuteMigration(sqlx::Error::Database(error), _),
                    ) if error.code().as_deref() == Some(UNDEFINED_TABLE) => Vec::new(),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let known = |version: i64| MIGRATIONS.iter().any(|(known, ..)| *known == version);
        if let Some(unknown) = applied.iter().find(|version| !known(**version)) {
            return Err(StoreError::Newer(format!("it has migration {unknown}, which this version does not know")));
        }
        Ok(Self::all_migrations().into_iter().filter(|pending| !applied.contains(&pending.version)).collect())
    }
}
