//! Lists as Composio pages them.
//!
//! Read `limit` and `cursor` of a query with `Window::read`, then either `window.cut(all)` where everything is in memory, or take
//! `window.offset()` and `window.limit()` rows and write `window.page(rows, total)`. Lists in queries are one text with commas: `commas`.

use document::ToSchema;
use serde::Serialize;

use crate::Refusal;

/// How many there are on a page where nothing is said.
pub const USUAL: usize = 20;

/// One page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Leads to the next page; null on the last one.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
    pub total_pages: usize,
    pub current_page: usize,
    pub total_items: usize,
}

impl<T> Page<T> {
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        let Self { items, next_cursor, total_pages, current_page, total_items } = self;
        Page { items: items.into_iter().map(change).collect(), next_cursor, total_pages, current_page, total_items }
    }
}

/// The part of a list that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    offset: usize,
    limit: usize,
}

impl Window {
    /// What a query asks for. A number may be written `5.0`; more than `most` is `most`, and a cursor that is not ours is refused.
    pub fn read(limit: Option<&str>, cursor: Option<&str>, most: usize) -> Result<Self, Refusal> {
        let limit = match limit.map(str::trim) {
            None | Some("") => USUAL.min(most),
            Some(text) => number(text).ok_or_else(|| Refusal::bad_request("`limit` must be a whole number from 1 on."))?.min(most),
        };
        let offset = match cursor {
            None | Some("") => 0,
            Some(cursor) => {
                let given = cursor.strip_prefix(CURSOR).and_then(|rest| rest.parse().ok());
                given.ok_or_else(|| Refusal::bad_request("The cursor is not one of ours; leave it out to start at the beginning."))?
            }
        };
        Ok(Self { offset, limit })
    }

    pub fn offset(self) -> usize {
        self.offset
    }

    pub fn limit(self) -> usize {
        self.limit
    }

    /// The page of a list that is there as a whole.
    pub fn cut<T>(self, all: impl IntoIterator<Item = T>) -> Page<T> {
        let mut all = all.into_iter();
        let before = all.by_ref().take(self.offset).count();
        let items: Vec<T> = all.by_ref().take(self.limit).collect();
        let total = before + items.len() + all.count();
        self.page(items, total)
    }

    /// The page with these rows of so many.
    pub fn page<T>(self, items: Vec<T>, total: usize) -> Page<T> {
        let end = self.offset.saturating_add(items.len());
        let next_cursor = (end < total && !items.is_empty()).then(|| format!("{CURSOR}{end}"));
        let limit = self.limit.max(1);
        Page { items, next_cursor, total_pages: total.div_ceil(limit), current_page: self.offset / limit + 1, total_items: total }
    }
}

/// How our cursors begin.
const CURSOR: &str = "from-";

/// A whole number from 1 on, as Python's SDK may write it.
fn number(text: &str) -> Option<usize> {
    let whole = match text.split_once('.') {
        Some((whole, rest)) if !rest.is_empty() && rest.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    whole.parse().ok().filter(|number| *number > 0)
}

/// The parts of a list that a query writes as one text with commas; empty ones mean nothing.
pub fn commas(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_everything_once() {
        let mut seen = Vec::new();
        let mut cursor: Option<String> = None;
        for number in 1.. {
            let page = Window::read(Some("20.0"), cursor.as_deref(), 50).unwrap().cut(0..45);
            assert_eq!((page.current_page, page.total_pages, page.total_items), (number, 3, 45));
            seen.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert!(seen.into_iter().eq(0..45));
    }

    #[test]
    fn a_large_limit_is_held_and_nonsense_refused() {
        assert_eq!(Window::read(Some("9999"), None, 500).unwrap().limit(), 500);
        assert_eq!(Window::read(None, Some(""), 500).unwrap().limit(), USUAL);
        for wrong in ["0", "-1", "x", "1.5", "1.", "1e3"] {
            assert_eq!(Window::read(Some(wrong), None, 500).unwrap_err().status, 400, "{wrong}");
        }
        for wrong in ["x", "from-", "from--1", "99"] {
            assert_eq!(Window::read(None, Some(wrong), 500).unwrap_err().status, 400, "{wrong}");
        }
        assert!(Window::read(None, Some("from-18446744073709551615"), 500).unwrap().cut(0..3).items.is_empty());
        assert_eq!(commas(Some("a, b,,c")), ["a", "b", "c"]);
        assert!(commas(None).is_empty());
    }
}
