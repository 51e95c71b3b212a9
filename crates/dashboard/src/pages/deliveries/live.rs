//! Deliveries as they come and change, as server-sent events.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use askama::Template;
use axum::extract::Query;
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::DELIVERIES;
use super::filter::{Filter, chosen};
use super::list::PAGE;
use super::model::{DeliveriesAnswer, Delivery, Row};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const EVERY: Duration = Duration::from_secs(1);
/// The browser asks again after this, so that nobody watches for longer than they are signed in.
const LONGEST: Duration = Duration::from_mins(10);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LiveQuery {
    /// The newest change that the page shows already.
    from: Option<String>,
}

#[derive(Template)]
#[template(path = "delivery_row.html")]
struct RowPart {
    row: Row,
}

/// What was sent so far.
struct Tail {
    visit: Visit,
    asked: Value,
    from: Option<Timestamp>,
    /// How each delivery stood when it was last seen.
    seen: HashMap<String, String>,
    until: Instant,
}

impl Tail {
    async fn ask(&self) -> Result<Vec<Delivery>, Refusal> {
        let found: DeliveriesAnswer = self.visit.post(Path::new(DELIVERIES).at("query"), self.asked.clone()).await?;
        Ok(found.deliveries)
    }

    /// Those that are new or have changed, oldest first.
    fn changed(&mut self, deliveries: Vec<Delivery>) -> Vec<Delivery> {
        let from = self.from.take();
        let mut seen = HashMap::with_capacity(deliveries.len());
        let mut changed = Vec::new();
        for delivery in deliveries.into_iter().rev() {
            let now = format!("{} {} {}", delivery.state, delivery.attempts_count, delivery.updated_at);
            let is_shown = from.is_some_and(|from| delivery.updated_at.parse::<Timestamp>().is_ok_and(|at| at <= from));
            let is_known = self.seen.get(&delivery.id) == Some(&now);
            seen.insert(delivery.id.clone(), now);
            if !is_shown && !is_known {
                changed.push(delivery);
            }
        }
        self.seen = seen;
        changed
    }
}

pub(super) async fn live(visit: Visit, Query(filter): Query<Filter>, Query(query): Query<LiveQuery>) -> PageResult {
    let trigger = chosen(&visit, &filter).await?;
    let asked = json!({"delivery": filter.body(trigger.as_ref()), "windowing": {"limit": PAGE, "oldest": filter.since()}});
    let from = query.from.and_then(|from| from.parse().ok());
    let mut tail = Tail { visit, asked, from, seen: HashMap::new(), until: Instant::now() + LONGEST };
    // What is refused at first is refused as a page is; later it ends the stream.
    let found = tail.ask().await?;
    let changed = tail.changed(found);
    let first = rows(&tail.visit, changed);
    let later = stream::unfold(tail, |mut tail| async move {
        sleep(EVERY).await;
        if Instant::now() >= tail.until {
            return None;
        }
        let found = tail.ask().await.ok()?;
        let changed = tail.changed(found);
        Some((rows(&tail.visit, changed), tail))
    });
    let events = stream::iter([first]).chain(later).flat_map(stream::iter).map(Ok::<_, Infallible>);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

fn rows(visit: &Visit, deliveries: Vec<Delivery>) -> Vec<Event> {
    let parts = deliveries.into_iter().map(|delivery| RowPart { row: Row::new(visit, delivery) });
    parts.filter_map(|part| part.render().ok()).map(|html| Event::default().event("row").data(in_one_line(&html))).collect()
}

/// A row goes in one line of the stream.
fn in_one_line(html: &str) -> String {
    html.replace(['\n', '\r'], " ").trim().to_owned()
}
