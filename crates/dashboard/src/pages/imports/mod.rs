//! Integrations that the project makes from something of its own: OpenAPI documents and MCP servers.

mod body;
mod new;
mod one;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::{get, post};
use serde::Deserialize;

use crate::frame::{Frame, Section, show};
use crate::path::Path;
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;
use body::{IMPORTS, Import};

const TOLD: [(&str, &str); 1] = [("removed", "The import is removed.")];

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/imports", get(list))
        .route("/{project}/imports/new", get(new::begin).post(new::import))
        .route("/{project}/imports/{import}", get(one::one))
        .route("/{project}/imports/{import}/refresh", post(one::refresh))
        .route("/{project}/imports/{import}/remove", get(one::ask_remove).post(one::remove))
}

#[derive(Debug, Deserialize)]
struct Answer {
    imports: Vec<Import>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "imports.html")]
struct ListPage {
    frame: Frame,
    catalog: String,
    new: String,
    may_edit: bool,
    /// Each with its page.
    imports: Vec<(Import, String)>,
}

async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let answer: Answer = visit.get(Path::new(IMPORTS)).await?;
    let page_of = |import: Import| {
        let href = import.page(&visit).map(String::from).unwrap_or_default();
        (import, href)
    };
    let page = ListPage {
        frame: Frame::new(&visit, Section::Catalog, "Imports").told(query.told.as_deref(), &TOLD),
        catalog: visit.page("catalog").into(),
        new: visit.page("imports").at("new").into(),
        may_edit: visit.may("edit_tools"),
        imports: answer.imports.into_iter().map(page_of).collect(),
    };
    show(&page)
}
