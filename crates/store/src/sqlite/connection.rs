//! One connection to a SQLite file. Statements are prepared once and run on the thread that asks.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::ffi::SQLITE_INTERRUPT;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, Statement};
use work::SMALL;

use crate::query::{Query, Reply, Want};
use crate::row::SqliteRow;
use crate::{Arg, Row};

/// How many prepared statements a connection keeps.
const STATEMENTS: usize = 256;
/// How many KiB of pages the writer keeps, once it has touched them: what many rows at once are written to.
const WRITER_CACHE: i64 = 8192;
/// How long a file is waited for that another process keeps locked.
const PATIENCE: Duration = Duration::from_secs(10);
/// After how many of its instructions SQLite asks whether a statement may go on, and how often it may: together one or two milliseconds.
const INSTRUCTIONS: i32 = 2_000;
const LOOKS: u32 = 50;

thread_local! {
    /// How many pages the log holds after a commit on this thread; SQLite says so before the commit returns.
    static COMMITTED: Cell<u32> = const { Cell::new(0) };
}

/// How much a statement may take of the thread that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Little: it runs on a thread that others need, and is given up where it takes long, finds much or has to wait for another process.
    Brief,
    /// As much as it needs, on a thread for such work.
    Full,
}

#[derive(Debug)]
pub(crate) struct Connection {
    inner: rusqlite::Connection,
    /// How often the statement under way may still go on.
    looks: Arc<AtomicU32>,
    /// How many pages the log holds.
    log: u32,
    /// How many it held when it was last written back.
    checkpointed: u32,
    effort: Option<Effort>,
    is_reader: bool,
}

impl Connection {
    /// The one that writes; the file is made when it is missing.
    pub(crate) fn writer(file: &Path) -> rusqlite::Result<Self> {
        let mut writer = Self::open(file, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        writer.set_effort(Effort::Full)?;
        writer.inner.pragma_update(None, "journal_mode", "wal")?;
        // Whoever needs it waits for the disk after the commit, when others can write on.
        writer.inner.pragma_update(None, "synchronous", "normal")?;
        writer.inner.pragma_update(None, "foreign_keys", true)?;
        writer.inner.pragma_update(None, "cache_size", -WRITER_CACHE)?;
        // In place of the checkpoint that a commit would make by itself, on the thread that happens to commit.
        writer.inner.wal_hook(Some(|_, pages| {
            COMMITTED.set(u32::try_from(pages).unwrap_or(0));
            Ok(())
        }));
        Ok(writer)
    }

    pub(crate) fn reader(file: &Path) -> rusqlite::Result<Self> {
        Ok(Self { is_reader: true, ..Self::open(file, OpenFlags::SQLITE_OPEN_READ_ONLY)? })
    }

    fn open(file: &Path, flags: OpenFlags) -> rusqlite::Result<Self> {
        let inner = rusqlite::Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        inner.set_prepared_statement_cache_capacity(STATEMENTS);
        // Otherwise a statement whose `limit` is an argument is prepared anew each time it is run.
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // What a statement keeps aside is small, and a file for it would take longer than the statement.
        inner.pragma_update(None, "temp_store", "memory")?;
        let looks = Arc::new(AtomicU32::new(0));
        let left = looks.clone();
        let is_over = move || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err();
        inner.progress_handler(INSTRUCTIONS, Some(is_over))?;
        Ok(Self { inner, looks, log: 0, checkpointed: 0, effort: None, is_reader: false })
    }

    fn set_effort(&mut self, effort: Effort) -> rusqlite::Result<()> {
        self.looks.store(if effort == Effort::Full { u32::MAX } else { LOOKS }, Ordering::Relaxed);
        if self.effort != Some(effort) {
            self.inner.busy_timeout(if effort == Effort::Full { PATIENCE } else { Duration::ZERO })?;
            self.effort = Some(effort);
        }
        Ok(())
    }

    /// Whether a transaction was begun and not ended.
    pub(crate) fn is_begun(&self) -> bool {
        !self.inner.is_autocommit()
    }

    /// How many pages the log holds, as the last commit said.
    pub(crate) fn log(&self) -> u32 {
        self.log
    }

    fn note_commit(&mut self) {
        let pages = COMMITTED.take();
        if pages > 0 {
            if pages < self.log {
                self.checkpointed = 0;
            }
            self.log = pages;
        }
    }

    /// Whether the log grew by so many pages since this was last so.
    pub(crate) fn is_checkpoint_due(&mut self, pages: u32) -> bool {
        let is_due = self.log >= self.checkpointed + pages;
        if is_due {
            self.checkpointed = self.log;
        }
        is_due
    }

    /// The same as `checkpoint`, on a connection of its own, while others write.
    pub(crate) fn checkpoint_beside(file: &Path) -> rusqlite::Result<()> {
        Self::open(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?.checkpoint()
    }

    /// Writes the log back into the file as far as no reader needs it. The next commit starts the log anew where that was all of it.
    pub(crate) fn checkpoint(&mut self) -> rusqlite::Result<()> {
        self.batch("pragma wal_checkpoint(passive)", Effort::Full)?;
        (self.log, self.checkpointed) = (0, 0);
        Ok(())
    }

    /// Runs a statement that has neither arguments nor rows, or several.
    pub(crate) fn batch(&mut self, sql: &str, effort: Effort) -> rusqlite::Result<()> {
        self.set_effort(effort)?;
        let done = self.inner.execute_batch(sql);
        self.note_commit();
        done
    }

    /// Runs a statement. A brief one that was given up has changed nothing.
    pub(crate) fn run(&mut self, query: &Query<'_>, want: Want, effort: Effort) -> rusqlite::Result<Reply> {
        self.set_effort(effort)?;
        let mut statement = self.inner.prepare_cached(&query.sql)?;
        if query.is_in_order {
            bind_in_order(&mut statement, &query.args)?;
        } else {
            bind(&mut statement, &query.args)?;
        }
        let columns: Arc<[Box<str>]> = match want {
            Want::Changes => Arc::default(),
            Want::All | Want::First => statement.column_names().into_iter().map(Box::from).collect(),
        };
        let (mut reply, mut bytes) = (Reply::default(), 0);
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if want == Want::All || (want == Want::First && reply.rows.is_empty()) {
                let values = (0..columns.len()).map(|column| row.get(column)).collect::<rusqlite::Result<Box<[_]>>>()?;
                bytes += values.iter().map(bytes_of).sum::<usize>();
                if bytes > SMALL && effort == Effort::Brief && self.is_reader {
                    return Err(given_up());
                }
                reply.rows.push(Row::Sqlite(SqliteRow { columns: columns.clone(), values }));
            }
            // What writes goes on to its end: only there SQLite says whether it was taken.
            if want == Want::First && self.is_reader {
                break;
            }
        }
        drop(rows);
        drop(statement);
        reply.changes = self.inner.changes();
        self.note_commit();
        Ok(reply)
    }

    /// Runs a statement once for the values of each row, which stand in its text in their order; how many rows each of them changed.
    pub(crate) fn run_each(&mut self, sql: &str, rows: &[&[Arg<'_>]]) -> rusqlite::Result<Vec<u64>> {
        self.set_effort(Effort::Full)?;
        let mut statement = self.inner.prepare_cached(sql)?;
        rows.iter()
            .map(|values| {
                bind_in_order(&mut statement, values)?;
                statement.raw_execute().map(|changes| changes as u64)
            })
            .collect()
    }
}

/// What SQLite says of a statement that its progress handler ends.
fn given_up() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(SQLITE_INTERRUPT), None)
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 0,
    }
}

