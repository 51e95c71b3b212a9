//! Calls as they come, for as long as somebody looks.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use askama::Template;
use axum::extract::Query;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use http::HeaderMap;

use super::filters::Asked;
use super::list::{Row, RowPart};
use super::names::Names;
use super::{Answer, Call};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

const LOOK: Duration = Duration::from_secs(1);
/// A tail that nobody closes ends by itself; a browser that still shows it asks again.
const LONGEST: Duration = Duration::from_mins(10);
/// More in one second nobody can read; the list has them all.
const PAGE: usize = 100;

pub(super) async fn live(visit: Visit, Query(asked): Query<Asked>, headers: HeaderMap) -> PageResult {
    // A browser that comes back says what it got last.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let after = last.or_else(|| asked.after.clone()).filter(|id| !id.is_empty());
    let path = asked.filtered(Path::new("/tools/calls")).with("limit", PAGE);
    let names = Names::of_agents(&visit).await;
    let mut tail = Tail { visit, path, names, seen: Seen::default(), waiting: VecDeque::new(), ends: Instant::now() + LONGEST };
    // The first look comes before the answer begins, so that what is not allowed is refused and not asked for again.
    let page = tail.look().await?;
    let first = tail.seen.begin(page, after.as_deref());
    tail.queue(first);
    let events = stream::unfold(tail, |mut tail| async move { tail.next().await.map(|event| (Ok::<_, Infallible>(event), tail)) });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

/// What one browser is being told.
struct Tail {
    visit: Visit,
    path: Path,
    names: Names,
    seen: Seen,
    waiting: VecDeque<Event>,
    ends: Instant,
}

impl Tail {
    async fn look(&self) -> Result<Answer, Refusal> {
        self.visit.get(self.path.clone()).await
    }

    /// The next row, or nothing when the tail is over.
    async fn next(&mut self) -> Option<Event> {
        while self.waiting.is_empty() {
            if Instant::now() >= self.ends {
                return None;
            }
            tokio::time::sleep(LOOK).await;
            let page = self.look().await.ok()?;
            let fresh = self.seen.fresh(page.calls);
            self.queue(fresh);
        }
        self.waiting.pop_front()
    }

    fn queue(&mut self, calls: Vec<Call>) {
        let rows = calls.into_iter().map(|call| Row::new(&self.visit, &self.names, call));
        self.waiting.extend(rows.filter_map(|row| event(&row)));
    }
}

fn event(row: &Row) -> Option<Event> {
    let html = RowPart { row }.render().ok()?;
    let is_plain = row.id().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_plain.then(|| Event::default().event("row").id(row.id()).data(one_line(&html)))
}

/// An event is one line; breaks in a text stay in it as references.
fn one_line(html: &str) -> String {
    html.trim().replace('\r', "&#13;").replace('\n', "&#10;")
}

/// The calls of the last look and how they stood. Calls are listed by when they began, so one that took long turns up among older ones.
#[derive(Debug, Default)]
struct Seen {
    outcomes: BTreeMap<String, String>,
    /// Calls up to here are none of the tail's; ids grow with time.
    floor: String,
}

impl Seen {
    /// What the first look has to tell, the oldest first: whatever began after the newest call that is shown.
    fn begin(&mut self, page: Answer, after: Option<&str>) -> Vec<Call> {
        if page.cursor.is_some() {
            self.floor = page.calls.iter().map(|call| call.id.clone()).min().unwrap_or_default();
        }
        let calls = self.fresh(page.calls);
        calls.into_iter().filter(|call| after.is_some_and(|after| call.id.as_str() > after)).collect()
    }

    /// What is new or has ended since the last look, the oldest first.
    fn fresh(&mut self, calls: Vec<Call>) -> Vec<Call> {
        let outcomes = calls.iter().map(|call| (call.id.clone(), call.outcome.clone())).collect();
        let before = std::mem::replace(&mut self.outcomes, outcomes);
        let is_fresh = |call: &Call| before.get(&call.id).map_or(call.id > self.floor, |outcome| *outcome != call.outcome);
        calls.into_iter().rev().filter(is_fresh).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(all: &[(&str, &str)]) -> Vec<Call> {
        all.iter().map(|(id, outcome)| Call { id: (*id).to_owned(), outcome: (*outcome).to_owned(), ..Call::default() }).collect()
    }

    fn ids(calls: &[Call]) -> Vec<&str> {
        calls.iter().map(|call| call.id.as_str()).collect()
    }

    #[test]
    fn a_tail_tells_what_is_new_and_what_ended() {
        let mut seen = Seen::default();
        let page = Answer { calls: calls(&[("5", "running"), ("4", "ok"), ("3", "ok")]), cursor: Some("3".to_owned()) };
        assert_eq!(ids(&seen.begin(page, Some("4"))), ["5"]);
        // 6 is new, 5 has ended, 35 began early and is listed late; 2 is only there because the page reaches further down.
        let now = calls(&[("6", "ok"), ("5", "ok"), ("4", "ok"), ("35", "ok"), ("3", "ok"), ("2", "ok")]);
        assert_eq!(ids(&seen.fresh(now)), ["35", "5", "6"]);
        assert_eq!(seen.fresh(calls(&[("6", "ok")])).len(), 0);
    }

    #[test]
    fn without_a_last_call_only_later_ones_are_told() {
        let mut seen = Seen::default();
        assert!(seen.begin(Answer { calls: calls(&[("1", "ok")]), cursor: None }, None).is_empty());
        assert_eq!(ids(&seen.fresh(calls(&[("2", "ok"), ("1", "ok")]))), ["2"]);
    }

    #[test]
    fn a_row_is_one_line() {
        assert_eq!(one_line("<pre>a\r\nb</pre>\n"), "<pre>a&#13;&#10;b</pre>");
    }
}
