//! What is new in a list that is asked for again and again. Pure.

use std::cmp::Ordering;
use std::collections::HashSet;

use jiff::Timestamp;
use kernel::json::plain_text;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use triggers::{Polled, PolledItem};
use url::Url;

use crate::manifest::{Pages, Pointers, Poll, Since};
use crate::webhook::stored_id;

/// How many ids are remembered beyond those that are in the list right now.
const MAX_SEEN: usize = 500;

/// How a reply is read.
#[derive(Debug)]
pub(crate) struct PollReader {
    items: String,
    id: Pointers,
    since: Option<Since>,
    pages: Option<Pages>,
    /// Numbers in the request that may be the size of a page.
    sizes: Vec<usize>,
}

/// What a poll leaves behind for the next one.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Cursor {
    /// The newest value seen, which the next request asks from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Value>,
    /// Ids of items that are known, the latest first.
    seen: Vec<String>,
    /// Whether every page was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    whole: bool,
}

struct Found<'a> {
    id: String,
    since: Option<&'a Value>,
    payload: &'a Value,
}

impl PollReader {
    pub(crate) fn new(poll: &Poll) -> Self {
        let query = poll.query.values().map(ToString::to_string);
        let texts: Vec<String> = query.chain(poll.body.as_ref().map(Value::to_string)).chain(poll.graphql.clone()).collect();
        let numbers = texts.iter().flat_map(|text| text.split(|letter: char| !letter.is_ascii_digit()));
        let sizes = numbers.filter_map(|number| number.parse().ok()).filter(|size| *size > 1).collect();
        Self { items: poll.items.clone(), id: poll.id.clone(), since: poll.since.clone(), pages: poll.pages.clone(), sizes }
    }

    /// The argument of a request that goes on from a cursor.
    pub(crate) fn since(&self, cursor: Option<&Value>) -> Option<(String, Value)> {
        let since = self.since.as_ref()?;
        Some((since.param.clone(), cursor?.get("since").filter(|value| !value.is_null())?.clone()))
    }

    /// Whether the request says how long a page is.
    pub(crate) fn knows_size(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// Whether a first reply may leave something out that a second request would bring.
    pub(crate) fn goes_on(&self) -> bool {
        self.since.is_some()
    }

    /// The argument that asks for the page after this one, which was the `number`th; nothing when it was the last.
    pub(crate) fn next_page(&self, reply: &Value, number: u64, before: usize) -> Option<(String, Value)> {
        let listed = list(reply, &self.items).ok()?.len();
        let is_full = self.sizes.contains(&listed);
        let next = match self.pages.as_ref()? {
            Pages::Page { first, .. } => is_full.then(|| json!(first + number)),
            Pages::Offset { .. } => is_full.then(|| json!(before + listed)),
            Pages::Cursor { param, next } => {
                let said = reply.pointer(next).and_then(plain_text).filter(|said| !said.is_empty())?;
                Some(json!(within_address(&said, param).unwrap_or(said)))
            }
        };
        Some((self.pages.as_ref()?.param().to_owned(), next?))
    }

    /// The list in a reply. The error is for people.
    pub(crate) fn list<'a>(&self, reply: &'a Value) -> Result<&'a [Value], String> {
        list(reply, &self.items)
    }

    /// What is in the list and was not there before. The error is for people.
    pub(crate) fn read(&self, listed: &[Value], cursor: Option<&Value>) -> Result<Polled, String> {
        let known = cursor.and_then(|cursor| Cursor::deserialize(cursor).ok());
        // What was read before by its first page alone is begun anew: the other pages are history.
        let known = known.filter(|known| known.whole || self.pages.is_none());
        let found: Vec<Found<'_>> = listed.iter().filter_map(|item| self.find(item)).collect();
        if found.is_empty() && !listed.is_empty() && listed.iter().all(|item| !item.is_object() && !item.is_array()) {
            return Err(format!("the list at `{}` holds no things but values", self.items));
        }
        let items = known.as_ref().map_or_else(Vec::new, |known| self.fresh(&found, known, listed.len()));
        let cursor = json!(Cursor { whole: self.pages.is_some(), ..known.unwrap_or_default().advance(&found) });
        Ok(Polled { items, cursor })
    }

    /// An item that says who it is; others are not of this event.
    fn find<'a>(&self, item: &'a Value) -> Option<Found<'a>> {
        let parts = self.id.as_slice().iter().map(|pointer| item.pointer(pointer).and_then(plain_text));
        let id = parts.collect::<Option<Vec<_>>>()?.join(":");
        let since = self.since.as_ref().and_then(|since| item.pointer(&since.from)).filter(|value| plain_text(value).is_some());
        Some(Found { id: stored_id(id), since, payload: item })
    }

    /// The items that are new, oldest first. A list without times is taken as newest first, as lists of what is new mostly are.
    fn fresh(&self, found: &[Found<'_>], known: &Cursor, listed: usize) -> Vec<PolledItem> {
        let seen: HashSet<&str> = known.seen.iter().map(String::as_str).collect();
        let is_cut = self.since.is_none() && self.pages.is_none() && self.sizes.contains(&listed);
        let end = if is_cut { past(found, &seen) } else { found.len() };
        let mut taken = HashSet::new();
        let mut fresh: Vec<&Found<'_>> =
            found[..end].iter().filter(|item| !seen.contains(item.id.as_str()) && taken.insert(item.id.as_str())).collect();
        fresh.reverse();
        fresh.sort_by(|a, b| compare(a.since, b.since));
        fresh.into_iter().map(|item| PolledItem { id: item.id.clone(), payload: item.payload.clone() }).collect()
    }
}

