//! The list of calls.

use askama::Template;
use axum::extract::Query;

use super::filters::Asked;
use super::names::{Choice, Names, choices};
use super::{Answer, Call};
use crate::frame::{Frame, Section, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, folded};
use crate::visit::Visit;

/// Messages longer than this are folded.
const SHOWN: usize = 140;
const OUTCOMES: [(&str, &str); 6] = [
    ("ok", "ok"),
    ("error", "error: the tool said no"),
    ("failed", "failed: did not run to its end"),
    ("waiting", "waiting: a person is asked first"),
    ("running", "running"),
    ("unknown", "unknown: may have taken effect"),
];

/// A call as a row of the list, and of its live tail.
#[derive(Debug)]
pub(super) struct Row {
    href: String,
    call: Call,
    message: Option<Markup>,
    agent: Option<(String, String)>,
}

impl Row {
    pub(super) fn new(visit: &Visit, names: &Names, call: Call) -> Self {
        let agent = call.agent_id.as_deref().map(|id| (names.agent(id).to_owned(), visit.page("agents").at(id).into()));
        let message = call.message.as_deref().map(|message| folded(message, SHOWN));
        Self { href: visit.page("calls").at(&call.id).into(), message, agent, call }
    }

    pub(super) fn id(&self) -> &str {
        &self.call.id
    }
}

/// One row alone, as the live tail sends it.
#[derive(Template)]
#[template(path = "calls_row.html")]
pub(super) struct RowPart<'a> {
    pub(super) row: &'a Row,
}

/// Where else the same calls can be had.
#[derive(Debug)]
struct Links {
    here: String,
    /// Without new ones coming in.
    still: String,
    live: String,
    live_rows: String,
    csv: String,
    lines: String,
    /// The newest calls, seen from an older page.
    newest: Option<String>,
    older: Option<String>,
}

impl Links {
    fn new(visit: &Visit, asked: &Asked, newest_id: Option<&str>, cursor: Option<&str>) -> Self {
        let here = visit.page("calls");
        let all = asked.filtered(here.clone());
        let export = |format: &str| asked.filtered(here.clone().at("export")).with("format", format).into();
        let is_older = asked.cursor.as_deref().is_some_and(|cursor| !cursor.is_empty());
        Self {
            still: all.clone().into(),
            live: all.clone().with("live", 1).into(),
            live_rows: asked.filtered(here.clone().at("live")).with_some("after", newest_id).into(),
            csv: export("csv"),
            lines: export("jsonl"),
            older: cursor.map(|cursor| all.clone().with("cursor", cursor).into()),
            newest: is_older.then(|| all.into()),
            here: here.into(),
        }
    }
}

#[derive(Template)]
#[template(path = "calls.html")]
struct ListPage {
    frame: Frame,
    links: Links,
    asked: Asked,
    connections: Vec<Choice>,
    keys: Vec<Choice>,
    agents: Vec<Choice>,
    outcomes: Vec<Choice>,
    rows: Vec<Row>,
    is_live: bool,
}

pub(super) async fn list(visit: Visit, Query(asked): Query<Asked>) -> PageResult {
    let path = asked.filtered(Path::new("/tools/calls")).with_some("cursor", asked.cursor.as_deref());
    let (answer, names) = tokio::join!(visit.get::<Answer>(path), Names::of_all(&visit));
    let (answer, refusal) = split(answer)?;
    let links = Links::new(&visit, &asked, answer.calls.first().map(|call| call.id.as_str()), answer.cursor.as_deref());
    let outcomes = OUTCOMES.map(|(outcome, words)| (outcome.to_owned(), words.to_owned()));
    let page = ListPage {
        frame: Frame::new(&visit, Section::Calls, "Calls").refused(refusal.as_ref()),
        links,
        connections: choices(&names.connections, asked.connection_id.as_deref()),
        keys: choices(&names.keys, asked.key_id.as_deref()),
        agents: choices(&names.agents, asked.agent_id.as_deref()),
        outcomes: choices(&outcomes, asked.outcome.as_deref()),
        rows: answer.calls.into_iter().map(|call| Row::new(&visit, &names, call)).collect(),
        is_live: asked.is_live() && refusal.is_none(),
        asked,
    };
    show_refused(refusal.as_ref(), &page)
}

/// A filter that the API does not take is said above the form that holds it; whoever may not look at all gets no form.
fn split(answer: Result<Answer, Refusal>) -> Result<(Answer, Option<Refusal>), Refusal> {
    match answer {
        Ok(answer) => Ok((answer, None)),
        Err(refusal) if refusal.is_forbidden() => Err(refusal),
        Err(refusal) => Ok((Answer { calls: Vec::new(), cursor: None }, Some(refusal))),
    }
}
