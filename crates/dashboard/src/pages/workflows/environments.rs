//! Environments: what is deployed to each, and since when.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Deployment, Environment, EnvironmentAnswer, deployments, sections};
use crate::form::Form;
use crate::frame::{Frame, Link, Section, see_other, show_refused};
use crate::pages::agents::Actors;
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 4] = [
    ("made", "Made. Deploy a workflow to it from the workflow's page."),
    ("guarded", "Guarded. Nothing can be deployed there until it is opened again."),
    ("unguarded", "Open. Versions can be deployed there again."),
    ("removed", "Taken away. Nothing is deployed under that key any more."),
];
const PAGE: usize = 30;

#[derive(Template)]
#[template(path = "workflow_environments.html")]
struct ListPage {
    frame: Frame,
    all: String,
    here: String,
    sections: Vec<Link>,
    environments: Vec<Environment>,
    typed: (String, String, String),
    is_open: bool,
    may_edit: bool,
}

pub(super) async fn list(visit: Visit) -> PageResult {
    show_list(&visit, (String::new(), String::new(), String::new()), None).await
}

async fn show_list(visit: &Visit, typed: (String, String, String), refusal: Option<&Refusal>) -> PageResult {
    let all = visit.page("workflows");
    let page = ListPage {
        frame: Frame::new(visit, Section::Workflows, "Environments").refused(refusal),
        here: all.clone().at("environments").into(),
        all: all.into(),
        sections: sections(visit, "environments"),
        environments: Environment::all(visit).await?,
        typed,
        is_open: refusal.is_some(),
        may_edit: visit.may("edit_workflows"),
    };
    show_refused(refusal, &page)
}

pub(super) async fn create(visit: Visit, form: Form) -> PageResult {
    let body = json!({"environment": {"slug": form.text("slug"), "name": form.some("name"), "description": form.some("description")}});
    match visit.post::<EnvironmentAnswer>("/simple/environments", body).await {
        Ok(answer) => see_other(visit.page("workflows").at("environments").at(answer.environment.id).with("told", "made")),
        Err(refusal) => {
            let typed = ["slug", "name", "description"].map(|name| form.text(name).to_owned());
            show_list(&visit, typed.into(), Some(&refusal)).await
        }
    }
}

#[derive(Debug, Deserialize)]
struct LogAnswer {
    environment_revisions: Vec<EnvironmentRevision>,
}

#[derive(Debug, Deserialize)]
struct EnvironmentRevision {
    id: String,
    version: String,
    #[serde(default)]
    data: Value,
    message: Option<String>,
    author: Option<String>,
    date: String,
}

/// A version of an environment with what it changed.
struct Entry {
    revision: EnvironmentRevision,
    changes: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    told: Option<String>,
    /// The version that the history begins with.
    start: Option<String>,
}

#[derive(Template)]
#[template(path = "workflow_environment.html")]
struct OnePage {
    frame: Frame,
    all: String,
    list: String,
    here: String,
    environment: Environment,
    deployments: Vec<Deployment>,
    history: Vec<Entry>,
    next: Option<String>,
    actors: Actors,
    may_edit: bool,
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    show_one(&visit, &id, &query, None).await
}

async fn show_one(visit: &Visit, id: &str, query: &OneQuery, refusal: Option<&Refusal>) -> PageResult {
    let answer: EnvironmentAnswer = visit.get(Path::new("/simple/environments").at(id)).await?;
    let environment = answer.environment;
    let all = visit.page("workflows");
    let here = all.clone().at("environments").at(&environment.id);
    let (history, next) = history(visit, &environment, query.start.as_deref()).await?;
    let page = OnePage {
        frame: Frame::new(visit, Section::Workflows, environment.title()).told(query.told.as_deref(), &TOLD).refused(refusal),
        list: all.clone().at("environments").into(),
        all: all.into(),
        next: next.map(|start| here.clone().with("start", start).into()),
        here: here.into(),
        deployments: environment.deployments(),
        history,
        actors: Actors::read(visit).await,
        may_edit: visit.may("edit_workflows"),
        environment,
    };
    show_refused(refusal, &page)
}