/// Where history begins in a full page: when something above is removed, older items move up at its end, and they are not new.
fn past(found: &[Found<'_>], seen: &HashSet<&str>) -> usize {
    found.iter().rposition(|item| seen.contains(item.id.as_str())).map_or(found.len(), |last| last + 1)
}

impl Cursor {
    fn advance(self, found: &[Found<'_>]) -> Self {
        let since = found.iter().filter_map(|item| item.since).chain(&self.since).max_by(|a, b| compare(Some(a), Some(b))).cloned();
        let mut taken = HashSet::new();
        let mut seen: Vec<String> = found.iter().map(|item| item.id.clone()).filter(|id| taken.insert(id.clone())).collect();
        let room = MAX_SEEN.saturating_sub(seen.len());
        seen.extend(self.seen.into_iter().filter(|id| !taken.contains(id)).take(room));
        Self { since, seen, whole: self.whole }
    }
}

/// The list in a reply. Some services leave an empty one out, or say null.
fn list<'a>(reply: &'a Value, pointer: &str) -> Result<&'a [Value], String> {
    match reply.pointer(pointer) {
        Some(Value::Array(items)) => Ok(items),
        Some(Value::Null) if !pointer.is_empty() => Ok(&[]),
        None if pointer.rsplit_once('/').and_then(|(parent, _)| reply.pointer(parent)).is_some_and(Value::is_object) => Ok(&[]),
        _ => Err(format!("the answer has no list at `{pointer}`")),
    }
}

/// The value of a parameter in the query of an address.
fn within_address(text: &str, param: &str) -> Option<String> {
    let address: Url = text.parse().ok()?;
    address.query_pairs().find(|(name, _)| name == param).map(|(_, value)| value.into_owned())
}

/// Orders numbers by size, times by time and other texts by letter; nothing comes first.
fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    let (Some(a), Some(b)) = (a.and_then(plain_text), b.and_then(plain_text)) else { return a.is_some().cmp(&b.is_some()) };
    if let (Some(a), Some(b)) = (decimal(&a), decimal(&b)) {
        return a.cmp(&b);
    }
    if let (Ok(a), Ok(b)) = (a.parse::<Timestamp>(), b.parse::<Timestamp>()) {
        return a.cmp(&b);
    }
    a.cmp(&b)
}

