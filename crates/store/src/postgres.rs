//! PostgreSQL: a pool, and the difference between one that is busy and a server that is away.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use kernel::Shared;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgListener, PgPool, PgPoolOptions, Postgres};
use sqlx::{AssertSqlSafe, Connection, SqlSafeStr, Transaction};
use tokio::sync::Mutex;
use tokio::time::timeout;
use uuid::Uuid;

use crate::query::{Query, Reply, Want};
use crate::remembered::Changes;
use crate::{Arg, Many, Row, StoreError};

/// A statement with its arguments.
type Bound<'a> = sqlx::query::Query<'a, Postgres, PgArguments>;

const CONNECTIONS: u32 = 16;
/// How long a connection is waited for while the server is there.
const BUSY: Duration = Duration::from_secs(10);
/// How long is waited before somebody looks whether the server is there, and how long a look lasts. Together they stay below a second.
const PATIENCE: Duration = Duration::from_millis(600);
const LOOK: Duration = Duration::from_millis(300);

/// A PostgreSQL server.
#[derive(Clone, Debug)]
pub struct PgServer(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    pool: PgPool,
    options: PgConnectOptions,
    /// A server far away is given more time.
    look: Duration,
    /// When somebody looked, and whether the server was there.
    seen: Mutex<Option<(Instant, bool)>>,
    changes: Arc<Changes>,
}

impl PgServer {
    pub(crate) async fn open(options: PgConnectOptions) -> Result<Self, StoreError> {
        // One try outside the pool, which would hide the reason behind its own time limit.
        let started = Instant::now();
        let first = timeout(BUSY, PgConnection::connect_with(&options)).await;
        first.map_err(|_| StoreError::Away("it takes too long to connect".to_owned()))??.close().await?;
        let look = LOOK.max(started.elapsed() * 3);
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(BUSY).connect_with(options.clone()).await?;
        Ok(Self(Shared::new(Inner { pool, options, look, seen: Mutex::default(), changes: Arc::default() })))
    }

    /// Boxed, as `run` is: what asks SQLite holds neither and stays small.
    pub(crate) fn acquire(&self) -> BoxFuture<'_, Result<PoolConnection<Postgres>, StoreError>> {
        Box::pin(self.while_there(self.0.pool.acquire()))
    }

    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        self.while_there(self.0.pool.begin()).await
    }

    pub(crate) fn changes(&self) -> &Arc<Changes> {
        &self.0.changes
    }

    /// Tells every node that listens.
    pub(crate) async fn tell(&self, channel: &str, words: &str) -> Result<(), StoreError> {
        let query = Query::new("select pg_notify($1, $2)", [Arg::from(channel), Arg::from(words)])?;
        run(&mut *self.acquire().await?, query, Want::All).await.map(|_| ())
    }

    pub(crate) async fn listen(&self, channel: &str) -> Result<PgListener, StoreError> {
        let mut listener = PgListener::connect_with(&self.0.pool).await?;
        listener.listen(channel).await?;
        Ok(listener)
    }

    pub(crate) async fn close(&self) {
        self.0.pool.close().await;
    }

    /// Waits for the pool as long as the server is there. The pool itself tries to connect until its time is over.
    async fn while_there<T>(&self, work: impl Future<Output = Result<T, sqlx::Error>> + Send) -> Result<T, StoreError> {
        // On the heap: every query of the house waits here, and would carry its size.
        let mut work = Box::pin(work);
        loop {
            match timeout(PATIENCE, work.as_mut()).await {
                Ok(done) => return Ok(done?),
                Err(_) if Box::pin(self.is_there()).await => {}
                Err(_) => return Err(StoreError::Away("it cannot be reached".to_owned())),
            }
        }
    }

    /// One looks for all who wait.
    async fn is_there(&self) -> bool {
        let mut seen = self.0.seen.lock().await;
        if let Some((_, there)) = seen.filter(|(at, _)| at.elapsed() < PATIENCE) {
            return there;
        }
        let there = match timeout(self.0.look, PgConnection::connect_with(&self.0.options)).await {
            Ok(Ok(connection)) => {
                let _ = connection.close_hard().await;
                true
            }
            // It may refuse another connection and serve those that it has.
            Ok(Err(error)) => !matches!(StoreError::from(error), StoreError::Away(_)),
            Err(_) => false,
        };
        *seen = Some((Instant::now(), there));
        there
    }
}

impl crate::query::Transaction for Transaction<'static, Postgres> {
    fn run<'a>(&'a mut self, query: Query<'a>, want: Want) -> BoxFuture<'a, Result<Reply, StoreError>> {
        run(self, query, want)
    }

    fn run_many<'a>(&'a mut self, many: Many<'a>) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(run_many(self, many))
    }

    fn run_each<'a>(&'a mut self, many: Many<'a>, keys: &'a [&'static str]) -> BoxFuture<'a, Result<Vec<bool>, StoreError>> {
        Box::pin(run_each(self, many, keys))
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(async move { Ok(Transaction::commit(*self).await?) })
    }
}

/// Runs a statement on PostgreSQL.
pub(crate) fn run<'a>(connection: &'a mut PgConnection, query: Query<'a>, want: Want) -> BoxFuture<'a, Result<Reply, StoreError>> {
    Box::pin(run_here(connection, query, want))
}

