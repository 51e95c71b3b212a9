//! Runs: a list, and one with its steps.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::timeline::{Bar, bar};
use super::{Revision, sections};
use crate::frame::{Frame, Link, Section, show};
use crate::path::Path;
use crate::refusal::PageResult;
use crate::ui::{self, Markup, Tone, badge};
use crate::visit::Visit;

const STATES: [&str; 4] = ["succeeded", "failed", "waiting", "cancelled"];
const PAGE: usize = 50;

#[derive(Debug, Deserialize)]
struct RunsAnswer {
    runs: Vec<Run>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RunAnswer {
    run: Run,
}

#[derive(Debug, Deserialize)]
struct Run {
    id: String,
    workflow_id: String,
    workflow_revision_id: String,
    state: String,
    approval_id: Option<String>,
    status: Status,
    #[serde(default)]
    inputs: Value,
    #[serde(default)]
    outputs: Value,
    duration_ms: f64,
    created_at: String,
    #[serde(default)]
    steps: Option<Vec<Step>>,
    agent: Option<AgentPart>,
}

/// What only runs of agents have.
#[derive(Debug, Deserialize)]
struct AgentPart {
    approval_url: Option<String>,
    usage: Used,
}

#[derive(Debug, Deserialize)]
struct Used {
    turns: u64,
    tool_calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    usd: f64,
}

impl Used {
    fn shown(&self) -> String {
        let cost = if self.usd > 0.0 { format!(", ${:.4}", self.usd) } else { String::new() };
        let Self { turns, tool_calls, input_tokens, output_tokens, .. } = self;
        format!("{turns} turns, {tool_calls} calls, {input_tokens} tokens read and {output_tokens} written{cost}")
    }
}

#[derive(Debug, Deserialize)]
struct Status {
    code: u16,
    message: Option<String>,
}

impl Run {
    fn badge(&self) -> Markup {
        let tone = match self.state.as_str() {
            "succeeded" => Tone::Good,
            "waiting" => Tone::Wait,
            "failed" => Tone::Bad,
            _ => Tone::Plain,
        };
        badge(tone, &self.state)
    }

    fn has_succeeded(&self) -> bool {
        self.state == "succeeded"
    }

    /// Why it did not succeed.
    fn message(&self) -> &str {
        if self.has_succeeded() { "" } else { self.status.message.as_deref().unwrap_or_default() }
    }

    fn took(&self) -> String {
        ui::duration_ms(self.duration_ms)
    }
}

#[derive(Debug, Deserialize)]
struct Step {
    name: String,
    call: String,
    state: String,
    status: Option<Status>,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    result: Value,
    started_at: String,
    duration_ms: f64,
    note: Option<String>,
}

impl Step {
    fn badge(&self) -> Markup {
        let tone = match self.state.as_str() {
            "done" => Tone::Good,
            "waiting" => Tone::Wait,
            "failed" | "unknown" | "unfinished" => Tone::Bad,
            _ => Tone::Plain,
        };
        badge(tone, &self.state)
    }

    fn took(&self) -> String {
        ui::duration_ms(self.duration_ms)
    }

    fn message(&self) -> &str {
        self.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or_default()
    }

    fn is_waiting(&self) -> bool {
        self.state == "waiting"
    }

    fn bar(&self, run: &Run) -> Option<Bar> {
        bar(&run.created_at, run.duration_ms, &self.started_at, self.duration_ms)
    }

