//! The workflows of the project.

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use serde_json::json;

use super::{Workflow, sections};
use crate::frame::{Frame, Link, Section, show};
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListQuery {
    name: Option<String>,
    archived: Option<String>,
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    workflows: Vec<Workflow>,
    windowing: Option<Windowing>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Windowing {
    pub(super) next: String,
}

#[derive(Template)]
#[template(path = "workflows.html")]
struct ListPage {
    frame: Frame,
    here: String,
    sections: Vec<Link>,
    name: String,
    with_archived: bool,
    workflows: Vec<Workflow>,
    next: Option<String>,
    may_edit: bool,
}

pub(super) async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let name = query.name.unwrap_or_default();
    let with_archived = query.archived.is_some();
    let wanted = Some(name.trim()).filter(|name| !name.is_empty());
    let body = json!({"workflow": {"name": wanted}, "include_archived": with_archived,
        "windowing": {"limit": 50, "next": query.next.filter(|next| !next.is_empty())}});
    let answer: Answer = visit.post("/simple/workflows/query", body).await?;
    let here = visit.page("workflows");
    let next = answer.windowing.map(|windowing| {
        here.clone().with_some("name", wanted).with_some("archived", with_archived.then_some("yes")).with("next", windowing.next).into()
    });
    let page = ListPage {
        frame: Frame::new(&visit, Section::Workflows, "Workflows"),
        sections: sections(&visit, ""),
        here: here.into(),
        name,
        with_archived,
        workflows: answer.workflows,
        next,
        may_edit: visit.may("edit_workflows"),
    };
    show(&page)
}
