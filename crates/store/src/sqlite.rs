//! SQLite: one writer and a few readers, held open. sqlx's pool would ping a connection after every query, which for SQLite costs as much
//! as the query.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Executor};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::StoreError;

const READERS: usize = 4;

/// An open SQLite file.
#[derive(Clone, Debug)]
pub struct SqliteFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: SqliteConnectOptions,
    writer: Arc<Mutex<Slot>>,
    readers: Vec<Arc<Mutex<Slot>>>,
    turn: AtomicUsize,
    closed: AtomicBool,
}

/// A connection that is opened when it is first needed.
#[derive(Debug, Default)]
pub struct Slot {
    connection: Option<SqliteConnection>,
    /// A transaction was begun and not ended; whoever comes next rolls it back.
    begun: bool,
    /// Commits reach the disk before they return.
    durable: bool,
}

pub(crate) type Held = OwnedMutexGuard<Slot>;

impl SqliteFile {
    /// Opens the writer, so that a file that cannot be opened is known at once.
    pub(crate) async fn open(options: SqliteConnectOptions) -> Result<Self, StoreError> {
        let readers = (0..READERS).map(|_| Arc::default()).collect();
        let file =
            Self(Arc::new(Inner { options, writer: Arc::default(), readers, turn: AtomicUsize::new(0), closed: AtomicBool::new(false) }));
        file.writer().await?;
        Ok(file)
    }

    /// The writer, once everyone before is done.
    pub(crate) async fn writer(&self) -> Result<Held, StoreError> {
        let mut held = self.0.writer.clone().lock_owned().await;
        if held.begun {
            // There may be nothing to roll back: the one before may have been cut off while it began.
            let _ = held.get()?.execute("rollback").await;
            held.begun = false;
            held.relax().await?;
        }
        self.ready(held, false).await
    }

    /// The first reader that is free, whose statements and pages are at hand, or the next one in turn.
    pub(crate) async fn reader(&self) -> Result<Held, StoreError> {
        let readers = &self.0.readers;
        let held = if let Some(held) = readers.iter().find_map(|reader| reader.clone().try_lock_owned().ok()) {
            held
        } else {
            let turn = self.0.turn.fetch_add(1, Ordering::Relaxed);
            readers[turn % readers.len()].clone().lock_owned().await
        };
        self.ready(held, true).await
    }

    async fn ready(&self, mut held: Held, read_only: bool) -> Result<Held, StoreError> {
        if self.0.closed.load(Ordering::SeqCst) {
            return Err(StoreError::Closed);
        }
        if held.connection.is_none() {
            held.connection = Some(self.0.options.clone().read_only(read_only).connect().await?);
        }
        Ok(held)
    }

    pub(crate) async fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        for slot in self.0.readers.iter().chain(std::iter::once(&self.0.writer)) {
            if let Some(connection) = slot.lock().await.connection.take() {
                let _ = connection.close().await;
            }
        }
    }
}

impl Slot {
    pub(crate) fn get(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.connection.as_mut().ok_or(StoreError::Closed)
    }

    /// Takes the write lock at once: a transaction that reads first and writes later could fail.
    pub(crate) async fn begin(&mut self) -> Result<(), StoreError> {
        self.begun = true;
        self.get()?.execute("begin immediate").await?;
        Ok(())
    }

    /// The same, and its commit reaches the disk before it returns.
    pub(crate) async fn begin_durable(&mut self) -> Result<(), StoreError> {
        self.durable = true;
        self.get()?.execute("pragma synchronous = full").await?;
        self.begin().await
    }

    pub(crate) async fn commit(&mut self) -> Result<(), StoreError> {
        self.get()?.execute("commit").await?;
        self.begun = false;
        self.relax().await
    }

    /// Back to commits that the system writes when it likes.
    async fn relax(&mut self) -> Result<(), StoreError> {
        if self.durable {
            self.get()?.execute("pragma synchronous = normal").await?;
            self.durable = false;
        }
        Ok(())
    }
}
