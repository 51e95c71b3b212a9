//! How long arguments and results of calls are kept.

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Tab, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show_refused};
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

const API: &str = "/tools/calls/keeping";
const TOLD: [(&str, &str); 1] = [("saved", "Saved. It holds for calls from now on.")];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/{project}/settings/keeping", get(one).post(save))
}

#[derive(Debug, Deserialize)]
struct Keeping {
    days: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "setting_keeping.html")]
struct OnePage {
    frame: Frame,
    tabs: Vec<Link>,
    here: String,
    days: i64,
    typed: String,
    may_edit: bool,
}

async fn one(visit: Visit, Query(query): Query<PageQuery>) -> PageResult {
    show_one(&visit, query.told.as_deref(), None, None).await
}

async fn show_one(visit: &Visit, told: Option<&str>, refusal: Option<&Refusal>, typed: Option<&str>) -> PageResult {
    let keeping: Keeping = match visit.get(API).await {
        Ok(keeping) => keeping,
        Err(unseen) => return show_refused_tab(visit, Tab::Keeping, refusal.unwrap_or(&unseen)),
    };
    let page = OnePage {
        frame: Tab::Keeping.frame(visit).told(told, &TOLD).refused(refusal),
        tabs: Tab::Keeping.links(visit),
        here: Tab::Keeping.here(visit).into(),
        days: keeping.days,
        typed: typed.map_or_else(|| keeping.days.to_string(), str::to_owned),
        may_edit: visit.may("edit_tools"),
    };
    show_refused(refusal, &page)
}

async fn save(visit: Visit, form: Form) -> PageResult {
    let saved = match form.text("days").parse::<i64>() {
        Ok(days) => visit.put::<Value>(API, json!({"days": days})).await,
        Err(_) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "Write the days as a whole number.")),
    };
    match saved {
        Ok(_) => see_other(Tab::Keeping.here(&visit).with("told", "saved")),
        Err(refusal) => show_one(&visit, None, Some(&refusal), Some(form.text("days"))).await,
    }
}
