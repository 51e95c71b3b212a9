//! Deliveries, newest first.

use askama::Template;
use axum::extract::Query;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::DELIVERIES;
use super::filter::{Choice, Filter, STATES, choices};
use super::model::{DeliveriesAnswer, Row};
use crate::frame::{Frame, Section, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

pub(super) const PAGE: usize = 50;

/// What the address holds besides the filter.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListQuery {
    cursor: Option<String>,
    live: Option<String>,
    /// How many a replay runs again.
    replayed: Option<String>,
}

#[derive(Template)]
#[template(path = "deliveries.html")]
struct ListPage {
    frame: Frame,
    here: String,
    tabs: Vec<(&'static str, String, bool)>,
    filter: Filter,
    triggers: Vec<Choice>,
    rows: Vec<Row>,
    next: Option<String>,
    /// Where rows come from while the list is live.
    live: Option<String>,
    go_live: String,
    stop_live: String,
    replay: Option<String>,
    is_filtered: bool,
}

pub(super) async fn list(visit: Visit, Query(filter): Query<Filter>, Query(query): Query<ListQuery>) -> PageResult {
    let (triggers, chosen) = choices(&visit, &filter).await?;
    let cursor = query.cursor.as_deref().filter(|cursor| !cursor.is_empty());
    let asked = json!({"delivery": filter.body(chosen.as_ref()), "windowing": {"limit": PAGE, "next": cursor, "oldest": filter.since()}});
    let found: Result<DeliveriesAnswer, Refusal> = visit.post(Path::new(DELIVERIES).at("query"), asked).await;
    let refusal = found.as_ref().err().cloned();
    let found = found.unwrap_or(DeliveriesAnswer { deliveries: Vec::new(), cursor: None });

    let page = visit.page("deliveries");
    let is_live = query.live.as_deref() == Some("1") && cursor.is_none() && refusal.is_none();
    let from = found.deliveries.iter().filter_map(|delivery| delivery.updated_at.parse::<Timestamp>().ok()).max();
    let tabs = std::iter::once(("all", None)).chain(STATES.map(|state| (state, Some(state)))).map(|(label, state)| {
        let href = filter.with_status(state).on(page.clone()).into();
        (label, href, filter.status() == state)
    });
    let is_dead = filter.status() == Some("dead");
    let mut frame = Frame::new(&visit, Section::Deliveries, "Deliveries").refused(refusal.as_ref());
    frame.told = query.replayed.as_deref().and_then(replayed);
    let page = ListPage {
        frame,
        tabs: tabs.collect(),
        next: found.cursor.map(|cursor| filter.on(page.clone()).with("cursor", cursor).into()),
        live: is_live.then(|| filter.on(page.clone().at("live")).with_some("from", from).into()),
        go_live: filter.on(page.clone()).with("live", 1).into(),
        stop_live: filter.on(page.clone()).into(),
        replay: (is_dead && visit.may("edit_triggers") && !found.deliveries.is_empty())
            .then(|| filter.with_status(None).on(page.clone().at("replay")).into()),
        rows: found.deliveries.into_iter().map(|delivery| Row::new(&visit, delivery)).collect(),
        is_filtered: filter.trigger().or(filter.code()).or(filter.since()).or(filter.event()).is_some(),
        here: page.into(),
        triggers,
        filter,
    };
    show_refused(refusal.as_ref(), &page)
}

/// What a replay came to. Only a number can be said by an address.
fn replayed(count: &str) -> Option<String> {
    match count.parse::<u64>().ok()? {
        0 => Some("Nothing that failed for good fits any more.".to_owned()),
        1 => Some("1 delivery is run again.".to_owned()),
        count => Some(format!("{count} deliveries are run again.")),
    }
}

#[cfg(test)]
mod tests {
    use super::replayed;

    #[test]
    fn an_address_can_only_say_a_number() {
        assert_eq!(replayed("2").as_deref(), Some("2 deliveries are run again."));
        assert_eq!(replayed("a lot"), None);
    }
}
