//! What can go wrong with a database.

use rusqlite::ffi::{SQLITE_BUSY, SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE, SQLITE_FULL, SQLITE_IOERR, SQLITE_READONLY};

/// What a database's own client says.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("a row with these values exists already")]
    Conflict,
    #[error("text may not contain a NUL character")]
    Nul,
    #[error("column `{0}` does not hold what was expected")]
    Column(String),
    #[error("`{0}` is not a database address; use sqlite://FILE or postgres://USER@HOST/NAME")]
    Address(String),
    /// For a moment, or until somebody starts it again.
    #[error("the database does not answer: {0}")]
    Away(String),
    /// It answers, and takes nothing.
    #[error("the database cannot be written: {why} ({cause})")]
    NotWritable { why: &'static str, cause: Cause },
    #[error("the database is closed")]
    Closed,
    #[error("the database is newer than this program: {0}")]
    Newer(String),
    #[error("{0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    #[error("{0}")]
    Database(Cause),
}

impl StoreError {
    /// What is wrong with the database, for whoever waits for it to come back; nothing where it is the query that is wrong.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Away(_) | Self::Closed => Some("does not answer".to_owned()),
            Self::NotWritable { why, .. } => Some(format!("cannot be written: {why}")),
            _ => None,
        }
    }
}

impl StoreError {
    /// The same once more, for all who wrote together and failed together.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Conflict => Self::Conflict,
            Self::Nul => Self::Nul,
            Self::Closed => Self::Closed,
            Self::Away(why) => Self::Away(why.clone()),
            Self::NotWritable { why, cause } => Self::NotWritable { why, cause: cause.to_string().into() },
            other => Self::Database(other.to_string().into()),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(inner) if inner.is_unique_violation() => Self::Conflict,
            sqlx::Error::Database(inner) if inner.code().is_some_and(|code| is_away(&code)) => Self::Away(error.to_string()),
            sqlx::Error::Database(inner) if let Some(why) = inner.code().and_then(|code| not_writable(&code)) => {
                Self::NotWritable { why, cause: error.into() }
            }
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => Self::Away(error.to_string()),
            sqlx::Error::PoolClosed => Self::Closed,
            _ => Self::Database(error.into()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let Some(code) = error.sqlite_error().map(|inner| inner.extended_code) else { return Self::Database(error.into()) };
        match (code, sqlite_not_writable(code)) {
            (SQLITE_CONSTRAINT_PRIMARYKEY | SQLITE_CONSTRAINT_UNIQUE, _) => Self::Conflict,
            (code, _) if code & 0xff == SQLITE_BUSY => Self::Away(error.to_string()),
            (_, Some(why)) => Self::NotWritable { why, cause: error.into() },
            _ => Self::Database(error.into()),
        }
    }
}

const READ_ONLY: &str = "it is read-only";
pub(crate) const DISK_FAILS: &str = "its disk fails";
const DISK_IS_FULL: &str = "its disk is full";

/// PostgreSQL's codes for a lost connection (class 08) and a server that starts or stops (57P01 to 57P03).
fn is_away(code: &str) -> bool {
    code.starts_with("08") || ["57P01", "57P02", "57P03"].contains(&code)
}

fn not_writable(code: &str) -> Option<&'static str> {
    match code {
        "25006" => Some(READ_ONLY),
        "53100" => Some(DISK_IS_FULL),
        _ => None,
    }
}

/// The last byte of SQLite's codes is the kind.
fn sqlite_not_writable(code: i32) -> Option<&'static str> {
    match code & 0xff {
        SQLITE_READONLY => Some(READ_ONLY),
        SQLITE_IOERR => Some(DISK_FAILS),
        SQLITE_FULL => Some(DISK_IS_FULL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_trouble() {
        for (code, why) in [("53100", DISK_IS_FULL), ("25006", READ_ONLY)] {
            assert_eq!(not_writable(code), Some(why), "{code}");
        }
        for code in ["23505", "40001"] {
            assert_eq!(not_writable(code), None, "{code}");
        }
        for (code, why) in [(13, DISK_IS_FULL), (778, DISK_FAILS), (1544, READ_ONLY)] {
            assert_eq!(sqlite_not_writable(code), Some(why), "{code}");
        }
        for code in [5, 19, 2067] {
            assert_eq!(sqlite_not_writable(code), None, "{code}");
        }
    }
}
