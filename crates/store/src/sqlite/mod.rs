//! SQLite: one writer and a few readers. A statement takes microseconds, so it runs on the thread that asks for it; what takes longer, and what
//! waits for the disk or for another process, goes to a thread for such work.

mod connection;
mod migrate;
#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use kernel::Shared;
use tokio::sync::{OwnedMappedMutexGuard, OwnedMutexGuard};
use tokio::task::coop::consume_budget;
use work::in_place;

use crate::error::DISK_FAILS;
use crate::query::{Query, Reply, Transaction, Want};
use crate::remembered::Changes;
use crate::{Arg, Many, StoreError};
use connection::is_given_up;
pub(crate) use connection::{Connection, Effort};

/// How many readers are kept open. There are never more in use than threads.
const READERS: usize = 8;
/// After how many pages the log is written back into the file, beside the writers; after how many they wait for the rest of it, because a log
/// that is written to all the time is never all written back; and after how many they wait for all of it, because they outrun it.
const LOG: u32 = 4_000;
const LONG_LOG: u32 = 2 * LOG;
const LONGEST_LOG: u32 = 4 * LOG;

/// How many rows are written before others get the thread.
const TOGETHER: usize = 32;

/// An open SQLite file.
#[derive(Clone, Debug)]
pub struct SqliteFile(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    file: PathBuf,
    /// Writers take turns here, and never find the file busy with each other. Nothing once it is closed.
    writer: Arc<tokio::sync::Mutex<Option<Connection>>>,
    /// Readers that nobody uses.
    readers: Mutex<Vec<Connection>>,
    /// Held while the log is written back: SQLite does nothing where that is under way already, and does not wait for it.
    checkpoint: Mutex<()>,
    is_closed: AtomicBool,
    changes: Arc<Changes>,
}

impl SqliteFile {
    /// Opens the writer, so that a file that cannot be opened is known at once.
    pub(crate) fn open(file: PathBuf) -> Result<Self, StoreError> {
        let writer = Arc::new(tokio::sync::Mutex::new(Some(Connection::writer(&file)?)));
        Ok(Self(Shared::new(Inner {
            file,
            writer,
            readers: Mutex::default(),
            checkpoint: Mutex::default(),
            is_closed: AtomicBool::new(false),
            changes: Arc::default(),
        })))
    }

    pub(crate) fn changes(&self) -> &Arc<Changes> {
        &self.0.changes
    }

    pub(crate) async fn read(&self, query: Query<'_>, want: Want) -> Result<Reply, StoreError> {
        consume_budget().await;
        if self.0.is_closed.load(Ordering::SeqCst) {
            return Err(StoreError::Closed);
        }
        match self.read_here(&query, want, Effort::Brief) {
            Err(error) if is_given_up(&error) => {}
            done => return Ok(done?),
        }
        work::go_large().await;
        let (file, query) = (self.clone(), query.into_owned());
        Ok(elsewhere(move || file.read_here(&query, want, Effort::Full)).await??)
    }

    fn read_here(&self, query: &Query<'_>, want: Want, effort: Effort) -> rusqlite::Result<Reply> {
        let idle = self.readers().pop();
        let mut reader = idle.map_or_else(|| Connection::reader(&self.0.file), Ok)?;
        let reply = reader.run(query, want, effort);
        let mut readers = self.readers();
        if readers.len() < READERS && !self.0.is_closed.load(Ordering::SeqCst) {
            readers.push(reader);
        }
        reply
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.0.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer, once everyone before is done.
    pub(crate) async fn turn(&self) -> Result<Turn, StoreError> {
        let held = self.0.writer.clone().lock_owned().await;
        let held = OwnedMutexGuard::try_map(held, Option::as_mut).map_err(|_| StoreError::Closed)?;
        Ok(Turn(held))
    }

    /// A statement that commits by itself.
    pub(crate) async fn write(&self, query: Query<'_>, want: Want) -> Result<Reply, StoreError> {
        let was_large = work::go_back().await;
        let written = self.write_here(query, want).await;
        if was_large {
            work::go_large().await;
        }
        written
    }

    async fn write_here(&self, query: Query<'_>, want: Want) -> Result<Reply, StoreError> {
        let mut turn = self.turn().await?;
        match in_place(Arg::bytes(&query.args), || turn.0.run(&query, want, Effort::Brief)) {
            Err(error) if is_given_up(&error) => {
                let (file, query) = (self.clone(), query.into_owned());
                let work = move || {
                    let reply = turn.0.run(&query, want, Effort::Full);
                    turn.end(&file);
                    reply
                };
                Ok(elsewhere(work).await??)
            }
            done => {
                turn.end(self);
                Ok(done?)
            }
        }
    }

    /// Starts a transaction. It takes the write lock at once: one that reads first and writes later could fail.
    pub(crate) async fn begin(&self, is_durable: bool) -> Result<SqliteTx, StoreError> {
        const BEGIN: &str = "begin immediate";
        let mut turn = self.turn().await?;
        match turn.0.batch(BEGIN, Effort::Brief) {
            Err(error) if is_given_up(&error) => {
                let work = move || turn.0.batch(BEGIN, Effort::Full).map(|()| turn);
                turn = elsewhere(work).await??;
            }
            begun => begun?,
        }
        Ok(SqliteTx { file: self.clone(), turn: Some(turn), is_durable, bytes: 0 })
    }

    /// Waits until what was committed is on the disk, while others write on. What is no longer in the log is in the file: SQLite flushes
    /// both before it starts the log anew.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let mut log = self.0.file.clone().into_os_string();
        log.push("-wal");
        let flushed = elsewhere(move || match OpenOptions::new().write(true).open(log) {
            Ok(log) => log.sync_data(),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        });
        flushed.await?.map_err(|error| StoreError::NotWritable { why: DISK_FAILS, cause: error.into() })
    }

