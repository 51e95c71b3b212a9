//! Running again everything that failed for good and fits.

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use serde_json::{Value, json};

use super::DELIVERIES;
use super::filter::{Choice, Filter, chosen};
use super::model::{DeliveriesAnswer, Row};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

/// So many are counted; more are said to be more.
const COUNTED: usize = 1000;
/// So many are shown.
const SHOWN: usize = 10;

#[derive(Debug, Deserialize)]
struct ReplayAnswer {
    count: u64,
}

#[derive(Template)]
#[template(path = "delivery_replay.html")]
struct AskPage {
    frame: Frame,
    here: String,
    back: String,
    filter: Filter,
    words: Vec<(&'static str, String)>,
    count: String,
    is_empty: bool,
    rows: Vec<Row>,
}

pub(super) async fn ask(visit: Visit, Query(filter): Query<Filter>) -> PageResult {
    let chosen = chosen(&visit, &filter).await?;
    show_ask(&visit, filter, chosen.as_ref(), None).await
}

fn asked(filter: &Filter, chosen: Option<&Choice>) -> Value {
    json!({"delivery": filter.with_status(Some("dead")).body(chosen), "windowing": {"limit": COUNTED, "oldest": filter.since()}})
}

async fn show_ask(visit: &Visit, filter: Filter, chosen: Option<&Choice>, refusal: Option<&Refusal>) -> PageResult {
    let found: DeliveriesAnswer = visit.post(Path::new(DELIVERIES).at("query"), asked(&filter, chosen)).await?;
    let deliveries = visit.page("deliveries");
    let page = AskPage {
        frame: Frame::new(visit, Section::Deliveries, "Run again what failed").refused(refusal),
        here: deliveries.clone().at("replay").into(),
        back: filter.with_status(Some("dead")).on(deliveries).into(),
        words: filter.words(chosen),
        count: counted(found.deliveries.len(), found.cursor.is_some()),
        is_empty: found.deliveries.is_empty(),
        rows: found.deliveries.into_iter().take(SHOWN).map(|delivery| Row::new(visit, delivery)).collect(),
        filter,
    };
    show_refused(refusal, &page)
}

fn counted(count: usize, has_more: bool) -> String {
    match count {
        _ if has_more => format!("{count} deliveries or more are"),
        1 => "1 delivery is".to_owned(),
        count => format!("{count} deliveries are"),
    }
}

pub(super) async fn replay(visit: Visit, form: Form) -> PageResult {
    let field = |name: &str| form.some(name).map(str::to_owned);
    let filter = Filter { status: None, trigger: field("trigger"), code: field("code"), since: field("since"), event: field("event") };
    let chosen = chosen(&visit, &filter).await?;
    match visit.post::<ReplayAnswer>(Path::new(DELIVERIES).at("replay"), asked(&filter, chosen.as_ref())).await {
        Ok(done) => see_other(filter.on(visit.page("deliveries")).with("replayed", done.count)),
        Err(refusal) => show_ask(&visit, filter, chosen.as_ref(), Some(&refusal)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn counts_are_honest() {
        assert_eq!(
            [counted(1, false), counted(3, false), counted(1000, true)],
            ["1 delivery is", "3 deliveries are", "1000 deliveries or more are"]
        );
    }
}
