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
    #[error("the database does not answer")]
    Timeout,
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
            _ => Self::Database(error),
        }
    }
}
