//! Pages of rows: one row more than a page holds tells whether there is another page.

const DEFAULT: i64 = 50;
const MOST: i64 = 500;

/// How many rows a page holds: what was asked for, within limits.
#[derive(Clone, Copy, Debug)]
pub struct PageSize(i64);

impl PageSize {
    pub fn asked(limit: Option<i64>) -> Self {
        Self::within(limit, DEFAULT, MOST)
    }

    /// The same for a list with limits of its own.
    pub fn within(limit: Option<i64>, default: i64, most: i64) -> Self {
        Self(limit.unwrap_or(default).clamp(1, most))
    }

    /// How many rows to read.
    pub fn rows(self) -> i64 {
        self.0 + 1
    }

    /// Cuts what was read to a page; the cursor of its last row, if there is more.
    pub fn cut<T, C>(self, rows: &mut Vec<T>, cursor: impl FnOnce(&T) -> C) -> Option<C> {
        let size = usize::try_from(self.0).unwrap_or(0);
        let more = rows.len() > size;
        rows.truncate(size);
        rows.last().filter(|_| more).map(cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_there_is_more() {
        let page = PageSize::asked(Some(2));
        for (read, kept, cursor) in [(0, 0, None), (2, 2, None), (3, 2, Some(1))] {
            let mut rows: Vec<i32> = (0..read).collect();
            assert_eq!((page.cut(&mut rows, |row| *row), rows.len()), (cursor, kept));
        }
        assert_eq!((PageSize::asked(None).rows(), PageSize::asked(Some(-1)).rows(), PageSize::asked(Some(9999)).rows()), (51, 2, 501));
        assert_eq!((PageSize::within(None, 3, 9).rows(), PageSize::within(Some(99), 3, 9).rows()), (4, 10));
    }
}
