//! Clients that people let act for them in the project.

use askama::Template;
use axum::Router;
use axum::extract::{Path as Segments, Query};
use axum::routing::{get, post};
use serde::Deserialize;

use super::{Tab, show_refused_tab};
use crate::frame::{Frame, Link, see_other, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, Tone, badge};
use crate::visit::Visit;

const TOLD: [(&str, &str); 1] = [("revoked", "Revoked. The client and its tokens are refused from now on.")];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/{project}/settings/grants", get(list)).route("/{project}/settings/grants/{grant}/revoke", post(revoke))
}

#[derive(Debug, Deserialize)]
struct Grants {
    grants: Vec<Grant>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Grant {
    id: String,
    client_id: String,
    client_name: String,
    user_name: Option<String>,
    key_name: Option<String>,
    resource: String,
    #[serde(default)]
    permissions: Vec<String>,
    state: String,
    created_at: String,
    expires_at: String,
    last_used_at: Option<String>,
    ended_at: Option<String>,
}

impl Grant {
    fn state(&self) -> Markup {
        badge(if self.is_active() { Tone::Good } else { Tone::Plain }, why(&self.state))
    }

    fn is_active(&self) -> bool {
        self.state == "active"
    }

    fn granter(&self) -> String {
        match (&self.user_name, &self.key_name) {
            (Some(person), _) => person.clone(),
            (None, Some(key)) => format!("the key {key}"),
            (None, None) => "somebody who is gone".to_owned(),
        }
    }
}

/// Why a grant ended, in words.
fn why(state: &str) -> &str {
    match state {
        "refresh_reused" | "code_reused" => "ended: a token came twice",
        "granter_gone" => "ended: its granter left",
        other => other,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    told: Option<String>,
    cursor: Option<String>,
    show: Option<String>,
}

impl ListQuery {
    fn is_all(&self) -> bool {
        self.show.as_deref() == Some("all")
    }
}

#[derive(Template)]
#[template(path = "setting_grants.html")]
struct ListPage {
    frame: Frame,
    tabs: Vec<Link>,
    here: String,
    filters: [Link; 2],
    grants: Vec<Grant>,
    next: Option<String>,
    may_edit: bool,
}

async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    show_list(&visit, &query, None).await
}

async fn show_list(visit: &Visit, query: &ListQuery, refusal: Option<&Refusal>) -> PageResult {
    let active = (!query.is_all()).then_some("true");
    let asked = Path::new("/grants").with_some("active", active).with_some("cursor", query.cursor.as_deref());
    let answer: Grants = match visit.get(asked).await {
        Ok(answer) => answer,
        Err(unseen) => return show_refused_tab(visit, Tab::Grants, refusal.unwrap_or(&unseen)),
    };
    let here = Tab::Grants.here(visit);
    let all = here.clone().with("show", "all");
    let filters = [
        Link { href: here.clone().into(), label: "In force".to_owned(), is_current: !query.is_all() },
        Link { href: all.clone().into(), label: "All".to_owned(), is_current: query.is_all() },
    ];
    let shown = if query.is_all() { all } else { here.clone() };
    let page = ListPage {
        frame: Tab::Grants.frame(visit).told(query.told.as_deref(), &TOLD).refused(refusal),
        tabs: Tab::Grants.links(visit),
        here: here.into(),
        filters,
        next: answer.cursor.map(|cursor| shown.with("cursor", cursor).into()),
        grants: answer.grants,
        may_edit: visit.may("edit_members"),
    };
    show_refused(refusal, &page)
}

async fn revoke(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    match visit.delete(Path::new("/grants").at(id)).await {
        Ok(()) => see_other(Tab::Grants.here(&visit).with("told", "revoked")),
        Err(refusal) => show_list(&visit, &ListQuery::default(), Some(&refusal)).await,
    }
}
