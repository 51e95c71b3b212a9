//! A statement with its arguments, on its way to either database.

use std::borrow::Cow;

use crate::{Arg, Row, StoreError};

/// One statement; its `$1` is the first argument.
#[derive(Clone, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) args: Vec<Arg<'a>>,
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
        Ok(Self { sql: sql.into(), args })
    }

    /// The same without borrowed values, for another thread.
    pub(crate) fn into_owned(self) -> Query<'static> {
        Query { sql: self.sql, args: self.args.into_iter().map(Arg::into_owned).collect() }
    }
}