    /// Writes the log back into the file beside the writers. They wait only for the rest of a long one, which was written meanwhile.
    fn write_back(&self, is_long: bool) -> rusqlite::Result<()> {
        let beside = || self.checkpoint(|| Connection::checkpoint_beside(&self.0.file));
        beside()?;
        if !is_long {
            return Ok(());
        }
        // What was written in the long while that this took is not for the writers to wait for either.
        beside()?;
        self.0.writer.blocking_lock().as_mut().map_or(Ok(()), |writer| self.checkpoint(|| writer.checkpoint()))
    }

    fn checkpoint(&self, write_back: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let _held = self.0.checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
        write_back()
    }

    /// Waits for the writer, then closes everything; the last to be closed tidies the log away.
    pub(crate) async fn close(&self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
        let writer = self.0.writer.lock().await.take();
        let readers = std::mem::take(&mut *self.readers());
        let _ = elsewhere(move || {
            drop(readers);
            drop(writer);
        })
        .await;
    }
}

/// The right to write.
#[derive(Debug)]
pub(crate) struct Turn(pub(crate) OwnedMappedMutexGuard<Option<Connection>, Connection>);

impl Turn {
    /// Lets the next one write, and sees to a log that has grown long. That waits for the disk.
    fn end(mut self, file: &SqliteFile) {
        let (log, file) = (self.0.log(), file.clone());
        if log >= LONGEST_LOG {
            tokio::task::spawn_blocking(move || file.checkpoint(|| self.0.checkpoint()).unwrap_or_else(|error| complain(&error)));
        } else if self.0.is_checkpoint_due(LOG) {
            let is_long = log >= LONG_LOG;
            tokio::task::spawn_blocking(move || file.write_back(is_long).unwrap_or_else(|error| complain(&error)));
        }
    }
}

fn complain(error: &rusqlite::Error) {
    tracing::warn!(%error, "the database's log could not be written back");
}

/// A transaction; it is rolled back when it is dropped.
#[derive(Debug)]
pub struct SqliteTx {
    file: SqliteFile,
    turn: Option<Turn>,
    is_durable: bool,
    /// How much was written.
    bytes: usize,
}

impl SqliteTx {
    /// Runs a statement for each of many rows; how many rows each of them changed.
    async fn changes(&mut self, many: Many<'_>) -> Result<Vec<u64>, StoreError> {
        many.values().iter().try_for_each(Arg::check)?;
        let sql = many.sql(&[]);
        let mut changes = Vec::with_capacity(many.len());
        let rows: Vec<_> = many.rows().collect();
        for some in rows.chunks(TOGETHER) {
            consume_budget().await;
            let bytes = some.iter().map(|values| Arg::bytes(values)).sum();
            self.bytes += bytes;
            let writer = self.begun()?;
            changes.extend(in_place(bytes, || writer.run_each(&sql, some))?);
        }
        Ok(changes)
    }

    fn begun(&mut self) -> Result<&mut Connection, StoreError> {
        let turn = self.turn.as_mut().ok_or(StoreError::Closed)?;
        if turn.0.is_begun() { Ok(&mut turn.0) } else { Err(StoreError::Away("it ended the transaction after an error".to_owned())) }
    }
}

impl Transaction for SqliteTx {
    fn run<'a>(&'a mut self, query: Query<'a>, want: Want) -> BoxFuture<'a, Result<Reply, StoreError>> {
        Box::pin(async move {
            consume_budget().await;
            let bytes = Arg::bytes(&query.args);
            self.bytes += bytes;
            let writer = self.begun()?;
            Ok(in_place(bytes, || writer.run(&query, want, Effort::Full))?)
        })
    }

    fn run_many<'a>(&'a mut self, many: Many<'a>) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move { Ok(self.changes(many).await?.into_iter().sum()) })
    }

    fn run_each<'a>(&'a mut self, many: Many<'a>, _: &'a [&'static str]) -> BoxFuture<'a, Result<Vec<bool>, StoreError>> {
        Box::pin(async move { Ok(self.changes(many).await?.into_iter().map(|changes| changes > 0).collect()) })
    }

    fn commit(mut self: Box<Self>) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(async move {
            let mut turn = self.turn.take().ok_or(StoreError::Closed)?;
            let file = self.file.clone();
            let work = move || {
                let committed = turn.0.batch("commit", Effort::Full);
                if committed.is_err() {
                    roll_back(&mut turn);
                }
                turn.end(&file);
                committed
            };
            in_place(self.bytes, work)?;
            if self.is_durable {
                self.file.flush().await?;
            }
            Ok(())
        })
    }
}

impl Drop for SqliteTx {
    fn drop(&mut self) {
        if let Some(turn) = &mut self.turn {
            roll_back(turn);
        }
    }
}

fn roll_back(turn: &mut Turn) {
    if turn.0.is_begun()
        && let Err(error) = turn.0.batch("rollback", Effort::Full)
    {
        tracing::error!(%error, "a transaction could not be rolled back");
    }
}

/// Runs work that may take long on a thread for it.
async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => StoreError::Closed,
    })
}
