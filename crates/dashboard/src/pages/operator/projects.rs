//! Projects, each with its keys.

use askama::Template;
use axum::Router;
use axum::extract::{Path as Segments, Query};
use axum::routing::{get, post};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operator, Tab, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show, show_refused};
use crate::pages::settings::{Key, KeyForm, Keys, MadeKey};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 3] = [
    ("made", "The project is made. Make a key for it, or invite its owner."),
    ("deleted", "The project is deleted with everything in it."),
    ("revoked", "Revoked. Whoever uses the key is refused from now on."),
];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/-/operator", get(list).post(make))
        .route("/-/operator/projects/{id}", get(one))
        .route("/-/operator/projects/{id}/delete", post(delete))
        .route("/-/operator/projects/{id}/keys", get(one).post(make_key))
        .route("/-/operator/projects/{id}/keys/{key}/revoke", post(revoke_key))
}

#[derive(Debug, Deserialize)]
struct Projects {
    projects: Vec<Project>,
}

#[derive(Debug, Deserialize)]
struct MadeProject {
    project: Project,
}

#[derive(Debug, Deserialize)]
struct Project {
    id: String,
    slug: String,
    name: String,
    created_at: String,
}

impl Project {
    fn here(&self) -> Path {
        here(&self.id)
    }
}

fn here(id: &str) -> Path {
    Tab::Projects.here().at("projects").at(id)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "operator_projects.html")]
struct ListPage {
    frame: Frame,
    tabs: Vec<Link>,
    here: String,
    projects: Vec<Project>,
    slug: String,
    name: String,
}

async fn list(Operator(visit): Operator, Query(query): Query<PageQuery>) -> PageResult {
    show_list(&visit, query.told.as_deref(), None, None).await
}

async fn show_list(visit: &Visit, told: Option<&str>, refusal: Option<&Refusal>, form: Option<&Form>) -> PageResult {
    let answer: Projects = match visit.get("/admin/projects").await {
        Ok(answer) => answer,
        Err(unseen) => return show_refused_tab(visit, Tab::Projects, refusal.unwrap_or(&unseen)),
    };
    let typed = |name: &str| form.map_or("", |form| form.text(name)).to_owned();
    let page = ListPage {
        frame: Tab::Projects.frame(visit).told(told, &TOLD).refused(refusal),
        tabs: Tab::Projects.links(),
        here: Tab::Projects.here().into(),
        projects: answer.projects,
        slug: typed("slug"),
        name: typed("name"),
    };
    show_refused(refusal, &page)
}

async fn make(Operator(visit): Operator, form: Form) -> PageResult {
    let body = json!({"project": {"slug": form.text("slug"), "name": form.some("name")}});
    match visit.post::<MadeProject>("/admin/projects", body).await {
        Ok(made) => see_other(made.project.here().with("told", "made")),
        Err(refusal) => show_list(&visit, None, Some(&refusal), Some(&form)).await,
    }
}

#[derive(Template)]
#[template(path = "operator_project.html")]
struct OnePage {
    frame: Frame,
    tabs: Vec<Link>,
    all: String,
    here: String,
    keys_at: String,
    project: Project,
    keys: Vec<Key>,
    may_edit: bool,
    made: Option<MadeKey>,
    form: KeyForm,
}

async fn one(Operator(visit): Operator, Segments(id): Segments<String>, Query(query): Query<PageQuery>) -> PageResult {
    show(&one_page(&visit, &id, query.told.as_deref(), None).await?)
}

async fn find(visit: &Visit, id: &str) -> Result<Project, Refusal> {
    let answer: Projects = visit.get("/admin/projects").await?;
    answer.projects.into_iter().find(|project| project.id == id).ok_or_else(Refusal::not_found)
}

async fn one_page(visit: &Visit, id: &str, told: Option<&str>, form: Option<&Form>) -> Result<OnePage, Refusal> {
    let project = find(visit, id).await?;
    let keys: Keys = visit.get(Path::new("/admin/keys").with("project_id", id)).await?;
    let here = project.here();
    let keys_at: String = here.clone().at("keys").into();
    let mut key_form = KeyForm::new(keys_at.clone(), |_| true, form);
    // The operator's key opens no project, so its agents are not listed.
    key_form.agent_names = Some(form.map_or("", |form| form.text("agents")).to_owned());
    Ok(OnePage {
        frame: Frame { title: project.name.clone(), ..Tab::Projects.frame(visit) }.told(told, &TOLD),
        tabs: Tab::Projects.links(),
        all: Tab::Projects.here().into(),
        here: here.into(),
        keys_at,
        project,
        keys: keys.keys,
        may_edit: true,
        made: None,
        form: key_form,
    })
}

async fn show_refused_one(visit: &Visit, id: &str, refusal: &Refusal, form: Option<&Form>) -> PageResult {
    let mut page = one_page(visit, id, None, form).await?;
    page.frame = page.frame.refused(Some(refusal));
    show_refused(Some(refusal), &page)
}

async fn delete(Operator(visit): Operator, Segments(id): Segments<String>, form: Form) -> PageResult {
    let project = find(&visit, &id).await?;
    let deleted = if form.text("slug") == project.slug {
        visit.delete(Path::new("/admin/projects").at(&id)).await
    } else {
        Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, format!("Nothing is deleted. Type {} to delete this project.", project.slug)))
    };
    match deleted {
        Ok(()) => see_other(Tab::Projects.here().with("told", "deleted")),
        Err(refusal) => show_refused_one(&visit, &id, &refusal, None).await,
    }
}

async fn make_key(Operator(visit): Operator, Segments(id): Segments<String>, form: Form) -> PageResult {
    let made = match KeyForm::body(&form) {
        Ok(mut key) => {
            key["project_id"] = json!(id);
            visit.post::<MadeKey>("/admin/keys", json!({"key": key})).await
        }
        Err(refusal) => Err(refusal),
    };
    match made {
        // The key is in this answer alone, so that no address and no history holds it.
        Ok(made) => show(&OnePage { made: Some(made), ..one_page(&visit, &id, None, None).await? }),
        Err(refusal) => show_refused_one(&visit, &id, &refusal, Some(&form)).await,
    }
}

async fn revoke_key(Operator(visit): Operator, Segments((id, key)): Segments<(String, String)>) -> PageResult {
    match visit.post::<Value>(Path::new("/admin/keys").at(key).at("revoke"), json!({})).await {
        Ok(_) => see_other(here(&id).with("told", "revoked")),
        Err(refusal) => show_refused_one(&visit, &id, &refusal, None).await,
    }
}
