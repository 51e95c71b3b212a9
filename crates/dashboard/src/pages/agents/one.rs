//! One agent: what it is and which apps it has.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;

use super::{Agent, app_path, tabs};
use crate::frame::{Frame, Link, Section, show_refused};
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 4] = [
    ("made", "Made. Give it apps next."),
    ("saved", "Saved."),
    ("assigned", "Saved. The app's tools follow these settings from the next call on."),
    ("removed", "Taken away. The agent cannot use the app any more."),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "agent.html")]
struct OnePage {
    frame: Frame,
    all: String,
    here: String,
    tabs: Vec<Link>,
    agent: Agent,
    address: String,
    may_edit: bool,
}

impl OnePage {
    fn app_path(&self, app: &str) -> String {
        app_path(&self.here, app)
    }
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    show_one(&visit, &id, query.told.as_deref(), None).await
}

pub(super) async fn show_one(visit: &Visit, id: &str, told: Option<&str>, refusal: Option<&Refusal>) -> PageResult {
    let agent = Agent::read(visit, id).await?;
    let all = visit.page("agents");
    let frame = Frame::new(visit, Section::Agents, agent.name.clone()).told(told, &TOLD).refused(refusal);
    let page = OnePage {
        frame,
        here: all.clone().at(id).into(),
        all: all.into(),
        tabs: tabs(visit, id, ""),
        address: format!("{}/mcp/agents/{}", visit.public_url, agent.id),
        agent,
        may_edit: visit.may("edit_agents"),
    };
    show_refused(refusal, &page)
}
