//! One workflow: its newest version, and what is deployed where.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;
use serde_json::{Value, json};

use super::picture::{Picture, picture};
use super::versions::log;
use super::{Environment, Revision, Workflow, pretty, tabs};
use crate::form::Form;
use crate::frame::{Frame, Link, Section, see_other, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 8] = [
    ("made", "Made. Run it, or deploy it to an environment."),
    ("saved", "Saved as a new version. What is deployed stays as it was."),
    ("same", "Nothing was changed, so there is no new version."),
    ("words", "Saved."),
    ("deployed", "Deployed. Whoever runs it in that environment gets this version from now on."),
    ("deployed-already", "This version was deployed there already."),
    ("archived", "Archived. It cannot be run or deployed until it comes back."),
    ("unarchived", "It is back as it was."),
];
/// How many versions there are to choose from.
const CHOICES: usize = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    told: Option<String>,
    /// The version that is chosen in the form.
    revision: Option<String>,
}

/// What stands in the form that deploys.
#[derive(Debug, Default)]
struct Chosen {
    revision: String,
    environment: String,
    message: String,
}

#[derive(Template)]
#[template(path = "workflow.html")]
struct OnePage {
    frame: Frame,
    all: String,
    here: String,
    environments_page: String,
    tabs: Vec<Link>,
    picture: Option<Picture>,
    data: String,
    environments: Vec<Environment>,
    revisions: Vec<Revision>,
    chosen: Chosen,
    may_edit: bool,
    /// What can start it, each with the page where that is made.
    starts: Vec<(&'static str, String)>,
    workflow: Workflow,
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    let chosen = Chosen { revision: query.revision.unwrap_or_default(), ..Chosen::default() };
    show_one(&visit, &id, query.told.as_deref(), None, chosen).await
}

async fn show_one(visit: &Visit, id: &str, told: Option<&str>, refusal: Option<&Refusal>, mut chosen: Chosen) -> PageResult {
    let workflow = Workflow::read(visit, id).await?;
    let environments = Environment::all(visit).await?;
    let mut revisions = match &workflow.variant_id {
        Some(variant) => log(visit, json!({"workflow_variant_id": variant, "depth": CHOICES})).await.unwrap_or_default(),
        None => Vec::new(),
    };
    if chosen.revision.is_empty() {
        chosen.revision = workflow.revision_id.clone().unwrap_or_default();
    } else if revisions.iter().all(|revision| revision.id != chosen.revision) {
        // An old version that was chosen elsewhere is one to choose from here too.
        revisions.extend(Revision::read(visit, &chosen.revision).await.ok().filter(|revision| revision.workflow_id == workflow.id));
    }
    let all = visit.page("workflows");
    let page = OnePage {
        frame: Frame::new(visit, Section::Workflows, workflow.title()).told(told, &TOLD).refused(refusal),
        here: all.clone().at(&workflow.id).into(),
        environments_page: all.clone().at("environments").into(),
        all: all.into(),
        tabs: tabs(visit, &workflow, ""),
        picture: picture(&workflow.data),
        data: pretty(&workflow.data),
        environments,
        revisions,
        chosen,
        may_edit: visit.may("edit_workflows"),
        starts: if visit.may("edit_triggers") && !workflow.is_archived() { starts(visit, &workflow.slug) } else { Vec::new() },
        workflow,
    };
    show_refused(refusal, &page)
}

fn starts(visit: &Visit, slug: &str) -> Vec<(&'static str, String)> {
    let new = visit.page("triggers").at("new");
    let pages = [("By a webhook", new.clone().at("webhook")), ("By the clock", new.clone().at("schedule")), ("By an event of an app", new)];
    pages.map(|(label, page)| (label, page.with("workflow", slug).into())).into()
}

pub(super) async fn deploy(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let text = |name| form.text(name).to_owned();
    let chosen = Chosen { revision: text("revision"), environment: text("environment"), message: text("message") };
    let body = json!({"workflow_ref": {"id": id}, "workflow_revision_ref": {"id": chosen.revision}, "environment_ref": {"slug": chosen.environment},
        "message": form.some("message")});
    match visit.post::<Value>("/workflows/revisions/deploy", body).await {
        Ok(answer) => {
            let word = if answer["status"] == "no_change" { "deployed-already" } else { "deployed" };
            see_other(visit.page("workflows").at(&id).with("told", word))
        }
        Err(refusal) => show_one(&visit, &id, None, Some(&refusal), chosen).await,
    }
}

pub(super) async fn archive(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    set_archived(&visit, &id, "archive", "archived").await
}

pub(super) async fn unarchive(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    set_archived(&visit, &id, "unarchive", "unarchived").await
}

async fn set_archived(visit: &Visit, id: &str, change: &str, word: &str) -> PageResult {
    match visit.post::<Value>(Path::new("/simple/workflows").at(id).at(change), json!({})).await {
        Ok(_) => see_other(visit.page("workflows").at(id).with("told", word)),
        Err(refusal) => show_one(visit, id, None, Some(&refusal), Chosen::default()).await,
    }
}
