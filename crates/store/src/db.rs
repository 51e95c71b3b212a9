//! The two databases behind one set of calls.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, Postgres};
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Executor, Transaction};

use crate::postgres::PgServer;
use crate::sqlite::{Held, SqliteFile};
use crate::{Arg, Row, StoreError};

const PING: Duration = Duration::from_millis(900);

/// An open database. SQLite has one writer and a few readers, so that writes queue here and never fail as busy.
#[derive(Clone, Debug)]
pub enum Db {
    Sqlite(SqliteFile),
    Postgres(PgServer),
}

/// A transaction; it is rolled back unless it is committed.
pub enum Tx {
    Sqlite(Held),
    Postgres(Transaction<'static, Postgres>),
}

impl std::fmt::Debug for Tx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tx")
    }
}

/// Binds the arguments and runs one call of sqlx.
macro_rules! run {
    ($database:ty, $sql:expr, $args:expr, $call:ident, $executor:expr) => {{
        let mut query = sqlx::query::<$database>($sql);
        for arg in $args {
            arg.check()?;
            query = match arg {
                Arg::Uuid(value) => query.bind(value),
                Arg::Text(value) => query.bind(value.map(std::borrow::Cow::into_owned)),
                Arg::Int(value) => query.bind(value),
                Arg::Bool(value) => query.bind(value),
                Arg::Bytes(value) => query.bind(value.map(std::borrow::Cow::into_owned)),
            };
        }
        query.$call($executor).await
    }};
}

impl Db {
    /// Opens `sqlite://FILE` (made when missing) or `postgres://…`.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            let options = PgConnectOptions::from_str(address).map_err(|_| StoreError::Address(redact(address)))?;
            return Ok(Self::Postgres(PgServer::open(options).await?));
        }
        if !address.starts_with("sqlite:") || address.contains(":memory:") {
            return Err(StoreError::Address(redact(address)));
        }
        let options = SqliteConnectOptions::from_str(address)
            .map_err(|_| StoreError::Address(redact(address)))?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(10));
        Ok(Self::Sqlite(SqliteFile::open(options).await?))
    }

    /// The file of a SQLite address.
    pub fn file(address: &str) -> Option<PathBuf> {
        let rest = address.strip_prefix("sqlite:")?;
        Some(PathBuf::from(rest.strip_prefix("//").unwrap_or(rest).split('?').next()?))
    }

    /// Whether there is something to open: a SQLite file may not have been made yet.
    pub fn is_there(address: &str) -> bool {
        Self::file(address).is_none_or(|file| file.exists())
    }

    /// Whether the database answers within a second.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let asked = tokio::time::timeout(PING, self.optional("select 1", [])).await;
        asked.map_err(|_| StoreError::Away("it takes too long to answer".to_owned()))??;
        Ok(())
    }

    /// The name of the database's kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// Every row of a reading query.
    pub async fn all<'a>(&self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Result<Vec<Row>, StoreError> {
        Ok(match self {
            Self::Sqlite(file) => run!(Sqlite, sql, args, fetch_all, file.reader().await?.get()?)?.into_iter().map(Row::Sqlite).collect(),
            Self::Postgres(server) => {
                run!(Postgres, sql, args, fetch_all, &mut *server.acquire().await?)?.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    /// The row of a reading query, if there is one.
    pub async fn optional<'a>(&self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Result<Option<Row>, StoreError> {
        Ok(match self {
            Self::Sqlite(file) => run!(Sqlite, sql, args, fetch_optional, file.reader().await?.get()?)?.map(Row::Sqlite),
            Self::Postgres(server) => run!(Postgres, sql, args, fetch_optional, &mut *server.acquire().await?)?.map(Row::Postgres),
        })
    }

    /// The row that a writing query returns, if there is one.
    pub async fn returning<'a>(&self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Result<Option<Row>, StoreError> {
        Ok(match self {
            Self::Sqlite(file) => run!(Sqlite, sql, args, fetch_optional, file.writer().await?.get()?)?.map(Row::Sqlite),
            Self::Postgres(server) => run!(Postgres, sql, args, fetch_optional, &mut *server.acquire().await?)?.map(Row::Postgres),
        })
    }

    /// How many rows a writing query changed.
    pub async fn execute<'a>(&self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Result<u64, StoreError> {
        Ok(match self {
            Self::Sqlite(file) => run!(Sqlite, sql, args, execute, file.writer().await?.get()?)?.rows_affected(),
            Self::Postgres(server) => run!(Postgres, sql, args, execute, &mut *server.acquire().await?)?.rows_affected(),
        })
    }

    /// Starts a transaction.
    pub async fn begin(&self) -> Result<Tx, StoreError> {
        Ok(match self {
            Self::Sqlite(file) => {
                let mut held = file.writer().await?;
                held.begin().await?;
                Tx::Sqlite(held)
            }
            Self::Postgres(server) => Tx::Postgres(server.begin().await?),
        })
    }

    /// Starts a transaction whose commit survives a loss of power.
    pub async fn begin_durable(&self) -> Result<Tx, StoreError> {
        match self {
            Self::Sqlite(file) => {
                let mut held = file.writer().await?;
                held.begin_durable().await?;
                Ok(Tx::Sqlite(held))
            }
            Self::Postgres(_) => self.begin().await,
        }
    }

    /// Makes what was committed survive a loss of power: SQLite's log is otherwise written to the disk only now and then.
    pub async fn flush(&self) -> Result<(), StoreError> {
        if let Self::Sqlite(file) = self {
            file.writer().await?.get()?.execute("pragma wal_checkpoint(passive)").await?;
        }
        Ok(())
    }

    pub async fn close(&self) {
        match self {
            Self::Sqlite(file) => file.close().await,
            Self::Postgres(server) => server.close().await,
        }
    }
}

impl Tx {
    pub async fn all<'a>(&mut self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Result<Vec<Row>, StoreError> {
        Ok(match self {
            Self::Sqlite(held) => run!(Sqlite, sql, args, fetch_all, held.get()?)?.into_iter().map(Row::Sqlite).collect(),
            Self::Postgres(tx) => run!(Postgres, sql, args, fetch_all, &mut **tx)?.into_iter().map(Row::Postgres).collect(),
        })
    }

    pub async fn optional<'a>(&mut self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Result<Option<Row>, StoreError> {
        Ok(match self {
            Self::Sqlite(held) => run!(Sqlite, sql, args, fetch_optional, held.get()?)?.map(Row::Sqlite),
            Self::Postgres(tx) => run!(Postgres, sql, args, fetch_optional, &mut **tx)?.map(Row::Postgres),
        })
    }

    pub async fn execute<'a>(&mut self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Result<u64, StoreError> {
        Ok(match self {
            Self::Sqlite(held) => run!(Sqlite, sql, args, execute, held.get()?)?.rows_affected(),
            Self::Postgres(tx) => run!(Postgres, sql, args, execute, &mut **tx)?.rows_affected(),
        })
    }

    pub async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(mut held) => held.commit().await?,
            Self::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }
}

/// An address without its password, wherever it stands.
pub fn redact(address: &str) -> String {
    let address = address.split('?').next().unwrap_or_default();
    match (address.find("://"), address.rfind('@')) {
        (Some(start), Some(at)) if start + 3 <= at => {
            let user = address[start + 3..at].split(':').next().unwrap_or_default();
            format!("{}{user}:…{}", &address[..start + 3], &address[at..])
        }
        _ => address.to_owned(),
    }
}
