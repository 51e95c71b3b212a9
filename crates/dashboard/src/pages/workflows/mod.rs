//! Workflows: their versions, where these are deployed, and their runs.

mod diff;
mod edit;
mod environments;
mod list;
mod one;
mod picture;
mod run;
mod runs;
mod starter;
mod timeline;
mod versions;

use axum::Router;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::frame::Link;
use crate::path::Path;
use crate::refusal::Refusal;
use crate::visit::Visit;

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/workflows", get(list::list))
        .route("/{project}/workflows/new", get(edit::new).post(edit::create))
        .route("/{project}/workflows/runs", get(runs::list))
        .route("/{project}/workflows/runs/{run}", get(runs::one))
        .route("/{project}/workflows/environments", get(environments::list).post(environments::create))
        .route("/{project}/workflows/environments/{environment}", get(environments::one))
        .route("/{project}/workflows/environments/{environment}/guard", post(environments::guard))
        .route("/{project}/workflows/environments/{environment}/remove", post(environments::remove))
        .route("/{project}/workflows/{workflow}", get(one::one))
        .route("/{project}/workflows/{workflow}/deploy", post(one::deploy))
        .route("/{project}/workflows/{workflow}/archive", post(one::archive))
        .route("/{project}/workflows/{workflow}/unarchive", post(one::unarchive))
        .route("/{project}/workflows/{workflow}/edit", get(edit::edit).post(edit::save))
        .route("/{project}/workflows/{workflow}/words", post(edit::words))
        .route("/{project}/workflows/{workflow}/run", get(run::form).post(run::run))
        .route("/{project}/workflows/{workflow}/versions", get(versions::list))
        .route("/{project}/workflows/{workflow}/versions/{revision}", get(versions::one))
}

#[derive(Debug, Deserialize)]
struct WorkflowAnswer {
    workflow: Workflow,
}

/// A workflow with its newest version.
#[derive(Debug, Deserialize)]
struct Workflow {
    id: String,
    slug: String,
    name: Option<String>,
    description: Option<String>,
    created_at: String,
    deleted_at: Option<String>,
    variant_id: Option<String>,
    revision_id: Option<String>,
    version: Option<String>,
    #[serde(default)]
    data: Value,
}

impl Workflow {
    async fn read(visit: &Visit, id: &str) -> Result<Self, Refusal> {
        let answer: WorkflowAnswer = visit.get(Path::new("/simple/workflows").at(id)).await?;
        Ok(answer.workflow)
    }

    fn title(&self) -> &str {
        self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.slug)
    }

    fn is_archived(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn kind(&self) -> &str {
        kind(&self.data)
    }

    /// Whether it is deployed under the key that it has of itself.
    fn is_key(&self, key: &str) -> bool {
        key.strip_suffix(".revision") == Some(&self.slug)
    }

    /// How tools, agents and steps call it.
    fn call_ref(&self) -> String {
        format!("workflow.variant.{}", self.slug)
    }
}

/// What the data makes of a workflow, in a word.
fn kind(data: &Value) -> &str {
    match data["kind"].as_str() {
        Some(kind) => kind,
        None if data["steps"].is_array() => "steps",
        None if data["url"].is_string() => "http",
        None if data.is_null() => "no data",
        None => "data",
    }
}

fn pretty(data: &Value) -> String {
    if data.is_null() { String::new() } else { serde_json::to_string_pretty(data).unwrap_or_default() }
}

#[derive(Debug, Deserialize)]
struct Revision {
    id: String,
    version: String,
    #[serde(default)]
    workflow_id: String,
    #[serde(default)]
    data: Value,
    message: Option<String>,
    author: Option<String>,
    date: String,
}

#[derive(Debug, Deserialize)]
struct RevisionAnswer {
    workflow_revision: Option<Revision>,
}

impl Revision {
    async fn read(visit: &Visit, id: &str) -> Result<Self, Refusal> {
        let answer: RevisionAnswer = visit.get(Path::new("/workflows/revisions").at(id)).await?;
        answer.workflow_revision.ok_or_else(Refusal::not_found)
    }

    fn kind(&self) -> &str {
        kind(&self.data)
    }
}