async fn history(visit: &Visit, environment: &Environment, start: Option<&str>) -> Result<(Vec<Entry>, Option<String>), Refusal> {
    let start = match start.filter(|start| !start.is_empty()) {
        Some(start) => json!({"environment_revision_id": start, "depth": PAGE + 1}),
        None => json!({"environment_id": environment.id, "depth": PAGE + 1}),
    };
    let answer: LogAnswer = visit.post("/environments/revisions/log", json!({"environment_revision": start})).await?;
    let next = answer.environment_revisions.get(PAGE).map(|revision| revision.id.clone());
    Ok((entries(answer.environment_revisions), next))
}

/// Each version beside what it changed of the one before.
fn entries(revisions: Vec<EnvironmentRevision>) -> Vec<Entry> {
    let before: Vec<Value> = revisions.iter().skip(1).map(|revision| revision.data.clone()).collect();
    let before = before.into_iter().chain([Value::Null]);
    revisions
        .into_iter()
        .zip(before)
        .take(PAGE)
        .map(|(revision, before)| Entry { changes: changes(&before, &revision.data), revision })
        .collect()
}

/// What was deployed, moved and taken away between two versions of an environment.
fn changes(before: &Value, after: &Value) -> Vec<String> {
    let (before, after) = (deployments(before), deployments(after));
    let same = |all: &[Deployment], key: &str| all.iter().find(|deployed| deployed.key == key).cloned();
    let mut changes: Vec<String> = after
        .iter()
        .filter_map(|new| match same(&before, &new.key) {
            None => Some(format!("{}: version {}", new.workflow_slug, new.version)),
            Some(old) if old.revision_id != new.revision_id => {
                Some(format!("{}: version {} → {}", new.workflow_slug, old.version, new.version))
            }
            Some(_) => None,
        })
        .collect();
    changes.extend(before.iter().filter(|old| same(&after, &old.key).is_none()).map(|old| format!("{}: taken away", old.workflow_slug)));
    changes
}

pub(super) async fn guard(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let (change, word) = if form.text("guard") == "on" { ("guard", "guarded") } else { ("unguard", "unguarded") };
    match visit.post::<Value>(Path::new("/simple/environments").at(&id).at(change), json!({})).await {
        Ok(_) => see_other(visit.page("workflows").at("environments").at(&id).with("told", word)),
        Err(refusal) => show_one(&visit, &id, &OneQuery::default(), Some(&refusal)).await,
    }
}

pub(super) async fn remove(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let answer: EnvironmentAnswer = visit.get(Path::new("/simple/environments").at(&id)).await?;
    let environment = answer.environment;
    if environment.deployments().iter().all(|deployed| deployed.key != form.raw("key")) {
        return Err(Refusal::new(StatusCode::NOT_FOUND, "Nothing is deployed under this key."));
    }
    let revision = json!({"environment_variant_id": environment.variant_id, "base_revision_id": environment.revision_id,
        "data": without(environment.data, form.raw("key")), "message": format!("Took away {}", form.raw("key"))});
    match visit.post::<Value>("/environments/revisions/commit", json!({"environment_revision": revision})).await {
        Ok(_) => see_other(visit.page("workflows").at("environments").at(&id).with("told", "removed")),
        Err(refusal) => show_one(&visit, &id, &OneQuery::default(), Some(&refusal)).await,
    }
}

fn without(mut data: Value, key: &str) -> Value {
    if let Some(references) = data.get_mut("references").and_then(Value::as_object_mut) {
        references.shift_remove(key);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployed(rows: &[(&str, &str)]) -> Value {
        let group = |(slug, version): &(&str, &str)| {
            (
                format!("{slug}.revision"),
                json!({"workflow": {"id": slug, "slug": slug}, "workflow_revision": {"id": format!("{slug}{version}"), "version": version}}),
            )
        };
        json!({"references": rows.iter().map(group).collect::<serde_json::Map<_, _>>()})
    }

    #[test]
    fn changes_are_said_in_words() {
        let (before, after) = (deployed(&[("a", "1"), ("b", "1"), ("c", "4")]), deployed(&[("a", "2"), ("c", "4"), ("d", "1")]));
        assert_eq!(changes(&before, &after), ["a: version 1 → 2", "d: version 1", "b: taken away"]);
        assert!(changes(&Value::Null, &Value::Null).is_empty());
    }

    #[test]
    fn one_key_is_taken_away() {
        assert_eq!(without(deployed(&[("a", "1"), ("b", "1")]), "a.revision"), deployed(&[("b", "1")]));
        assert_eq!(without(json!({}), "a"), json!({}));
    }
}
