//! The two databases behind one set of calls.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use percent_encoding::percent_decode_str;
use sqlx::postgres::PgConnectOptions;

use crate::postgres::{PgServer, run, run_many};
use crate::query::{Query, Reply, Transaction, Want};
use crate::remembered::Changes;
use crate::sqlite::SqliteFile;
use crate::{Arg, Many, Row, StoreError, page_bytes};

const PING: Duration = Duration::from_millis(900);

/// What comes of a query. It is boxed, so that whoever asks is compiled without the insides of both databases.
type Asked<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// An open database. SQLite has one writer and a few readers, so that writes queue here and never fail as busy.
#[derive(Clone, Debug)]
pub enum Db {
    Sqlite(SqliteFile),
    Postgres(PgServer),
}

/// A transaction; it is rolled back unless it is committed.
#[derive(Debug)]
pub struct Tx {
    inner: Box<dyn Transaction>,
    /// The tables that it wrote, of those that are remembered.
    written: u64,
    changes: Arc<Changes>,
    /// Whether the task that began it was among the large ones.
    was_large: bool,
}

impl Db {
    /// Opens `sqlite://FILE` (made when missing) or `postgres://…`.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        let refuse = || StoreError::Address(redact(address));
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            let options = PgConnectOptions::from_str(address).map_err(|_| refuse())?;
            return Ok(Self::Postgres(PgServer::open(options).await?));
        }
        let file = Self::file(address).filter(|file| !file.to_string_lossy().contains(":memory:")).ok_or_else(refuse)?;
        // How others write that the file may be made and written, which it may anyway.
        if !matches!(address.split_once('?').map(|(_, options)| options), None | Some("" | "mode=rwc" | "mode=rw")) {
            return Err(refuse());
        }
        Ok(Self::Sqlite(SqliteFile::open(file)?))
    }

    /// The file of a SQLite address.
    pub fn file(address: &str) -> Option<PathBuf> {
        let rest = address.strip_prefix("sqlite:")?;
        let file = rest.strip_prefix("//").unwrap_or(rest).split('?').next()?;
        Some(PathBuf::from(percent_decode_str(file).decode_utf8().ok()?.into_owned())).filter(|file| !file.as_os_str().is_empty())
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

    /// Whether a commit goes through: a row is made and removed again, and nobody ever sees it. It is larger than most, since a disk that is
    /// nearly full takes small ones for a while.
    pub async fn try_write(&self) -> Result<(), StoreError> {
        let name = format!("write-test-{}", uuid::Uuid::now_v7());
        let mut tx = self.begin().await?;
        tx.execute("insert into settings (name, value) values ($1, $2)", [Arg::from(name.as_str()), Arg::from(vec![0; 32 << 10])]).await?;
        tx.execute("delete from settings where name = $1", [Arg::from(name.as_str())]).await?;
        tx.commit().await
    }

    /// The name of the database's kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// Every row of a reading query.
    pub fn all<'s, 'a: 's>(&'s self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Asked<'s, Vec<Row>> {
        self.read_all(Query::new(sql, args))
    }

    /// The row of a reading query, if there is one.
    pub fn optional<'s, 'a: 's>(&'s self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Asked<'s, Option<Row>> {
        self.read_first(Query::new(sql, args))
    }

    /// The row that a writing query returns, if there is one.
    pub fn returning<'s, 'a: 's>(&'s self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Asked<'s, Option<Row>> {
        self.write_first(Query::new(sql, args))
    }

    /// How many rows a writing query changed.
    pub fn execute<'s, 'a: 's>(&'s self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Asked<'s, u64> {
        self.write_counted(Query::new(sql, args))
    }

    /// The rows that a writing query returns.
    pub fn returning_all<'s, 'a: 's>(&'s self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Asked<'s, Vec<Row>> {
        self.write_all(Query::new(sql, args))
    }

    /// Makes a row.
    pub fn insert<'a, const N: usize>(&'a self, table: &'static str, row: [(&'static str, Arg<'a>); N]) -> Asked<'a, ()> {
        let many = Many::insert(table, [row], "");
        Box::pin(async move { self.write_rows(many).await.map(|_| ()) })
    }

    /// Writes rows together: all of them or none. How many rows were changed.
    pub fn write_many<'a>(&'a self, many: Many<'a>) -> Asked<'a, u64> {
        Box::pin(self.write_rows(many))
    }

    // These are no generics, so that they are compiled here and not again by everybody who asks.

    fn read_all<'s>(&'s self, query: Result<Query<'s>, StoreError>) -> Asked<'s, Vec<Row>> {
        Box::pin(async move { Ok(self.read(query?, Want::All).await?.rows) })
    }

    fn read_first<'s>(&'s self, query: Result<Query<'s>, StoreError>) -> Asked<'s, Option<Row>> {
        Box::pin(async move { Ok(self.read(query?, Want::First).await?.first()) })
    }

    fn write_all<'s>(&'s self, query: Result<Query<'s>, StoreError>) -> Asked<'s, Vec<Row>> {
        Box::pin(async move { Ok(self.write_query(query?, Want::All).await?.rows) })
    }

    fn write_first<'s>(&'s self, query: Result<Query<'s>, StoreError>) -> Asked<'s, Option<Row>> {
        Box::pin(async move { Ok(self.write_query(query?, Want::First).await?.first()) })
    }

    fn write_counted<'s>(&'s self, query: Result<Query<'s>, StoreError>) -> Asked<'s, u64> {
        Box::pin(async move { Ok(self.write_query(query?, Want::Changes).await?.changes) })
    }

    async fn write_rows(&self, many: Many<'_>) -> Result<u64, StoreError> {
        let written = Changes::written(many.table());
        if many.len() == 1 {
            return Ok(self.write(many.into_query()?, Want::Changes, written).await?.changes);
        }
        if let Self::Postgres(server) = self
            && many.is_one_statement()
        {
            let changes = run_many(&mut *server.acquire().await?, many).await;
            self.changes().note(written);
            return changes;
        }
        let mut tx = self.begin().await?;
        let changes = tx.write_many(many).await?;
        tx.commit().await?;
        Ok(changes)
    }

    async fn read(&self, query: Query<'_>, want: Want) -> Result<Reply, StoreError> {
        match self {
            Self::Sqlite(file) => file.read(query, want).await,
            Self::Postgres(server) => {
                let reply = run(&mut *server.acquire().await?, query, want).await?;
                if page_bytes(&reply.rows) > work::SMALL {
                    work::go_large().await;
                }
                Ok(reply)
            }
        }
    }

    async fn write_query(&self, query: Query<'_>, want: Want) -> Result<Reply, StoreError> {
        let written = Changes::written(&query.sql);
        self.write(query, want, written).await
    }

    async fn write(&self, query: Query<'_>, want: Want, written: u64) -> Result<Reply, StoreError> {
        let reply = match self {
            Self::Sqlite(file) => file.write(query, want).await,
            Self::Postgres(server) => run(&mut *server.acquire().await?, query, want).await,
        };
        self.changes().note(written);
        reply
    }

    pub(crate) fn changes(&self) -> &Arc<Changes> {
        match self {
            Self::Sqlite(file) => file.changes(),
            Self::Postgres(server) => server.changes(),
        }
    }

    /// Tells the other nodes of this database that there is something to see, in less than 8000 bytes. SQLite has one node.
    pub async fn tell(&self, channel: &str, words: &str) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(server) => server.tell(channel, words).await,
        }
    }

    /// Calls back whenever a node tells something, this one too, until the connection is lost. With SQLite there is nobody to hear.
    pub async fn listen(&self, channel: &str, heard: impl Fn(&str)) -> Result<(), StoreError> {
        let Self::Postgres(server) = self else { return std::future::pending().await };
        let mut listener = server.listen(channel).await?;
        loop {
            heard(listener.recv().await?.payload());
        }
    }

    /// Starts a transaction.
    pub fn begin(&self) -> Asked<'_, Tx> {
        Box::pin(self.begin_as(false))
    }

    async fn begin_as(&self, is_durable: bool) -> Result<Tx, StoreError> {
        // Others wait for what a transaction holds.
        let was_large = work::go_back().await;
        let inner: Box<dyn Transaction> = match self {
            Self::Sqlite(file) => Box::new(file.begin(is_durable).await?),
            Self::Postgres(server) => Box::new(server.begin().await?),
        };
        Ok(Tx { inner, written: 0, changes: self.changes().clone(), was_large })
    }

    /// Starts a transaction whose commit survives a loss of power.
    pub fn begin_durable(&self) -> Asked<'_, Tx> {
        Box::pin(self.begin_as(true))
    }

    /// Makes what was committed survive a loss of power: SQLite's log is otherwise written to the disk only now and then.
    pub async fn flush(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(file) => file.flush().await,
            Self::Postgres(_) => Ok(()),
        }
    }

    pub async fn close(&self) {
        match self {
            Self::Sqlite(file) => file.close().await,
            Self::Postgres(server) => server.close().await,
        }
    }
}

