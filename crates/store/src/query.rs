//! A statement with its arguments, on its way to either database.

use std::borrow::Cow;
use std::fmt::Debug;

use futures_util::future::BoxFuture;

use crate::{Arg, Many, Row, StoreError};

/// One statement; its `$1` is the first argument.
#[derive(Clone, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) args: Vec<Arg<'a>>,
    /// Whether its arguments stand in the text in the order of their numbers, each once.
    pub(crate) is_in_order: bool,
}

/// What is wanted of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Every row.
    All,
    /// The first row; the statement is done to its end all the same.
    First,
    /// How many rows it changed.
    Changes,
}

/// What a statement gave.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) rows: Vec<Row>,
    pub(crate) changes: u64,
}

impl Reply {
    pub(crate) fn first(self) -> Option<Row> {
        self.rows.into_iter().next()
    }
}

impl<'a> Query<'a> {
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>, args: impl IntoIterator<Item = Arg<'a>>) -> Result<Self, StoreError> {
        let args: Vec<Arg<'a>> = args.into_iter().collect();
        args.iter().try_for_each(Arg::check)?;
        Ok(Self { sql: sql.into(), args, is_in_order: false })
    }

    /// The same without borrowed values, for another thread.
    pub(crate) fn into_owned(self) -> Query<'static> {
        Query { sql: self.sql, args: self.args.into_iter().map(Arg::into_owned).collect(), is_in_order: self.is_in_order }
    }
}

/// A transaction of either database; it is rolled back when it is dropped.
pub(crate) trait Transaction: Debug + Send {
    fn run<'a>(&'a mut self, query: Query<'a>, want: Want) -> BoxFuture<'a, Result<Reply, StoreError>>;

    /// Writes rows; how many were changed.
    fn run_many<'a>(&'a mut self, many: Many<'a>) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Writes rows; whether each of them changed something, by the columns that tell them apart.
    fn run_each<'a>(&'a mut self, many: Many<'a>, keys: &'a [&'static str]) -> BoxFuture<'a, Result<Vec<bool>, StoreError>>;

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<(), StoreError>>;
}
