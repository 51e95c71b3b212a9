//! Migrations on SQLite, kept in the table that sqlx's migrator makes: it made the databases of earlier versions, and keeps those on PostgreSQL.

use std::time::Instant;

use sqlx::migrate::{MigrateError, Migration, Migrator};

use super::{Connection, Effort, SqliteFile, elsewhere};
use crate::query::{Query, Want};
use crate::{StoreError, args};

const TABLE: &str = "create table if not exists _sqlx_migrations (version bigint primary key, description text not null, \
                     installed_on timestamp not null default current_timestamp, success boolean not null, checksum blob not null, \
                     execution_time bigint not null)";

/// A migration that has run.
struct Applied {
    version: i64,
    is_whole: bool,
    checksum: Vec<u8>,
}

impl SqliteFile {
    /// The versions that have run.
    pub(crate) async fn applied(&self) -> Result<Vec<i64>, StoreError> {
        let mut turn = self.turn().await?;
        elsewhere(move || Ok(applied(&mut turn.0)?.into_iter().map(|migration| migration.version).collect())).await?
    }

    /// Runs what has not run yet, each in a transaction with its line in the table.
    pub(crate) async fn migrate(&self, migrator: Migrator) -> Result<(), StoreError> {
        let mut turn = self.turn().await?;
        elsewhere(move || {
            migrator.iter().try_for_each(|migration| {
                turn.0.batch("begin immediate", Effort::Full)?;
                let done = apply(&mut turn.0, migration).and_then(|()| Ok(turn.0.batch("commit", Effort::Full)?));
                if done.is_err() && turn.0.is_begun() {
                    turn.0.batch("rollback", Effort::Full)?;
                }
                done
            })
        })
        .await??;
        self.flush().await
    }
}

/// Runs a migration if it has not run; one that ran with another text is an error.
fn apply(connection: &mut Connection, migration: &Migration) -> Result<(), StoreError> {
    connection.batch(TABLE, Effort::Full)?;
    let applied = applied(connection)?;
    if let Some(broken) = applied.iter().find(|applied| !applied.is_whole) {
        return Err(MigrateError::Dirty(broken.version).into());
    }
    if let Some(before) = applied.iter().find(|applied| applied.version == migration.version) {
        let is_same = *before.checksum == *migration.checksum;
        return if is_same { Ok(()) } else { Err(MigrateError::VersionMismatch(migration.version).into()) };
    }
    let started = Instant::now();
    connection.batch(migration.sql.as_str(), Effort::Full)?;
    let took = i64::try_from(started.elapsed().as_nanos()).unwrap_or(i64::MAX);
    let sql = "insert into _sqlx_migrations (version, description, success, checksum, execution_time) values ($1, $2, true, $3, $4)";
    let args = args![migration.version, &*migration.description, &*migration.checksum, took];
    connection.run(&Query::new(sql, args)?, Want::Changes, Effort::Full)?;
    Ok(())
}

fn applied(connection: &mut Connection) -> Result<Vec<Applied>, StoreError> {
    let tables = "select 1 as found from sqlite_master where type = 'table' and name = '_sqlx_migrations'";
    if connection.run(&Query::new(tables, [])?, Want::First, Effort::Full)?.first().is_none() {
        return Ok(Vec::new());
    }
    let sql = "select version, success, checksum from _sqlx_migrations order by version";
    let rows = connection.run(&Query::new(sql, [])?, Want::All, Effort::Full)?.rows;
    rows.iter()
        .map(|row| Ok(Applied { version: row.get("version")?, is_whole: row.get("success")?, checksum: row.get("checksum")? }))
        .collect()
}