/// Whether a brief statement was given up, and may be run again with all the time it needs.
pub(crate) fn is_given_up(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::OperationInterrupted | ErrorCode::DatabaseBusy))
}

/// Arguments that stand in the text in the order of their numbers. SQLite takes long to tell the name of each of many.
fn bind_in_order(statement: &mut Statement<'_>, args: &[Arg<'_>]) -> rusqlite::Result<()> {
    let wanted = statement.parameter_count();
    if wanted != args.len() {
        return Err(rusqlite::Error::InvalidParameterCount(args.len(), wanted));
    }
    (1..).zip(args).try_for_each(|(index, arg)| statement.raw_bind_parameter(index, arg))
}

/// SQLite numbers `$3` by where it first stands in the text, PostgreSQL by its digits.
fn bind(statement: &mut Statement<'_>, args: &[Arg<'_>]) -> rusqlite::Result<()> {
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).unwrap_or("?");
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let Some(arg) = number.and_then(|number| args.get(number.checked_sub(1)?)) else {
            return Err(rusqlite::Error::InvalidParameterName(name.to_owned()));
        };
        statement.raw_bind_parameter(index, arg)?;
    }
    Ok(())
}

impl rusqlite::ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Uuid(value) => value.as_ref().map(|uuid| ValueRef::Blob(uuid.as_bytes())),
            Self::Text(value) => value.as_deref().map(|text| ValueRef::Text(text.as_bytes())),
            Self::Int(value) => value.map(ValueRef::Integer),
            Self::Bool(value) => value.map(|flag| ValueRef::Integer(i64::from(flag))),
            Self::Bytes(value) => value.as_deref().map(ValueRef::Blob),
        };
        Ok(ToSqlOutput::Borrowed(value.unwrap_or(ValueRef::Null)))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_is_prepared_once_whatever_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let writer = Connection::writer(&dir.path().join("test.db")).unwrap();
        writer.inner.execute_batch("create table notes (id integer primary key, text text)").unwrap();
        let mut statement = writer.inner.prepare("select id from notes order by id limit ?1").unwrap();
        for limit in [1, 20, 300] {
            statement.query_row([limit], |_| Ok(())).unwrap_err();
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
