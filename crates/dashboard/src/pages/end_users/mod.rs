//! The people whom the project's agents serve: their accounts, sessions and calls.

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

const END_USERS: &str = "/end-users";
const TOLD: [(&str, &str); 1] = [("forgotten", "The end user is forgotten.")];

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/users", get(list))
        .route("/{project}/users/{end_user}", get(one::one))
        .route("/{project}/users/{end_user}/sessions/{session}/end", post(one::end))
        .route("/{project}/users/{end_user}/forget", get(one::ask_forget).post(one::forget))
}

/// Somebody whom the project's agents serve.
#[derive(Debug, Deserialize)]
struct EndUser {
    end_user: String,
    created_at: String,
}

#[derive(Debug, Deserialize)]
struct EndUsers {
    #[serde(default)]
    cursor: Option<String>,
    end_users: Vec<EndUser>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    q: Option<String>,
    cursor: Option<String>,
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "end_users.html")]
struct ListPage {
    frame: Frame,
    here: String,
    q: String,
    /// Each with their page.
    end_users: Vec<(EndUser, String)>,
    next: Option<String>,
}

async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let q = query.q.unwrap_or_default().trim().to_owned();
    let wanted = Some(q.as_str()).filter(|q| !q.is_empty());
    let answer: EndUsers = visit.get(Path::new(END_USERS).with_some("name", wanted).with_some("cursor", query.cursor.as_deref())).await?;
    let here = visit.page("users");
    let page = ListPage {
        frame: Frame::new(&visit, Section::EndUsers, "End users").told(query.told.as_deref(), &TOLD),
        next: answer.cursor.map(|cursor| here.clone().with_some("q", wanted).with("cursor", cursor).into()),
        here: here.into(),
        end_users: answer
            .end_users
            .into_iter()
            .map(|user| (page_of(&visit, &user.end_user), user))
            .map(|(href, user)| (user, href))
            .collect(),
        q,
    };
    show(&page)
}

fn page_of(visit: &Visit, end_user: &str) -> String {
    visit.page("users").at(end_user).into()
}
