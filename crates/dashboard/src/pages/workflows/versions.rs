//! The versions of a workflow, one of them, and the difference between two.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;
use serde_json::{Value, json};

use super::diff::{self, Part};
use super::picture::{Picture, picture};
use super::{Revision, Workflow, pretty, tabs};
use crate::frame::{Frame, Link, Section, show};
use crate::pages::agents::Actors;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const PAGE: usize = 30;

#[derive(Debug, Deserialize)]
struct LogAnswer {
    workflow_revisions: Vec<Revision>,
}

#[derive(Debug, Deserialize)]
struct VariantsAnswer {
    workflow_variants: Vec<Variant>,
}

#[derive(Debug, Deserialize)]
struct Variant {
    id: String,
    slug: String,
}

/// The versions from a start on, newest first.
pub(super) async fn log(visit: &Visit, start: Value) -> Result<Vec<Revision>, Refusal> {
    let answer: LogAnswer = visit.post("/workflows/revisions/log", json!({"workflow_revision": start})).await?;
    Ok(answer.workflow_revisions)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListQuery {
    variant: Option<String>,
    /// The version that the page begins with.
    start: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

#[derive(Template)]
#[template(path = "workflow_versions.html")]
struct ListPage {
    frame: Frame,
    all: String,
    here: String,
    tabs: Vec<Link>,
    variants: Vec<Link>,
    actors: Actors,
    /// What is ticked to be compared, the older first.
    ticked: (String, String),
    revisions: Vec<Revision>,
    next: Option<String>,
    compared: Option<Compared>,
    may_edit: bool,
    workflow: Workflow,
}

/// Two versions and what lies between them.
struct Compared {
    from: String,
    to: String,
    parts: Vec<Part>,
    added: usize,
    removed: usize,
}

pub(super) async fn list(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<ListQuery>) -> PageResult {
    let workflow = Workflow::read(&visit, &id).await?;
    let all = visit.page("workflows");
    let here = all.clone().at(&workflow.id).at("versions");
    let variants: VariantsAnswer = visit
        .post("/workflows/variants/query", json!({"workflow_variant": {"workflow_id": workflow.id}, "include_archived": true}))
        .await?;
    let variant = query
        .variant
        .clone()
        .filter(|id| variants.workflow_variants.iter().any(|variant| variant.id == *id))
        .or_else(|| workflow.variant_id.clone());
    let start = match (query.start.as_deref().filter(|start| !start.is_empty()), &variant) {
        (Some(start), _) => Some(json!({"workflow_revision_id": start, "depth": PAGE + 1})),
        (None, Some(variant)) => Some(json!({"workflow_variant_id": variant, "depth": PAGE + 1})),
        (None, None) => None,
    };
    let mut revisions: Vec<Revision> = match start {
        Some(start) => log(&visit, start).await?.into_iter().filter(|revision| revision.workflow_id == workflow.id).collect(),
        None => Vec::new(),
    };
    // The one that does not fit begins the next page.
    let next =
        revisions.get(PAGE).map(|revision| here.clone().with_some("variant", query.variant.as_deref()).with("start", &revision.id).into());
    revisions.truncate(PAGE);
    let compared = match (&query.from, &query.to) {
        (Some(from), Some(to)) => Some(compare(own(&visit, &workflow, from).await?, own(&visit, &workflow, to).await?)),
        _ => None,
    };
    let newest = |place: usize| revisions.get(place).map(|revision| revision.id.clone()).unwrap_or_default();
    let ticked = (query.from.unwrap_or_else(|| newest(1)), query.to.unwrap_or_else(|| newest(0)));
    let link = |one: &Variant| Link {
        href: here.clone().with("variant", &one.id).into(),
        label: one.slug.clone(),
        is_current: variant.as_ref() == Some(&one.id),
    };
    let page = ListPage {
        frame: Frame::new(&visit, Section::Workflows, format!("Versions of {}", workflow.title())),
        variants: if variants.workflow_variants.len() > 1 { variants.workflow_variants.iter().map(link).collect() } else { Vec::new() },
        here: all.clone().at(&workflow.id).into(),
        all: all.into(),
        tabs: tabs(&visit, &workflow, "versions"),
        actors: Actors::read(&visit).await,
        ticked,
        revisions,
        next,
        compared,
        may_edit: visit.may("edit_workflows") && !workflow.is_archived(),
        workflow,
    };
    show(&page)
}

/// A version of this workflow and of no other.
async fn own(visit: &Visit, workflow: &Workflow, id: &str) -> Result<Revision, Refusal> {
    let revision = Revision::read(visit, id).await?;
    if revision.workflow_id == workflow.id { Ok(revision) } else { Err(Refusal::not_found()) }
}

fn compare(from: Revision, to: Revision) -> Compared {
    let lines = diff::lines(&pretty(&from.data), &pretty(&to.data));
    let added = lines.iter().filter(|line| line.is_added()).count();
    let removed = lines.iter().filter(|line| line.is_removed()).count();
    Compared { from: from.version, to: to.version, parts: diff::parts(lines), added, removed }
}

#[derive(Template)]
#[template(path = "workflow_version.html")]
struct OnePage {
    frame: Frame,
    all: String,
    here: String,
    tabs: Vec<Link>,
    actors: Actors,
    picture: Option<Picture>,
    data: String,
    revision: Revision,
    is_newest: bool,
    may_edit: bool,
    workflow: Workflow,
}

pub(super) async fn one(visit: Visit, Segments((_, id, revision)): Segments<(String, String, String)>) -> PageResult {
    let workflow = Workflow::read(&visit, &id).await?;
    let revision = own(&visit, &workflow, &revision).await?;
    let all = visit.page("workflows");
    let page = OnePage {
        frame: Frame::new(&visit, Section::Workflows, format!("{} version {}", workflow.title(), revision.version)),
        here: all.clone().at(&workflow.id).into(),
        all: all.into(),
        tabs: tabs(&visit, &workflow, "versions"),
        actors: Actors::read(&visit).await,
        picture: picture(&revision.data),
        data: pretty(&revision.data),
        is_newest: workflow.revision_id.as_ref() == Some(&revision.id),
        may_edit: visit.may("edit_workflows") && !workflow.is_archived(),
        revision,
        workflow,
    };
    show(&page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(version: &str, data: Value) -> Revision {
        serde_json::from_value(json!({"id": version, "version": version, "date": "2026-01-01T00:00:00Z", "data": data})).unwrap()
    }

    #[test]
    fn the_lines_that_differ_are_counted() {
        let compared = compare(revision("1", json!({"kind": "echo"})), revision("2", json!({"kind": "http", "url": "https://a"})));
        assert_eq!((compared.from.as_str(), compared.to.as_str(), compared.added, compared.removed), ("1", "2", 2, 1));
        let compared = compare(revision("0", Value::Null), revision("1", json!({"kind": "echo"})));
        assert_eq!((compared.added, compared.removed), (3, 0));
    }
}
