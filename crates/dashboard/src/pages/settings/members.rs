//! People of the project, and invitations.

use askama::Template;
use axum::Router;
use axum::extract::{Path as Segments, Query};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ROLES, Tab, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, Tone, badge, copyable};
use crate::visit::Visit;

const TOLD: [(&str, &str); 3] = [
    ("role", "The role is changed."),
    ("removed", "Removed. What they are signed in with no longer works in this project."),
    ("revoked", "The invitation is taken back. Its link no longer works."),
];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/settings/members", get(list).post(invite))
        .route("/{project}/settings/members/{member}/role", post(change_role))
        .route("/{project}/settings/members/{member}/remove", post(remove))
        .route("/{project}/settings/invitations/{invitation}/revoke", post(revoke))
}

#[derive(Debug, Default, Deserialize)]
struct Members {
    members: Vec<Member>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Member {
    id: String,
    email: String,
    name: Option<String>,
    role: String,
    source: String,
    is_disabled: bool,
    created_at: String,
}

impl Member {
    fn roles(&self) -> Vec<(&'static str, bool)> {
        ROLES.map(|(role, _)| (role, role == self.role)).into()
    }
}

#[derive(Debug, Default, Deserialize)]
struct Invitations {
    invitations: Vec<Invitation>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Invitation {
    id: String,
    email: Option<String>,
    role: String,
    state: String,
    created_at: String,
    expires_at: String,
}

impl Invitation {
    fn state(&self) -> Markup {
        let tone = match self.state.as_str() {
            "open" => Tone::Wait,
            "accepted" => Tone::Good,
            _ => Tone::Plain,
        };
        badge(tone, &self.state)
    }

    fn is_open(&self) -> bool {
        self.state == "open"
    }

    fn whom(&self) -> &str {
        self.email.as_deref().unwrap_or("whoever has the link")
    }
}

/// The answer that has the link. It is shown and kept nowhere.
#[derive(Debug, Deserialize)]
struct Invited {
    invitation: Invitation,
    link: Option<String>,
}

impl Invited {
    fn link(&self) -> Markup {
        copyable(self.link.as_deref().unwrap_or_default())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    told: Option<String>,
    cursor: Option<String>,
    invitations: Option<String>,
}

#[derive(Template)]
#[template(path = "setting_members.html")]
struct ListPage {
    frame: Frame,
    tabs: Vec<Link>,
    here: String,
    invitations_at: String,
    members: Vec<Member>,
    next: Option<String>,
    invitations: Vec<Invitation>,
    next_invitations: Option<String>,
    invited: Option<Invited>,
    may_edit: bool,
    email: String,
    role: String,
}

impl ListPage {
    fn roles(&self) -> Vec<(&'static str, &'static str, bool)> {
        ROLES.map(|(role, words)| (role, words, role == self.role)).into()
    }
}

async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    match people(&visit, &query).await {
        Ok(people) => show(&list_page(&visit, people, &query, None)),
        Err(refusal) => show_refused_tab(&visit, Tab::Members, &refusal),
    }
}

async fn people(visit: &Visit, query: &ListQuery) -> Result<(Members, Invitations), Refusal> {
    let members = visit.get(Path::new("/people/members").with_some("cursor", query.cursor.as_deref())).await?;
    let invitations = visit.get(Path::new("/people/invitations").with_some("cursor", query.invitations.as_deref())).await?;
    Ok((members, invitations))
}

fn list_page(visit: &Visit, (members, invitations): (Members, Invitations), query: &ListQuery, form: Option<&Form>) -> ListPage {
    let here = Tab::Members.here(visit);
    let older = |cursor: Option<&str>, of_invitations: Option<&str>| {
        here.clone().with_some("cursor", cursor).with_some("invitations", of_invitations).to_string()
    };
    ListPage {
        frame: Tab::Members.frame(visit).told(query.told.as_deref(), &TOLD),
        tabs: Tab::Members.links(visit),
        invitations_at: visit.page("settings").at("invitations").into(),
        next: members.cursor.map(|cursor| older(Some(&cursor), query.invitations.as_deref())),
        next_invitations: invitations.cursor.map(|cursor| older(query.cursor.as_deref(), Some(&cursor))),
        here: here.into(),
        members: members.members,
        invitations: invitations.invitations,
        invited: None,
        may_edit: visit.may("edit_members"),
        email: form.map_or("", |form| form.text("email")).to_owned(),
        role: form.map_or("viewer", |form| form.text("role")).to_owned(),
    }
}

async fn invite(visit: Visit, form: Form) -> PageResult {
    let body = json!({"invitation": {"email": form.some("email"), "role": form.text("role")}});
    match visit.post::<Invited>("/people/invitations", body).await {
        // The link is in this answer alone, so that no address and no history holds it; it is shown also where the list is not.
        Ok(invited) => {
            let query = ListQuery::default();
            let people = people(&visit, &query).await.unwrap_or_default();
            show(&ListPage { invited: Some(invited), ..list_page(&visit, people, &query, None) })
        }
        Err(refusal) => show_refused_list(&visit, &refusal, Some(&form)).await,
    }
}

async fn change_role(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let body = json!({"member": {"role": form.text("role")}});
    let changed = visit.put::<Value>(Path::new("/people/members").at(id), body).await;
    after(&visit, changed.map(drop), "role").await
}

async fn remove(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let removed = visit.delete(Path::new("/people/members").at(id)).await;
    after(&visit, removed, "removed").await
}

async fn revoke(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let revoked = visit.delete(Path::new("/people/invitations").at(id)).await;
    after(&visit, revoked, "revoked").await
}

async fn after(visit: &Visit, done: Result<(), Refusal>, word: &str) -> PageResult {
    match done {
        Ok(()) => see_other(Tab::Members.here(visit).with("told", word)),
        Err(refusal) => show_refused_list(visit, &refusal, None).await,
    }
}

async fn show_refused_list(visit: &Visit, refusal: &Refusal, form: Option<&Form>) -> PageResult {
    let query = ListQuery::default();
    let Ok(people) = people(visit, &query).await else { return show_refused_tab(visit, Tab::Members, refusal) };
    let mut page = list_page(visit, people, &query, form);
    page.frame = page.frame.refused(Some(refusal));
    show_refused(Some(refusal), &page)
}
