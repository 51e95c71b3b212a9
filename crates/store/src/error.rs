//! What can go wrong with a database.

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
    #[error("the database is closed")]
    Closed,
    #[error("the database is newer than this program: {0}")]
    Newer(String),
    #[error("{0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    #[error("{0}")]
    Database(sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(inner) if inner.is_unique_violation() => Self::Conflict,
            sqlx::Error::Database(inner) if inner.code().is_some_and(|code| is_away(&code)) => Self::Away(error.to_string()),
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => Self::Away(error.to_string()),
            sqlx::Error::PoolClosed => Self::Closed,
            _ => Self::Database(error),
        }
    }
}

/// PostgreSQL's codes for a lost connection (class 08) and a server that starts or stops (57P01 to 57P03); SQLite's for a file that another
/// process keeps locked.
fn is_away(code: &str) -> bool {
    code.starts_with("08") || ["57P01", "57P02", "57P03", "5"].contains(&code)
}
