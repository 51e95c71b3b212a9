//! `Db`: SQLite or PostgreSQL behind one set of calls, one SQL text per query for both, transactions and embedded migrations.
//! It must never know what a table means; each domain keeps its own queries.

mod args;
mod db;
mod error;
mod like;
mod migrate;
mod page;
mod postgres;
mod row;
mod sqlite;

pub use args::Arg;
pub use db::{Db, Tx, redact};
pub use error::StoreError;
pub use like::{fitting, holding};
pub use migrate::Pending;
pub use page::PageSize;
pub use postgres::PgServer;
pub use row::{Column, Row};
pub use sqlite::SqliteFile;

/// The arguments of a query, in order.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => { [$($crate::Arg::from($value)),*] };
}