#[derive(Debug, Deserialize)]
struct EnvironmentsAnswer {
    environments: Vec<Environment>,
}

#[derive(Debug, Deserialize)]
struct EnvironmentAnswer {
    environment: Environment,
}

/// An environment with what is deployed there.
#[derive(Debug, Deserialize)]
struct Environment {
    id: String,
    slug: String,
    name: Option<String>,
    description: Option<String>,
    #[serde(default)]
    flags: Value,
    variant_id: Option<String>,
    revision_id: Option<String>,
    #[serde(default)]
    data: Value,
}

/// What a key of an environment leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Deployment {
    key: String,
    workflow_id: String,
    workflow_slug: String,
    revision_id: String,
    version: String,
}

impl Environment {
    async fn all(visit: &Visit) -> Result<Vec<Self>, Refusal> {
        let mut answer: EnvironmentsAnswer =
            visit.post("/simple/environments/query", json!({"windowing": {"limit": 500, "order": "ascending"}})).await?;
        answer.environments.sort_by(|a, b| a.slug.cmp(&b.slug));
        Ok(answer.environments)
    }

    fn title(&self) -> &str {
        self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.slug)
    }

    fn is_guarded(&self) -> bool {
        self.flags["is_guarded"] == true
    }

    fn deployments(&self) -> Vec<Deployment> {
        deployments(&self.data)
    }

    fn deployments_of(&self, workflow_id: &str) -> Vec<Deployment> {
        self.deployments().into_iter().filter(|deployed| deployed.workflow_id == workflow_id).collect()
    }
}

/// The keys of an environment under which something is deployed.
fn deployments(data: &Value) -> Vec<Deployment> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let references = data["references"].as_object().into_iter().flatten();
    references
        .filter(|(_, group)| group.as_object().is_some_and(|group| !group.is_empty()))
        .map(|(key, group)| Deployment {
            key: key.clone(),
            workflow_id: text(&group["workflow"]["id"]),
            workflow_slug: text(&group["workflow"]["slug"]),
            revision_id: text(&group["workflow_revision"]["id"]),
            version: text(&group["workflow_revision"]["version"]),
        })
        .collect()
}

/// The pages of one workflow.
fn tabs(visit: &Visit, workflow: &Workflow, current: &str) -> Vec<Link> {
    let here = visit.page("workflows").at(&workflow.id);
    let mut tabs = vec![("", "Overview", here.clone())];
    if visit.may("run_workflows") && !workflow.is_archived() {
        tabs.push(("run", "Run", here.clone().at("run")));
    }
    tabs.push(("versions", "Versions", here.clone().at("versions")));
    if visit.may("edit_workflows") && !workflow.is_archived() {
        tabs.push(("edit", "Edit", here.at("edit")));
    }
    tabs.push(("runs", "Runs", visit.page("workflows").at("runs").with("workflow_id", &workflow.id)));
    tabs.into_iter().map(|(page, label, href)| Link { href: href.into(), label: label.to_owned(), is_current: page == current }).collect()
}

/// The pages of the section.
fn sections(visit: &Visit, current: &str) -> Vec<Link> {
    let here = visit.page("workflows");
    let pages = [
        ("", "Workflows", here.clone()),
        ("runs", "Runs", here.clone().at("runs")),
        ("environments", "Environments", here.at("environments")),
    ];
    pages.map(|(page, label, href)| Link { href: href.into(), label: label.to_owned(), is_current: page == current }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_from_the_data() {
        let kinds = [json!({"kind": "echo"}), json!({"steps": []}), json!({"url": "https://a"}), json!(null), json!({})]
            .map(|data| kind(&data).to_owned());
        assert_eq!(kinds, ["echo", "steps", "http", "no data", "data"]);
    }

    #[test]
    fn an_empty_place_is_no_deployment() {
        let data = json!({"references": {"empty": {}, "a.revision": {"workflow": {"id": "w", "slug": "a"}, "workflow_revision": {"id": "r", "version": "3"}}}});
        let found = deployments(&data);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].key.as_str(), found[0].workflow_slug.as_str(), found[0].version.as_str()), ("a.revision", "a", "3"));
        assert!(deployments(&Value::Null).is_empty());
    }
}
