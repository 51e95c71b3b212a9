//! PostgreSQL: a pool, and the difference between one that is busy and a server that is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, Postgres};
use sqlx::{Connection, Transaction};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::StoreError;

const CONNECTIONS: u32 = 16;
/// How long a connection is waited for while the server is there.
const BUSY: Duration = Duration::from_secs(10);
/// How long is waited before somebody looks whether the server is there, and how long a look lasts. Together they stay below a second.
const PATIENCE: Duration = Duration::from_millis(600);
const LOOK: Duration = Duration::from_millis(300);

/// A PostgreSQL server.
#[derive(Clone, Debug)]
pub struct PgServer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: PgPool,
    options: PgConnectOptions,
    /// A server far away is given more time.
    look: Duration,
    /// When somebody looked, and whether the server was there.
    seen: Mutex<Option<(Instant, bool)>>,
}

impl PgServer {
    pub(crate) async fn open(options: PgConnectOptions) -> Result<Self, StoreError> {
        // One try outside the pool, which would hide the reason behind its own time limit.
        let started = Instant::now();
        let first = timeout(BUSY, PgConnection::connect_with(&options)).await;
        first.map_err(|_| StoreError::Away("it takes too long to connect".to_owned()))??.close().await?;
        let look = LOOK.max(started.elapsed() * 3);
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(BUSY).connect_with(options.clone()).await?;
        Ok(Self(Arc::new(Inner { pool, options, look, seen: Mutex::default() })))
    }

    pub(crate) async fn acquire(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        self.while_there(self.0.pool.acquire()).await
    }

    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        self.while_there(self.0.pool.begin()).await
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
