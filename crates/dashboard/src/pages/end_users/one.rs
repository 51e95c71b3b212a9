//! One end user: accounts, sessions, calls, and forgetting them.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;
use serde_json::Value;

use super::{END_USERS, EndUsers};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show, show_refused};
use crate::pages::calls::outcome_badge;
use crate::pages::connections::{self, Connection};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 1] = [("ended", "The session is ended.")];
const MOST_CALLS: usize = 20;

#[derive(Debug, Deserialize)]
struct Session {
    id: String,
    is_open: bool,
    /// Made by Composio's SDKs.
    #[serde(default)]
    is_tool_router: bool,
    mode: String,
    #[serde(default)]
    apps: Option<Vec<String>>,
    created_at: String,
    expires_at: String,
}

impl Call {
    fn state(&self) -> ui::Markup {
        outcome_badge(&self.outcome)
    }
}

impl Session {
    fn state(&self) -> ui::Markup {
        if self.is_open { ui::badge(ui::Tone::Good, "open") } else { ui::badge(ui::Tone::Plain, "ended") }
    }

    fn about(&self) -> String {
        match &self.apps {
            _ if self.is_tool_router => "as its config says".to_owned(),
            Some(apps) => apps.join(", "),
            None => "all connected".to_owned(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Sessions {
    sessions: Vec<Session>,
}

#[derive(Debug, Deserialize)]
struct Call {
    id: String,
    #[serde(rename = "call_ref")]
    name: String,
    outcome: String,
    created_at: String,
}

#[derive(Debug, Deserialize)]
struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "end_user.html")]
struct OnePage {
    frame: Frame,
    all: String,
    name: String,
    since: String,
    may_edit: bool,
    may_run: bool,
    forget: String,
    /// Each with its page.
    accounts: Vec<(Connection, String)>,
    /// Each with where it is ended.
    sessions: Vec<(Session, String)>,
    calls: Vec<(Call, String)>,
}

pub(super) async fn one(visit: Visit, Segments((_, name)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    show_one(&visit, &name, query.told.as_deref(), None).await
}

/// When somebody became known, or that nobody has this name.
async fn since(visit: &Visit, name: &str) -> Result<String, Refusal> {
    let found: EndUsers = visit.get(Path::new(END_USERS).with("name", name).with("limit", 500)).await?;
    let user = found.end_users.into_iter().find(|user| user.end_user == name);
    user.map(|user| user.created_at).ok_or_else(|| Refusal::new(http::StatusCode::NOT_FOUND, "There is no end user of this name."))
}

async fn show_one(visit: &Visit, name: &str, told: Option<&str>, refusal: Option<&Refusal>) -> PageResult {
    let since = since(visit, name).await?;
    let accounts = connections::of_end_user(visit, name).await?;
    let sessions: Sessions = visit.get(Path::new("/sessions").with("end_user", name).with("limit", 50)).await?;
    let calls: Calls = visit.get(Path::new("/tools/calls").with("end_user", name).with("limit", MOST_CALLS)).await?;
    let here = visit.page("users").at(name);
    let page = OnePage {
        frame: Frame::new(visit, Section::EndUsers, name).told(told, &TOLD).refused(refusal),
        all: visit.page("users").into(),
        name: name.to_owned(),
        since,
        may_edit: visit.may("edit_tools"),
        may_run: visit.may("run_tools"),
        forget: here.clone().at("forget").into(),
        accounts: accounts.into_iter().map(|account| account.with_page(visit)).collect(),
        sessions: sessions
            .sessions
            .into_iter()
            .map(|row| (here.clone().at("sessions").at(&row.id).at("end").into(), row))
            .map(turned)
            .collect(),
        calls: calls.calls.into_iter().map(|row| (visit.page("calls").at(&row.id).into(), row)).map(turned).collect(),
    };
    show_refused(refusal, &page)
}

fn turned<T>((href, row): (String, T)) -> (T, String) {
    (row, href)
}

pub(super) async fn end(visit: Visit, Segments((_, name, session)): Segments<(String, String, String)>) -> PageResult {
    match visit.delete(Path::new("/sessions").at(&session)).await {
        Ok(()) => see_other(visit.page("users").at(&name).with("told", "ended")),
        Err(refusal) => show_one(&visit, &name, None, Some(&refusal)).await,
    }
}

#[derive(Template)]
#[template(path = "end_user_forget.html")]
struct ForgetPage {
    frame: Frame,
    here: String,
    back: String,
    name: String,
    /// How many of what there is.
    kept: Vec<(String, usize)>,
}

#[derive(Debug, Deserialize)]
struct Export {
    data: std::collections::BTreeMap<String, Value>,
}

pub(super) async fn ask_forget(visit: Visit, Segments((_, name)): Segments<(String, String)>) -> PageResult {
    let export: Export = visit.get(Path::new(END_USERS).at(&name)).await?;
    let counted = |(kind, rows): (String, Value)| (kind, rows.as_array().map_or(0, Vec::len));
    let back = visit.page("users").at(&name);
    let page = ForgetPage {
        frame: Frame::new(&visit, Section::EndUsers, format!("Forget {name}")),
        here: back.clone().at("forget").into(),
        back: back.into(),
        kept: export.data.into_iter().map(counted).filter(|(_, many)| *many > 0).collect(),
        name,
    };
    show(&page)
}

pub(super) async fn forget(visit: Visit, Segments((_, name)): Segments<(String, String)>, _form: Form) -> PageResult {
    match visit.delete(Path::new(END_USERS).at(&name)).await {
        Ok(()) => see_other(visit.page("users").with("told", "forgotten")),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_one(&visit, &name, None, Some(&refusal)).await,
    }
}
