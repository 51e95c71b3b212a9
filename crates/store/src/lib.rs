//! `Db`: SQLite or PostgreSQL behind one set of calls, one SQL text per query for both, transactions and embedded migrations.
//! It must never know what a table means; each domain keeps its own queries.

mod args;
mod db;
mod error;
mod group_commit;
mod like;
mod many;
mod migrate;
mod page;
mod postgres;
mod query;
mod remembered;
mod row;
mod sqlite;
mod usage;

pub use args::Arg;
pub use db::{Db, Tx, redact};
pub use error::StoreError;
pub use group_commit::{Batching, GroupCommit, Grouped};
pub use like::{fitting, holding};
pub use many::Many;
pub use migrate::Pending;
pub use page::{Page, PageSize, page_bytes};
pub use postgres::PgServer;
pub use remembered::Remembered;
pub use row::{Column, Row, SqliteRow};
pub use sqlite::{SqliteFile, SqliteTx};
pub use usage::{Full, Quota, Usage};

/// The arguments of a query, in order.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => { [$($crate::Arg::from($value)),*] };
}