impl Tx {
    pub fn all<'s, 'a: 's>(&'s mut self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Asked<'s, Vec<Row>> {
        self.run_all(Query::new(sql, args))
    }

    pub fn optional<'s, 'a: 's>(&'s mut self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Asked<'s, Option<Row>> {
        self.run_first(Query::new(sql, args))
    }

    pub fn execute<'s, 'a: 's>(&'s mut self, sql: &'static str, args: impl IntoIterator<Item = Arg<'a>>) -> Asked<'s, u64> {
        self.run_counted(Query::new(sql, args))
    }

    /// Makes a row.
    pub fn insert<'a, const N: usize>(&'a mut self, table: &'static str, row: [(&'static str, Arg<'a>); N]) -> Asked<'a, ()> {
        let written = self.write_many(Many::insert(table, [row], ""));
        Box::pin(async move { written.await.map(|_| ()) })
    }

    /// Writes rows; how many were changed.
    pub fn write_many<'a>(&'a mut self, many: Many<'a>) -> Asked<'a, u64> {
        self.written |= Changes::written(many.table());
        self.inner.run_many(many)
    }

    /// Writes rows; whether each of them changed something. These columns tell them apart.
    pub fn write_each<'a>(&'a mut self, many: Many<'a>, keys: &'a [&'static str]) -> Asked<'a, Vec<bool>> {
        self.written |= Changes::written(many.table());
        self.inner.run_each(many, keys)
    }

    fn run_all<'s>(&'s mut self, query: Result<Query<'s>, StoreError>) -> Asked<'s, Vec<Row>> {
        Box::pin(async move { Ok(self.run(query?, Want::All).await?.rows) })
    }

    fn run_first<'s>(&'s mut self, query: Result<Query<'s>, StoreError>) -> Asked<'s, Option<Row>> {
        Box::pin(async move { Ok(self.run(query?, Want::First).await?.first()) })
    }

    fn run_counted<'s>(&'s mut self, query: Result<Query<'s>, StoreError>) -> Asked<'s, u64> {
        Box::pin(async move { Ok(self.run(query?, Want::Changes).await?.changes) })
    }

    fn run<'a>(&'a mut self, query: Query<'a>, want: Want) -> Asked<'a, Reply> {
        self.written |= Changes::written(&query.sql);
        self.inner.run(query, want)
    }

    pub fn commit(self) -> Asked<'static, ()> {
        let Self { inner, written, changes, was_large } = self;
        Box::pin(async move {
            let committed = inner.commit().await;
            changes.note(written);
            if was_large {
                work::go_large().await;
            }
            committed
        })
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
