//! How long arguments and results of calls are kept, and how long the records of the project.

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::{get, post};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Tab, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show_refused};
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

const API: &str = "/tools/calls/keeping";
const RETENTION: &str = "/project/retention";
const TOLD: [(&str, &str); 2] =
    [("saved", "Saved. It holds for calls from now on."), ("retention", "Saved. What is older is dropped within minutes.")];
/// The fields of the records, and what they are called.
const RECORDS: [(&str, &str); 3] = [("run_days", "Workflow runs"), ("call_days", "Calls"), ("approval_days", "Approvals")];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/{project}/settings/keeping", get(one).post(save)).route("/{project}/settings/retention", post(save_retention))
}

#[derive(Debug, Deserialize)]
struct Keeping {
    days: i64,
}

#[derive(Debug, Deserialize)]
struct Retention {
    retention: Map<String, Value>,
    deployment: Map<String, Value>,
}

/// For how long records of a kind are kept.
#[derive(Debug)]
struct Record {
    field: &'static str,
    label: &'static str,
    typed: String,
    /// The project's own word.
    days: Option<u64>,
    longest: u64,
}

/// What a form says, or nothing where none was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent<'a> {
    keeping: Option<&'a Form>,
    retention: Option<&'a Form>,
}

impl Retention {
    fn records(&self, sent: Option<&Form>) -> Vec<Record> {
        let days = |held: &Map<String, Value>, field: &str| held.get(field).and_then(Value::as_u64);
        let record = |(field, label): (&'static str, &'static str)| {
            let own = days(&self.retention, field);
            let kept = || own.map(|days| days.to_string()).unwrap_or_default();
            let typed = sent.map_or_else(kept, |form| form.text(field).to_owned());
            Record { field, label, typed, days: own, longest: days(&self.deployment, field).unwrap_or_default() }
        };
        RECORDS.into_iter().map(record).collect()
    }
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
    retention_here: String,
    records: Vec<Record>,
    may_decide: bool,
}

async fn one(visit: Visit, Query(query): Query<PageQuery>) -> PageResult {
    show_one(&visit, query.told.as_deref(), None, Sent::default()).await
}

async fn show_one(visit: &Visit, told: Option<&str>, refusal: Option<&Refusal>, sent: Sent<'_>) -> PageResult {
    let (keeping, retention): (Keeping, Retention) = match tokio::try_join!(visit.get(API), visit.get(RETENTION)) {
        Ok(both) => both,
        Err(unseen) => return show_refused_tab(visit, Tab::Keeping, refusal.unwrap_or(&unseen)),
    };
    let page = OnePage {
        frame: Tab::Keeping.frame(visit).told(told, &TOLD).refused(refusal),
        tabs: Tab::Keeping.links(visit),
        here: Tab::Keeping.here(visit).into(),
        days: keeping.days,
        typed: sent.keeping.map_or_else(|| keeping.days.to_string(), |form| form.text("days").to_owned()),
        may_edit: visit.may("edit_tools"),
        retention_here: visit.page("settings").at("retention").into(),
        records: retention.records(sent.retention),
        may_decide: visit.may("edit_members"),
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
        Err(refusal) => show_one(&visit, None, Some(&refusal), Sent { keeping: Some(&form), ..Sent::default() }).await,
    }
}

async fn save_retention(visit: Visit, form: Form) -> PageResult {
    let days = |(field, label): (&str, &str)| match form.some(field).map(str::parse::<u32>) {
        None => Ok((field.to_owned(), Value::Null)),
        Some(Ok(days)) => Ok((field.to_owned(), days.into())),
        Some(Err(_)) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{label}: write the days as a whole number."))),
    };
    let saved = match RECORDS.into_iter().map(days).collect::<Result<Map<_, _>, _>>() {
        Ok(wanted) => visit.put::<Value>(RETENTION, Value::Object(wanted)).await,
        Err(refusal) => Err(refusal),
    };
    match saved {
        Ok(_) => see_other(Tab::Keeping.here(&visit).with("told", "retention")),
        Err(refusal) => show_one(&visit, None, Some(&refusal), Sent { retention: Some(&form), ..Sent::default() }).await,
    }
}