/// A decimal number so that it can be compared whatever its length: ids of messages are longer than what a float can hold.
fn decimal(text: &str) -> Option<(usize, &str, &str)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = (!whole.is_empty() && digits(whole) && digits(fraction)).then(|| whole.trim_start_matches('0'))?;
    Some((whole.len(), whole, fraction.trim_end_matches('0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(poll: Value) -> PollReader {
        let mut spec = json!({"request": "GET /things", "items": "/things", "id": "/id"});
        spec.as_object_mut().unwrap().extend(poll.as_object().unwrap().clone());
        PollReader::new(&serde_json::from_value(spec).unwrap())
    }

    fn things(ids: &[&str]) -> Value {
        json!({"things": ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>()})
    }

    fn timed(pairs: &[(&str, Value)]) -> Value {
        json!({"things": pairs.iter().map(|(id, at)| json!({"id": id, "at": at})).collect::<Vec<_>>()})
    }

    fn read(reading: &PollReader, reply: &Value, cursor: Option<&Value>) -> Result<Polled, String> {
        reading.read(reading.list(reply)?, cursor)
    }

    fn ids(polled: &Polled) -> Vec<&str> {
        polled.items.iter().map(|item| item.id.as_str()).collect()
    }

    #[test]
    fn what_was_there_is_not_new() {
        let reading = reading(json!({}));
        let first = read(&reading, &things(&["b", "a"]), None).unwrap();
        assert_eq!(first, Polled { items: vec![], cursor: json!({"seen": ["b", "a"]}) });
        let second = read(&reading, &things(&["d", "c", "b", "a"]), Some(&first.cursor)).unwrap();
        assert_eq!(ids(&second), ["c", "d"]);
        assert_eq!(second.items[0].payload, json!({"id": "c"}));
        let third = read(&reading, &things(&["d", "c", "b", "a"]), Some(&second.cursor)).unwrap();
        assert_eq!(ids(&third), [""; 0]);
        assert_eq!(third.cursor, second.cursor);
    }

    #[test]
    fn the_first_item_of_an_empty_list_is_new() {
        let reading = reading(json!({}));
        for nothing in [things(&[]), json!({}), json!({"things": null})] {
            let first = read(&reading, &nothing, None).unwrap();
            let second = read(&reading, &things(&["a"]), Some(&first.cursor)).unwrap();
            assert_eq!(ids(&second), ["a"]);
        }
    }

    #[test]
    fn an_item_that_comes_back_is_known() {
        let reading = reading(json!({}));
        let mut cursor = read(&reading, &things(&["a"]), None).unwrap().cursor;
        cursor = read(&reading, &things(&[]), Some(&cursor)).unwrap().cursor;
        assert_eq!(ids(&read(&reading, &things(&["a"]), Some(&cursor)).unwrap()), [""; 0]);
    }

    #[test]
    fn the_memory_is_bounded_but_holds_the_whole_list() {
        let reading = reading(json!({}));
        let names: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let cursor = read(&reading, &things(&all), None).unwrap().cursor;
        assert_eq!(ids(&read(&reading, &things(&all), Some(&cursor)).unwrap()), [""; 0]);
        let cursor = read(&reading, &things(&["new"]), Some(&cursor)).unwrap().cursor;
        assert_eq!(cursor["seen"].as_array().unwrap().len(), MAX_SEEN);
    }

    #[test]
    fn history_that_moves_up_in_a_full_page_is_not_new() {
        let reading = reading(json!({"query": {"limit": 3}}));
        let first = read(&reading, &things(&["d", "c", "b"]), None).unwrap();
        let removed = read(&reading, &things(&["d", "b", "a"]), Some(&first.cursor)).unwrap();
        assert_eq!(ids(&removed), [""; 0]);
        let both = read(&reading, &things(&["e", "d", "a"]), Some(&removed.cursor)).unwrap();
        assert_eq!(ids(&both), ["e"]);
        let rush = read(&reading, &things(&["h", "g", "f"]), Some(&both.cursor)).unwrap();
        assert_eq!(ids(&rush), ["f", "g", "h"]);
        let short = read(&reading, &things(&["h", "z"]), Some(&rush.cursor)).unwrap();
        assert_eq!(ids(&short), ["z"], "a list that is not full and grows at its end");
    }

    #[test]
    fn several_at_the_same_time_are_told_apart() {
        let reading = reading(json!({"since": {"param": "after", "from": "/at"}}));
        let first = read(&reading, &timed(&[("b", json!(10)), ("a", json!(9))]), None).unwrap();
        assert_eq!(reading.since(None), None);
        assert_eq!(reading.since(Some(&first.cursor)), Some(("after".to_owned(), json!(10))));
        let second = read(&reading, &timed(&[("b", json!(10)), ("c", json!(10))]), Some(&first.cursor)).unwrap();
        assert_eq!(ids(&second), ["c"]);
        let third = read(&reading, &timed(&[("c", json!(10)), ("d", json!(11)), ("e", json!(10))]), Some(&second.cursor)).unwrap();
        assert_eq!(ids(&third), ["e", "d"]);
        assert_eq!(third.cursor["since"], 11);
        let fourth = read(&reading, &timed(&[]), Some(&third.cursor)).unwrap();
        assert_eq!(fourth.cursor["since"], 11);
    }

    #[test]
    fn times_and_numbers_are_ordered_by_what_they_mean() {
        for (smaller, larger) in [
            (json!(9), json!(10)),
            (json!("9"), json!("10")),
            (json!("1099511627776000000"), json!("1099511627776000001")),
            (json!("1700000000.000009"), json!("1700000000.00001")),
            (json!("2026-01-01T00:00:00Z"), json!("2026-01-01T00:00:00.5Z")),
            (json!("2026-01-01T01:00:00+02:00"), json!("2026-01-01T00:00:00Z")),
            (json!("abc"), json!("abd")),
        ] {
            assert_eq!(compare(Some(&smaller), Some(&larger)), Ordering::Less, "{smaller} {larger}");
            assert_eq!(compare(None, Some(&smaller)), Ordering::Less);
        }
    }

    #[test]
    fn the_next_page_is_asked_for_until_there_is_none() {
        let next = |pages: Value, reply: Value, number, before| {
            reading(json!({"query": {"limit": 2}, "pages": pages})).next_page(&reply, number, before)
        };
        let (full, short) = (things(&["a", "b"]), things(&["a"]));
        let page = json!({"style": "page", "param": "page"});
        assert_eq!(next(page.clone(), full.clone(), 1, 0), Some(("page".to_owned(), json!(2))));
        assert_eq!(next(page, short.clone(), 2, 2), None);
        let from_zero = json!({"style": "page", "param": "page", "first": 0});
        assert_eq!(next(from_zero, full.clone(), 1, 0), Some(("page".to_owned(), json!(1))));
        assert_eq!(next(json!({"style": "offset", "param": "skip"}), full.clone(), 2, 2), Some(("skip".to_owned(), json!(4))));
        let cursor = json!({"style": "cursor", "param": "$after", "next": "/next"});
        for (said, expected) in [
            (json!("c-2"), Some("c-2")),
            (json!("https://example.com/things?limit=2&$after=c%203"), Some("c 3")),
            (json!(""), None),
            (json!(null), None),
        ] {
            let mut reply = short.clone();
            reply["next"] = said;
            assert_eq!(next(cursor.clone(), reply, 1, 0), expected.map(|value| ("$after".to_owned(), json!(value))));
        }
    }

    #[test]
    fn a_list_that_was_read_by_its_first_page_begins_anew() {
        let pages = json!({"query": {"limit": 2}, "pages": {"style": "page", "param": "page"}});
        let old = read(&reading(json!({"query": {"limit": 2}})), &things(&["a", "b"]), None).unwrap();
        let reading = reading(pages);
        let first = read(&reading, &things(&["a", "b", "c"]), Some(&old.cursor)).unwrap();
        assert_eq!((ids(&first), &first.cursor), (vec![], &json!({"seen": ["a", "b", "c"], "whole": true})));
        let grown = read(&reading, &things(&["a", "b", "c", "d"]), Some(&first.cursor)).unwrap();
        assert_eq!(ids(&grown), ["d"]);
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        let reading = reading(json!({"items": "/data/things"}));
        for reply in [json!({"data": {"things": "x"}}), json!({"data": {"things": {}}}), json!({}), json!("text"), json!({"data": []})] {
            assert!(read(&reading, &reply, None).is_err(), "{reply}");
        }
        assert!(read(&reading, &json!({"data": {"things": ["x"]}}), None).is_err());
        let whole = self::reading(json!({"items": ""}));
        assert!(read(&whole, &json!({}), None).is_err());
        assert!(read(&whole, &json!(null), None).is_err());
        assert!(read(&whole, &json!([]), None).is_ok());
    }

    #[test]
    fn several_values_may_make_an_id() {
        let reading = reading(json!({"id": ["/id", "/at"]}));
        let first = read(&reading, &timed(&[("a", json!(1)), ("b", json!(1))]), None).unwrap();
        assert_eq!(first.cursor["seen"], json!(["a:1", "b:1"]));
        let second = read(&reading, &timed(&[("a", json!(1)), ("b", json!(2))]), Some(&first.cursor)).unwrap();
        assert_eq!(ids(&second), ["b:2"]);
    }

    #[test]
    fn items_without_an_id_are_left_out() {
        let reading = reading(json!({"id": "/rev"}));
        let first = read(&reading, &json!({"things": [{"folder": true}]}), None).unwrap();
        let second = read(&reading, &json!({"things": [{"folder": true}, {"rev": 7}]}), Some(&first.cursor)).unwrap();
        assert_eq!(ids(&second), ["7"]);
    }
}