async fn run_here(connection: &mut PgConnection, query: Query<'_>, want: Want) -> Result<Reply, StoreError> {
    let sql = match query.sql {
        Cow::Borrowed(sql) => sql.into_sql_str(),
        Cow::Owned(sql) => AssertSqlSafe(sql).into_sql_str(),
    };
    let mut bound = sqlx::query::<Postgres>(sql);
    for arg in query.args {
        bound = match arg {
            Arg::Uuid(value) => bound.bind(value),
            Arg::Text(value) => bound.bind(value.map(Cow::into_owned)),
            Arg::Int(value) => bound.bind(value),
            Arg::Bool(value) => bound.bind(value),
            Arg::Bytes(value) => bound.bind(value.map(Cow::into_owned)),
        };
    }
    reply(connection, bound, want).await
}

async fn reply(connection: &mut PgConnection, bound: Bound<'_>, want: Want) -> Result<Reply, StoreError> {
    Ok(match want {
        Want::All => Reply { rows: bound.fetch_all(connection).await?.into_iter().map(Row::Postgres).collect(), changes: 0 },
        Want::First => Reply { rows: bound.fetch_optional(connection).await?.into_iter().map(Row::Postgres).collect(), changes: 0 },
        Want::Changes => Reply { rows: Vec::new(), changes: bound.execute(connection).await?.rows_affected() },
    })
}

/// The values of one column in many rows.
enum List {
    Uuid(Vec<Option<Uuid>>),
    Text(Vec<Option<String>>),
    Int(Vec<Option<i64>>),
    Bool(Vec<Option<bool>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl List {
    /// An empty one for values of this kind.
    fn like(value: &Arg<'_>) -> Self {
        match value {
            Arg::Uuid(_) => Self::Uuid(Vec::new()),
            Arg::Text(_) => Self::Text(Vec::new()),
            Arg::Int(_) => Self::Int(Vec::new()),
            Arg::Bool(_) => Self::Bool(Vec::new()),
            Arg::Bytes(_) => Self::Bytes(Vec::new()),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Uuid(_) => "uuid",
            Self::Text(_) => "text",
            Self::Int(_) => "bigint",
            Self::Bool(_) => "boolean",
            Self::Bytes(_) => "bytea",
        }
    }

    fn push(&mut self, value: Arg<'_>) -> Result<(), StoreError> {
        match (self, value) {
            (Self::Uuid(list), Arg::Uuid(value)) => list.push(value),
            (Self::Text(list), Arg::Text(value)) => list.push(value.map(Cow::into_owned)),
            (Self::Int(list), Arg::Int(value)) => list.push(value),
            (Self::Bool(list), Arg::Bool(value)) => list.push(value),
            (Self::Bytes(list), Arg::Bytes(value)) => list.push(value.map(Cow::into_owned)),
            (list, _) => return Err(StoreError::Column(list.type_name().to_owned())),
        }
        Ok(())
    }
}

/// Writes as many rows as one statement takes.
async fn run_rows(
    connection: &mut PgConnection,
    many: &Many<'_>,
    (rows, values): (usize, Vec<Arg<'_>>),
    returned: &[&str],
    want: Want,
) -> Result<Reply, StoreError> {
    if rows == 1 {
        return run(connection, Query::new(many.sql(returned), values)?, want).await;
    }
    values.iter().try_for_each(Arg::check)?;
    let width = values.len() / rows;
    let mut lists: Vec<List> = values.iter().take(width).map(List::like).collect();
    for (number, value) in values.into_iter().enumerate() {
        lists[number % width].push(value)?;
    }
    let sql = many.sql_of_lists(lists.iter().map(List::type_name), returned);
    let mut bound = sqlx::query::<Postgres>(AssertSqlSafe(sql).into_sql_str());
    for list in lists {
        bound = match list {
            List::Uuid(values) => bound.bind(values),
            List::Text(values) => bound.bind(values),
            List::Int(values) => bound.bind(values),
            List::Bool(values) => bound.bind(values),
            List::Bytes(values) => bound.bind(values),
        };
    }
    reply(connection, bound, want).await
}

/// Writes rows in few statements; how many were changed.
pub(crate) async fn run_many(connection: &mut PgConnection, mut many: Many<'_>) -> Result<u64, StoreError> {
    let mut changes = 0;
    while let Some(some) = many.cut() {
        changes += run_rows(connection, &many, some, &[], Want::Changes).await?.changes;
    }
    Ok(changes)
}

/// Writes rows in few statements; whether each of them changed something, by the columns that tell them apart.
async fn run_each(connection: &mut PgConnection, mut many: Many<'_>, keys: &[&'static str]) -> Result<Vec<bool>, StoreError> {
    let places: Vec<(&str, usize)> = keys.iter().filter_map(|key| Some((*key, many.column(key)?))).collect();
    let mut changed = Vec::with_capacity(many.len());
    while let Some((rows, values)) = many.cut() {
        let width = values.len() / rows;
        let mut asked: Vec<Vec<Arg<'_>>> =
            values.chunks(width).map(|row| places.iter().map(|(_, place)| row[*place].clone()).collect()).collect();
        let found = run_rows(connection, &many, (rows, values), keys, Want::All).await?.rows;
        if found.len() == rows {
            changed.extend(std::iter::repeat_n(true, rows));
            continue;
        }
        let first = changed.len();
        changed.resize(first + rows, false);
        for row in &found {
            let is_it =
                |keys: &Vec<Arg<'_>>| keys.len() == places.len() && places.iter().zip(keys).all(|((name, _), key)| key.is_in(row, name));
            // Of two rows with the same keys the first was written.
            if let Some(place) = asked.iter().position(is_it) {
                changed[first + place] = true;
                asked[place].clear();
            }
        }
    }
    Ok(changed)
}
