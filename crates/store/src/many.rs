//! One statement for many rows. Each value stands beside the name of its column, so that no two can change places.

use std::fmt::Write as _;

use crate::query::Query;
use crate::{Arg, StoreError};

/// How many rows one statement takes on PostgreSQL.
const MOST: usize = 1024;

/// The values of a row, each beside its column.
#[macro_export]
macro_rules! row {
    ($($column:ident: $value:expr),* $(,)?) => { [$((stringify!($column), $crate::Arg::from($value))),*] };
}

/// Rows that one statement writes. SQLite takes them one by one with one prepared statement, PostgreSQL all together, a list for each column, so
/// that one text serves any number of rows.
#[derive(Clone, Debug)]
pub struct Many<'a> {
    columns: Vec<&'static str>,
    values: Vec<Arg<'a>>,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Insert { table: &'static str, rest: &'static str },
    With(&'static str),
}

impl<'a> Many<'a> {
    /// New rows of a table. The rest says what becomes of one that is there already.
    pub fn insert<const N: usize>(
        table: &'static str,
        rows: impl IntoIterator<Item = [(&'static str, Arg<'a>); N]>,
        rest: &'static str,
    ) -> Self {
        Self::new(Form::Insert { table, rest }, rows)
    }

    /// A statement that reads the rows from a table `v`, such as `update t set a = v.a from v where t.id = v.id`.
    pub fn with<const N: usize>(rows: impl IntoIterator<Item = [(&'static str, Arg<'a>); N]>, sql: &'static str) -> Self {
        Self::new(Form::With(sql), rows)
    }

    fn new<const N: usize>(form: Form, rows: impl IntoIterator<Item = [(&'static str, Arg<'a>); N]>) -> Self {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for row in rows {
            if columns.is_empty() {
                columns.extend(row.iter().map(|(column, _)| *column));
            }
            debug_assert!(row.iter().map(|(column, _)| column).eq(&columns), "rows of one statement have the same columns");
            values.extend(row.map(|(_, value)| value));
        }
        Self { columns, values, form }
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.columns.len()).unwrap_or(0)
    }

    pub(crate) fn values(&self) -> &[Arg<'a>] {
        &self.values
    }

    /// The statement for the one row that there is.
    pub(crate) fn into_query(self) -> Result<Query<'a>, StoreError> {
        Ok(Query { is_in_order: true, ..Query::new(self.sql(&[]), self.values)? })
    }

    /// The values of each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[Arg<'a>]> {
        self.values.chunks(self.columns.len().max(1))
    }

    /// The table that is written, or the statement that names it.
    pub(crate) fn table(&self) -> &'static str {
        match self.form {
            Form::Insert { table, .. } => table,
            Form::With(sql) => sql,
        }
    }

    /// Whether one statement takes all rows.
    pub(crate) fn is_one_statement(&self) -> bool {
        self.len() <= MOST
    }

    /// The values of as many rows as one statement takes of the rest.
    pub(crate) fn cut(&mut self) -> Option<(usize, Vec<Arg<'a>>)> {
        let rows = self.len().min(MOST);
        if rows == 0 {
            return None;
        }
        let later = self.values.split_off(rows * self.columns.len());
        Some((rows, std::mem::replace(&mut self.values, later)))
    }

    /// Where a column stands.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column == name)
    }

    /// The statement for one row, which gives back these columns of it if it was written.
    pub(crate) fn sql(&self, returned: &[&str]) -> String {
        let values = |sql: &mut String| {
            sql.push_str("values ($1");
            for number in 1..self.columns.len() {
                sql.push_str(", $");
                push_number(sql, number + 1);
            }
            sql.push(')');
        };
        self.written(values, returned)
    }

    /// The statement for any number of rows, by a list of each column's values, which are of these types.
    pub(crate) fn sql_of_lists(&self, types: impl Iterator<Item = &'static str>, returned: &[&str]) -> String {
        let lists = |sql: &mut String| {
            sql.push_str("select * from unnest(");
            for (number, kind) in types.enumerate() {
                let _ = write!(sql, "{}${}::{kind}[]", if number == 0 { "" } else { ", " }, number + 1);
            }
            sql.push(')');
        };
        self.written(lists, returned)
    }

    fn written(&self, write_rows: impl FnOnce(&mut String), returned: &[&str]) -> String {
        let mut sql = String::with_capacity(256 + self.columns.len() * 22);
        let after = match self.form {
            Form::Insert { table, .. } => {
                sql.extend(["insert into ", table, " ("]);
                ") "
            }
            Form::With(_) => {
                sql.push_str("with v (");
                ") as ("
            }
        };
        for (place, column) in self.columns.iter().enumerate() {
            sql.push_str(if place == 0 { "" } else { ", " });
            sql.push_str(column);
        }
        sql.push_str(after);
        write_rows(&mut sql);
        let table = match self.form {
            Form::Insert { rest, .. } => {
                let _ = write!(sql, " {rest}");
                ""
            }
            Form::With(statement) => {
                let _ = write!(sql, ") {statement}");
                "v."
            }
        };
        for (number, column) in returned.iter().enumerate() {
            let word = if number == 0 { " returning" } else { "," };
            let _ = write!(sql, "{word} {table}{column} as {column}");
        }
        sql
    }
}

/// Writes a number without the machinery of formats: this stands on the path of every call.
fn push_number(text: &mut String, number: usize) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b"0123456789"[number % 10]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_written_for_one_row_and_for_any_number() {
        let rows = |count: i64| (0..count).map(|number| row! { id: number, text: "a" });
        let many = Many::insert("notes", rows(5), "on conflict do nothing");
        assert_eq!((many.len(), many.is_one_statement()), (5, true));
        assert_eq!(many.sql(&[]), "insert into notes (id, text) values ($1, $2) on conflict do nothing");
        assert_eq!(
            many.sql_of_lists(["bigint", "text"].into_iter(), &["id"]),
            "insert into notes (id, text) select * from unnest($1::bigint[], $2::text[]) on conflict do nothing returning id as id"
        );
        let mut many = Many::insert("notes", rows(1025), "");
        assert!(!many.is_one_statement());
        assert_eq!(many.cut().map(|(rows, values)| (rows, values.len())), Some((1024, 2048)));
        assert_eq!(many.cut().map(|(rows, values)| (rows, values.len())), Some((1, 2)));
        assert!(many.cut().is_none());
        let many = Many::with([row! { id: 1_i64, text: "b" }], "update notes set text = v.text from v where notes.id = v.id");
        assert_eq!(
            many.sql(&["id"]),
            "with v (id, text) as (values ($1, $2)) update notes set text = v.text from v where notes.id = v.id returning v.id as id"
        );
    }
}
