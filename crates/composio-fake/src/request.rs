//! What a request says: its query, its page, its body.

use axum::extract::{FromRequest, FromRequestParts, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;

const DEFAULT_LIMIT: usize = 20;

/// The pairs of the query string, in order.
#[derive(Debug, Clone)]
pub(crate) struct QueryString(pub(crate) Vec<(String, String)>);

impl QueryString {
    pub(crate) fn of(query: Option<&str>) -> Self {
        Self(url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.one(name) == Some("true")
    }

    /// All values of a list, however the client writes lists: `a=1&a=2`, `a=1,2`, `a[]=1` or `a[0]=1`.
    pub(crate) fn many(&self, name: &str) -> Vec<&str> {
        let named =
            |key: &str| key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || (rest.starts_with('[') && rest.ends_with(']')));
        self.0.iter().filter(|(key, _)| named(key)).flat_map(|(_, value)| value.split(',')).filter(|value| !value.is_empty()).collect()
    }

    /// The page that is asked for, of at most `cap` items.
    pub(crate) fn page(&self, cap: usize) -> Result<Page, Refusal> {
        if let Some(cursor) = self.one("cursor") {
            return Page::read(cursor, cap).ok_or_else(|| Refusal::invalid("The cursor is not one of ours"));
        }
        let limit = match self.one("limit") {
            None => DEFAULT_LIMIT,
            Some(limit) => {
                limit.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| Refusal::invalid("limit must be a whole number from 1"))?
            }
        };
        Ok(Page { number: 1, limit: limit.min(cap) })
    }
}

impl<S: Sync> FromRequestParts<S> for QueryString {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Ok(Self::of(parts.uri.query()))
    }
}

/// One page of a list; its cursor is the base64 of number and limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    number: usize,
    limit: usize,
}

impl Page {
    fn read(cursor: &str, cap: usize) -> Option<Self> {
        let text = String::from_utf8(STANDARD.decode(cursor).ok()?).ok()?;
        let (number, limit) = text.split_once('-')?;
        let page = Self { number: number.parse().ok()?, limit: limit.parse().ok()? };
        (page.number > 0 && (1..=cap).contains(&page.limit)).then_some(page)
    }

    fn next(self) -> String {
        STANDARD.encode(format!("{}-{}", self.number + 1, self.limit))
    }

    /// Cuts this page out of everything and writes only what is on it.
    pub(crate) fn cut<T, W>(self, all: Vec<T>, write: impl FnMut(T) -> W) -> Paged<W> {
        let total_items = all.len();
        let total_pages = total_items.div_ceil(self.limit);
        Paged {
            items: all.into_iter().skip((self.number - 1).saturating_mul(self.limit)).take(self.limit).map(write).collect(),
            next_cursor: (self.number < total_pages).then(|| self.next()),
            total_pages,
            current_page: self.number,
            total_items,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Paged<W> {
    items: Vec<W>,
    next_cursor: Option<String>,
    total_pages: usize,
    current_page: usize,
    total_items: usize,
}

/// A JSON body; none counts as an empty object.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Sync + Send, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.map_err(|error| Refusal::invalid(error.to_string()))?;
        let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
        serde_json::from_slice(body).map(Self).map_err(|error| Refusal::invalid(format!("The body is not as expected: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_their_cursors_to_the_end() {
        let mut seen = vec![];
        let mut query = "limit=3".to_owned();
        loop {
            let page = QueryString::of(Some(&query)).page(50).unwrap().cut((0..7).collect(), |number: u32| number);
            seen.extend(page.items);
            assert_eq!((page.total_items, page.total_pages), (7, 3));
            let Some(cursor) = page.next_cursor else { break };
            query = url::form_urlencoded::Serializer::new(String::new()).append_pair("cursor", &cursor).finish();
        }
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn limits_are_capped_and_nonsense_is_refused() {
        assert_eq!(QueryString::of(Some("limit=9999")).page(50).unwrap().limit, 50);
        for query in ["limit=0", "limit=-1", "limit=x", "cursor=x", "cursor=MC0w", "cursor=MS05OTk5"] {
            assert!(QueryString::of(Some(query)).page(50).is_err(), "{query}");
        }
    }

    #[test]
    fn lists_are_read_however_they_are_written() {
        for query in ["a=1&a=2", "a=1,2", "a[]=1&a[]=2", "a%5B0%5D=1&a%5B1%5D=2"] {
            assert_eq!(QueryString::of(Some(query)).many("a"), ["1", "2"], "{query}");
        }
        assert!(QueryString::of(Some("ab=1")).many("a").is_empty());
    }
}
