//! Phrases that discovery learned from calls that went well.

use askama::Template;
use axum::Router;
use axum::extract::{Path as Segments, Query};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Tab, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const API: &str = "/tools/discover/learned";
const TOLD: [(&str, &str); 4] = [
    ("forgotten", "Forgotten."),
    ("cleared", "Everything that was learned is forgotten."),
    ("on", "The project learns from calls."),
    ("off", "The project learns nothing, and what it learned is not looked at."),
];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/settings/learned", get(list).post(switch))
        .route("/{project}/settings/learned/clear", post(clear))
        .route("/{project}/settings/learned/{phrase}/forget", post(forget))
}

#[derive(Debug, Deserialize)]
struct Learned {
    learns: bool,
    use_cases: Vec<Phrase>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Phrase {
    id: String,
    use_case: String,
    integration: String,
    action: String,
    uses: i64,
    used_at: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    told: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "setting_learned.html")]
struct ListPage {
    frame: Frame,
    tabs: Vec<Link>,
    here: String,
    learned: Learned,
    next: Option<String>,
    may_edit: bool,
}

async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    show_list(&visit, &query, None).await
}

async fn show_list(visit: &Visit, query: &ListQuery, refusal: Option<&Refusal>) -> PageResult {
    let mut learned: Learned = match visit.get(Path::new(API).with_some("cursor", query.cursor.as_deref())).await {
        Ok(learned) => learned,
        Err(unseen) => return show_refused_tab(visit, Tab::Learned, refusal.unwrap_or(&unseen)),
    };
    let here = Tab::Learned.here(visit);
    let page = ListPage {
        frame: Tab::Learned.frame(visit).told(query.told.as_deref(), &TOLD).refused(refusal),
        tabs: Tab::Learned.links(visit),
        next: learned.cursor.take().map(|cursor| here.clone().with("cursor", cursor).into()),
        here: here.into(),
        learned,
        may_edit: visit.may("edit_tools"),
    };
    show_refused(refusal, &page)
}

async fn switch(visit: Visit, form: Form) -> PageResult {
    let learns = form.text("learns") == "on";
    let switched = visit.put::<Value>(API, json!({"learns": learns})).await;
    after(&visit, switched.map(drop), if learns { "on" } else { "off" }).await
}

async fn clear(visit: Visit) -> PageResult {
    let cleared = visit.delete(API).await;
    after(&visit, cleared, "cleared").await
}

async fn forget(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let forgotten = visit.delete(Path::new(API).at(id)).await;
    after(&visit, forgotten, "forgotten").await
}

async fn after(visit: &Visit, done: Result<(), Refusal>, word: &str) -> PageResult {
    match done {
        Ok(()) => see_other(Tab::Learned.here(visit).with("told", word)),
        Err(refusal) => show_list(visit, &ListQuery::default(), Some(&refusal)).await,
    }
}
