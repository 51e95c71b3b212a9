//! The agents of the project.

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;

use super::Agent;
use crate::frame::{Frame, Section, show};
use crate::path::Path;
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;

const TOLD: [(&str, &str); 1] = [("deleted", "Deleted. Clients that used it get nothing from now on.")];
pub(super) const STATES: [&str; 3] = ["active", "inactive", "training"];
const PAGE: usize = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListQuery {
    search: Option<String>,
    status: Option<String>,
    agent_type: Option<String>,
    /// The API pages agents by how many to skip.
    skip: Option<String>,
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "agents.html")]
struct ListPage {
    frame: Frame,
    here: String,
    search: String,
    status: String,
    agent_type: String,
    is_filtered: bool,
    states: [&'static str; 3],
    agents: Vec<Agent>,
    next: Option<String>,
    may_edit: bool,
}

pub(super) async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let status = query.status.unwrap_or_default();
    let known = Some(status.as_str()).filter(|status| STATES.contains(status));
    let skip: usize = query.skip.and_then(|skip| skip.parse().ok()).unwrap_or(0).min(1_000_000);
    let filtered = |path: Path| {
        path.with_some("search", query.search.as_deref()).with_some("status", known).with_some("agent_type", query.agent_type.as_deref())
    };
    // One more than is shown says whether there are more.
    let mut agents: Vec<Agent> = visit.get(filtered(Path::new("/agents").with("limit", PAGE + 1).with("skip", skip))).await?;
    let here = visit.page("agents");
    let next = (agents.len() > PAGE).then(|| filtered(here.clone()).with("skip", skip + PAGE).into());
    agents.truncate(PAGE);
    let is_filtered = [&query.search, &query.agent_type].into_iter().flatten().any(|text| !text.is_empty()) || known.is_some();
    let frame = Frame::new(&visit, Section::Agents, "Agents").told(query.told.as_deref(), &TOLD);
    show(&ListPage {
        frame,
        may_edit: visit.may("edit_agents"),
        here: here.into(),
        search: query.search.unwrap_or_default(),
        agent_type: query.agent_type.unwrap_or_default(),
        is_filtered,
        status,
        states: STATES,
        agents,
        next,
    })
}