    fn is_bad(&self) -> bool {
        matches!(self.state.as_str(), "failed" | "unknown" | "unfinished")
    }
}

#[derive(Debug, Deserialize)]
struct NamesAnswer {
    workflows: Vec<Named>,
}

#[derive(Debug, Deserialize)]
struct Named {
    id: String,
    slug: String,
    name: Option<String>,
}

/// The names of workflows, archived ones too.
async fn names(visit: &Visit) -> Vec<(String, String)> {
    let answer = visit.post::<NamesAnswer>("/workflows/query", json!({"include_archived": true, "windowing": {"limit": 500}})).await;
    let named = |named: Named| (named.id, named.name.filter(|name| !name.is_empty()).unwrap_or(named.slug));
    answer.map(|answer| answer.workflows.into_iter().map(named).collect()).unwrap_or_default()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListQuery {
    workflow_id: Option<String>,
    state: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct ListPage {
    frame: Frame,
    all: String,
    here: String,
    sections: Vec<Link>,
    workflow_id: String,
    state: String,
    states: [&'static str; 4],
    workflows: Vec<(String, String)>,
    names: HashMap<String, String>,
    runs: Vec<Run>,
    next: Option<String>,
}

impl ListPage {
    fn name(&self, id: &str) -> &str {
        self.names.get(id).map_or("a workflow", String::as_str)
    }
}

pub(super) async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    let (workflow, state) = (query.workflow_id.unwrap_or_default(), query.state.unwrap_or_default());
    let filtered = |path: Path| path.with_some("workflow_id", Some(&workflow)).with_some("state", Some(&state));
    let asked = filtered(Path::new("/workflows/runs").with("limit", PAGE)).with_some("cursor", query.cursor.as_deref());
    let answer: RunsAnswer = visit.get(asked).await?;
    let all = visit.page("workflows");
    let here = all.clone().at("runs");
    let next = answer.cursor.map(|cursor| filtered(here.clone()).with("cursor", cursor).into());
    let workflows = names(&visit).await;
    let page = ListPage {
        frame: Frame::new(&visit, Section::Workflows, "Runs"),
        all: all.into(),
        here: here.into(),
        sections: sections(&visit, "runs"),
        workflow_id: workflow,
        runs: answer.runs,
        states: STATES,
        state,
        names: workflows.iter().cloned().collect(),
        workflows,
        next,
    };
    show(&page)
}

#[derive(Debug, Deserialize)]
struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Deserialize)]
struct Call {
    run_id: Option<String>,
    delivery_id: Option<String>,
}

#[derive(Template)]
#[template(path = "run.html")]
struct OnePage {
    frame: Frame,
    all: String,
    workflow: Option<String>,
    version: Option<String>,
    calls: String,
    approvals: String,
    delivery: Option<String>,
    may_run: bool,
    run: Run,
}

impl OnePage {
    fn again(&self) -> String {
        Path::new(&self.workflow_path()).at("run").with("run_id", &self.run.id).into()
    }

    fn workflow_path(&self) -> String {
        Path::new(&self.all).at(&self.run.workflow_id).into()
    }

    fn version_path(&self) -> String {
        Path::new(&self.all).at(&self.run.workflow_id).at("versions").at(&self.run.workflow_revision_id).into()
    }
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let answer: RunAnswer = visit.get(Path::new("/workflows/runs").at(&id)).await?;
    let run = answer.run;
    let workflow = super::Workflow::read(&visit, &run.workflow_id).await.ok();
    let version = Revision::read(&visit, &run.workflow_revision_id).await.ok().map(|revision| revision.version);
    let page = OnePage {
        frame: Frame::new(&visit, Section::Workflows, "Run"),
        all: visit.page("workflows").into(),
        workflow: workflow.map(|workflow| workflow.title().to_owned()),
        version,
        calls: visit.page("calls").with("run_id", &run.id).into(),
        approvals: visit.page("approvals").into(),
        delivery: delivery(&visit, &run.id).await.map(|delivery| visit.page("deliveries").at(delivery).into()),
        may_run: visit.may("run_workflows"),
        run,
    };
    show(&page)
}

/// What a run was given, to give it again.
pub(super) async fn inputs_of(visit: &Visit, run: &str) -> Map<String, Value> {
    let answer = visit.get::<RunAnswer>(Path::new("/workflows/runs").at(run)).await;
    answer.ok().and_then(|answer| answer.run.inputs.as_object().cloned()).unwrap_or_default()
}

/// The delivery that made the run, which its calls know.
async fn delivery(visit: &Visit, run: &str) -> Option<String> {
    let calls: Calls = visit.get(Path::new("/tools/calls").with("run_id", run).with("limit", 1)).await.ok()?;
    calls.calls.into_iter().find(|call| call.run_id.as_deref() == Some(run))?.delivery_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_why_it_did_not_succeed() {
        let run = |state: &str| -> Run {
            let run = json!({"id": "r", "workflow_id": "w", "workflow_revision_id": "v", "state": state, "status": {"code": 424, "message": "Why"}, "duration_ms": 1.0, "created_at": ""});
            serde_json::from_value(run).unwrap()
        };
        assert_eq!(["succeeded", "failed", "waiting"].map(|state| run(state).message().to_owned()), ["", "Why", "Why"]);
        let usage = json!({"turns": 2, "tool_calls": 1, "input_tokens": 30, "output_tokens": 4, "usd": 0.0125});
        let used: Used = serde_json::from_value(usage).unwrap();
        assert_eq!(used.shown(), "2 turns, 1 calls, 30 tokens read and 4 written, $0.0125");
    }
}
