//! Who changed an agent.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;
use serde_json::Value;

use super::{Actors, Agent, tabs};
use crate::frame::{Frame, Link, Section, show};
use crate::path::Path;
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HistoryQuery {
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct History {
    history: Vec<Change>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Change {
    version: i64,
    #[serde(rename = "change")]
    kind: String,
    app_name: Option<String>,
    before: Option<Value>,
    after: Option<Value>,
    actor: String,
    at: String,
}

impl Change {
    fn words(&self) -> String {
        let change = self.kind.replace('_', " ");
        self.app_name.as_ref().map_or_else(|| change.clone(), |app| format!("{change} {app}"))
    }
}

#[derive(Template)]
#[template(path = "agent_history.html")]
struct HistoryPage {
    frame: Frame,
    all: String,
    tabs: Vec<Link>,
    agent: Agent,
    actors: Actors,
    history: Vec<Change>,
    next: Option<String>,
}

pub(super) async fn history(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<HistoryQuery>) -> PageResult {
    let agent = Agent::read(&visit, &id).await?;
    let asked = Path::new("/agents").at(&id).at("history").with("limit", 50).with_some("cursor", query.cursor.as_deref());
    let answer: History = visit.get(asked).await?;
    let all = visit.page("agents");
    let next = answer.cursor.map(|cursor| all.clone().at(&id).at("history").with("cursor", cursor).into());
    let frame = Frame::new(&visit, Section::Agents, format!("History of {}", agent.name));
    let actors = Actors::read(&visit).await;
    show(&HistoryPage { frame, all: all.into(), tabs: tabs(&visit, &id, "history"), agent, actors, history: answer.history, next })
}
