//! Pages of rows: as many as were asked for, and fewer where they are large.

use crate::{Row, StoreError};

const DEFAULT: i64 = 50;
const MOST: i64 = 500;

/// How many rows a page holds: what was asked for, within limits.
#[derive(Clone, Copy, Debug)]
pub struct PageSize(i64);

/// One page.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Whether there is another after it.
    pub more: bool,
}

impl Default for PageSize {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl PageSize {
    pub fn asked(limit: Option<i64>) -> Self {
        Self::within(limit, DEFAULT, MOST)
    }

    /// The same for a list with limits of its own.
    pub fn within(limit: Option<i64>, default: i64, most: i64) -> Self {
        Self(limit.unwrap_or(default).clamp(1, most))
    }

    /// How many rows to read: one more than the page holds tells whether there is another page.
    pub fn rows(self) -> i64 {
        self.0 + 1
    }

    /// Reads what a `page_sql!` found.
    pub fn read<T>(self, rows: &[Row], read: impl Fn(&Row) -> Result<T, StoreError>) -> Result<Page<T>, StoreError> {
        let ended_early = rows.last().map_or(Ok(0), |last| last.get::<i64>("page_more"))? > 0;
        let page = rows.iter().take(self.most()).map(read).collect::<Result<_, _>>()?;
        Ok(Page { rows: page, more: ended_early || rows.len() > self.most() })
    }

    /// Cuts rows that were read in another way to a page.
    pub fn cut<T>(self, mut rows: Vec<T>) -> Page<T> {
        let more = rows.len() > self.most();
        rows.truncate(self.most());
        Page { rows, more }
    }

    fn most(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }
}

/// About how many bytes a `page_sql!` found.
pub fn page_bytes(rows: &[Row]) -> usize {
    let bytes = rows.last().and_then(|last| Some(last.get::<i64>("page_before").ok()? + last.get::<i64>("page_bytes").ok()?));
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
}

impl<T> Page<T> {
    /// What leads to the next page, if there is one.
    pub fn cursor<C>(&self, of: impl FnOnce(&T) -> C) -> Option<C> {
        self.rows.last().filter(|_| self.more).map(of)
    }
}

/// The beginning of a query for a page: finds which rows it holds by their lengths, before anything large is read. `page` has their ids, and
/// a page ends once the rows before hold 4 MiB.
#[macro_export]
macro_rules! page_of {
    (bytes $bytes:expr, from $table:literal, where $filter:expr, by id $direction:literal, limit $limit:literal) => {
        concat!(
            "with page_rows as (select id as page_id, ",
            $bytes,
            " as page_bytes from ",
            $table,
            " where ",
            $filter,
            " order by id ",
            $direction,
            " limit ",
            $limit,
            "), page as (select page_id, cast(page_bytes as bigint) as page_bytes, \
             cast(sum(page_bytes) over (order by page_id ",
            $direction,
            ") - page_bytes as bigint) as page_before, \
             cast(case when lead(page_id) over (order by page_id ",
            $direction,
            ") is null then 0 else 1 end as bigint) as page_more from page_rows) "
        )
    };
    (bytes $bytes:expr, from $table:literal, where $filter:expr, by $key:literal $direction:literal, limit $limit:literal) => {
        concat!(
            "with page_rows as (select id as page_id, ",
            $key,
            " as page_key, ",
            $bytes,
            " as page_bytes from ",
            $table,
            " where ",
            $filter,
            " order by ",
            $key,
            " ",
            $direction,
            ", id ",
            $direction,
            " limit ",
            $limit,
            "), page as (select page_id, cast(page_bytes as bigint) as page_bytes, \
             cast(sum(page_bytes) over (order by page_key ",
            $direction,
            ", page_id ",
            $direction,
            ") - page_bytes as bigint) as page_before, \
             cast(case when lead(page_id) over (order by page_key ",
            $direction,
            ", page_id ",
            $direction,
            ") is null then 0 else 1 end as bigint) as page_more from page_rows) "
        )
    };
}

/// A query for a page of a table, for `PageSize::read`. `$1` is the project, and `bytes` the length of what may be large in a row.
#[macro_export]
macro_rules! page_sql {
    (select $columns:expr, bytes $bytes:expr, from $table:literal, where $filter:expr, by id $direction:literal, limit $limit:literal) => {
        concat!(
            $crate::page_of!(bytes $bytes, from $table, where $filter, by id $direction, limit $limit),
            "select ",
            $columns,
            ", page_bytes, page_before, page_more from page join ",
            $table,
            " on project_id = $1 and id = page_id where page_before < 4194304 order by id ",
            $direction
        )
    };
    (select $columns:expr, bytes $bytes:expr, from $table:literal, where $filter:expr, by $key:literal $direction:literal, limit $limit:literal) => {
        concat!(
            $crate::page_of!(bytes $bytes, from $table, where $filter, by $key $direction, limit $limit),
            "select ",
            $columns,
            ", page_bytes, page_before, page_more from page join ",
            $table,
            " on project_id = $1 and id = page_id where page_before < 4194304 order by ",
            $key,
            " ",
            $direction,
            ", id ",
            $direction
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_there_is_more() {
        let page = PageSize::asked(Some(2));
        for (read, kept, cursor) in [(0, 0, None), (2, 2, None), (3, 2, Some(1))] {
            let cut = page.cut((0..read).collect());
            assert_eq!((cut.cursor(|row| *row), cut.rows.len()), (cursor, kept));
        }
        assert_eq!((PageSize::asked(None).rows(), PageSize::asked(Some(-1)).rows(), PageSize::asked(Some(9999)).rows()), (51, 2, 501));
        assert_eq!((PageSize::within(None, 3, 9).rows(), PageSize::within(Some(99), 3, 9).rows()), (4, 10));
    }
}
