//! Calls that wait for a person's word.

mod approval;
mod notices;

use std::collections::BTreeMap;

use askama::Template;
use axum::Router;
use axum::extract::{Path as Segments, Query};
use axum::routing::{get, post};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use self::approval::{Approval, Asker};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 2] =
    [("approved", "Approved. The call goes through when it is made again."), ("denied", "Denied. The caller reads your note.")];
const STATES: [&str; 5] = ["pending", "approved", "denied", "used", "expired"];

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/approvals", get(list))
        .route("/{project}/approvals/{approval}", get(one).post(decide))
        .route("/{project}/approvals/notices", get(notices::list).post(notices::add))
        .route("/{project}/approvals/notices/{notice}/test", post(notices::test))
        .route("/{project}/approvals/notices/{notice}/remove", post(notices::remove))
}

#[derive(Debug, Deserialize)]
struct Answer {
    approvals: Vec<Approval>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OneAnswer {
    approval: Approval,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    status: Option<String>,
    cursor: Option<String>,
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "approvals.html")]
struct ListPage {
    frame: Frame,
    here: String,
    permissions: String,
    notices: String,
    states: Vec<(&'static str, String, bool)>,
    approvals: Vec<(Approval, Asker)>,
    may_decide: bool,
    next: Option<String>,
}

async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let status = query.status.as_deref().filter(|status| STATES.contains(status)).unwrap_or("pending");
    let asked = Path::new("/tools/approvals").with("status", status).with_some("cursor", query.cursor.as_deref());
    let answer: Answer = visit.get(asked).await?;
    let here = visit.page("approvals");
    let next = answer.cursor.map(|cursor| here.clone().with("status", status).with("cursor", cursor).into());
    let states = STATES.map(|state| (state, here.clone().with("status", state).into(), state == status)).into();
    let waiting = if status == "pending" { answer.approvals.len() } else { 0 };
    let page = ListPage {
        frame: Frame::new(&visit, Section::Approvals, "Approvals").waiting(waiting).told(query.told.as_deref(), &TOLD),
        notices: here.clone().at("notices").into(),
        permissions: visit.page("permissions").into(),
        here: here.into(),
        states,
        approvals: with_askers(&visit, answer.approvals).await,
        may_decide: visit.may("edit_tools") && status == "pending",
        next,
    };
    show(&page)
}

/// Each approval with who asks. An agent is asked for once, however many of its calls wait.
async fn with_askers(visit: &Visit, approvals: Vec<Approval>) -> Vec<(Approval, Asker)> {
    let mut names = BTreeMap::new();
    for id in approvals.iter().filter_map(|approval| approval.agent_id.as_deref()) {
        if !names.contains_key(id) {
            names.insert(id.to_owned(), agent_name(visit, id).await);
        }
    }
    let asker = |approval: &Approval| {
        let agent = approval.agent_id.as_ref().map(|id| {
            let name = names.get(id).cloned().flatten().unwrap_or_else(|| id.clone());
            (name, visit.page("agents").at(id).into())
        });
        Asker { agent }
    };
    let with_asker = |approval| {
        let asker = asker(&approval);
        (approval, asker)
    };
    approvals.into_iter().map(with_asker).collect()
}

async fn agent_name(visit: &Visit, id: &str) -> Option<String> {
    let agent: Value = visit.get(Path::new("/agents").at(id)).await.ok()?;
    agent["name"].as_str().map(str::to_owned)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OneQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "approval.html")]
struct OnePage {
    frame: Frame,
    approval: Approval,
    asker: Asker,
    here: String,
    /// Where somebody else finds this page.
    link: String,
    all: String,
    permissions: String,
    may_decide: bool,
    note: String,
    /// The arguments of a call that the visitor may make now, and where.
    to_make: Option<String>,
    make: String,
}

async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    show_one(&visit, &id, query.told.as_deref(), None, String::new()).await
}

async fn show_one(visit: &Visit, id: &str, told: Option<&str>, refusal: Option<&Refusal>, note: String) -> PageResult {
    let answer: OneAnswer = visit.get(Path::new("/tools/approvals").at(id)).await?;
    let Some((approval, asker)) = with_askers(visit, vec![answer.approval]).await.pop() else { return Err(Refusal::not_found()) };
    let all = visit.page("approvals");
    let here: String = all.clone().at(id).into();
    let page = OnePage {
        frame: Frame::new(visit, Section::Approvals, "Approval").told(told, &TOLD).refused(refusal),
        may_decide: visit.may("edit_tools") && approval.is_pending(),
        to_make: approval.to_make(visit.acts_as.as_deref()).filter(|_| visit.may("run_tools")),
        make: visit.page("try").at("run").into(),
        approval,
        asker,
        link: format!("{}{here}", visit.public_url),
        here,
        all: all.into(),
        permissions: visit.page("permissions").into(),
        note,
    };
    show_refused(refusal, &page)
}

async fn decide(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let (decision, word) = match form.text("decision") {
        "approve" => ("approve", "approved"),
        "deny" => ("deny", "denied"),
        _ => return show_one(&visit, &id, None, Some(&undecided()), form.raw("note").to_owned()).await,
    };
    let body = json!({"decision": decision, "note": form.some("note")});
    match visit.post::<Value>(Path::new("/tools/approvals").at(&id), body).await {
        Ok(_) if form.text("from") == "list" => see_other(visit.page("approvals").with("told", word)),
        Ok(_) => see_other(visit.page("approvals").at(&id).with("told", word)),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_one(&visit, &id, None, Some(&refusal), form.raw("note").to_owned()).await,
    }
}

/// A form without either button must not decide anything.
fn undecided() -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "Approve or deny: press one of the two buttons.")
}
