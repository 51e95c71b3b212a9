//! The tools that an agent would be given for a prompt, and what is left out.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Agent, Reason, tabs};
use crate::frame::{Frame, Link, Section, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, Tone, badge};
use crate::visit::Visit;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolsetQuery {
    prompt: Option<String>,
    limit: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Toolset {
    count: u64,
    total: u64,
    tools: Vec<Tool>,
    left_out: Vec<LeftOut>,
}

#[derive(Debug, Deserialize)]
struct Tool {
    call_ref: String,
    title: String,
    description: String,
    read_only: Option<bool>,
    destructive: Option<bool>,
    permission: String,
    score: Option<f64>,
    named: bool,
}

impl Tool {
    fn effect(&self) -> &'static str {
        match (self.read_only, self.destructive) {
            (Some(true), _) => "reads",
            (_, Some(true)) => "destroys",
            (None, None) => "not known",
            _ => "changes",
        }
    }

    fn allowed(&self) -> Markup {
        match self.permission.as_str() {
            "allow" => badge(Tone::Good, "runs"),
            "ask" => badge(Tone::Wait, "asks a person"),
            other => badge(Tone::Bad, other),
        }
    }

    fn fit(&self) -> String {
        match self.score {
            _ if self.named => "named in the prompt".to_owned(),
            Some(score) => format!("{score:.2}"),
            None => "–".to_owned(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct LeftOut {
    tool: String,
    reason: Reason,
}

#[derive(Template)]
#[template(path = "agent_toolset.html")]
struct ToolsetPage {
    frame: Frame,
    all: String,
    here: String,
    tabs: Vec<Link>,
    agent: Agent,
    prompt: String,
    limit: String,
    toolset: Option<Toolset>,
}

pub(super) async fn toolset(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<ToolsetQuery>) -> PageResult {
    let agent = Agent::read(&visit, &id).await?;
    let (prompt, limit) = (query.prompt.unwrap_or_default(), query.limit.unwrap_or_default());
    let asked: Result<Toolset, Refusal> = visit.post(Path::new("/agents").at(&id).at("toolset"), body(&prompt, &limit)).await;
    let (toolset, refusal) = match asked {
        Ok(toolset) => (Some(toolset), None),
        Err(refusal) => (None, Some(refusal)),
    };
    let all = visit.page("agents");
    let frame = Frame::new(&visit, Section::Agents, format!("Tools of {}", agent.name)).refused(refusal.as_ref());
    let page = ToolsetPage {
        frame,
        here: all.clone().at(&id).into(),
        all: all.into(),
        tabs: tabs(&visit, &id, "toolset"),
        agent,
        prompt,
        limit,
        toolset,
    };
    show_refused(refusal.as_ref(), &page)
}

/// What to ask for: everything that the limit leaves out is named too.
fn body(prompt: &str, limit: &str) -> Value {
    let mut body = Map::new();
    body.insert("excluded".to_owned(), true.into());
    if !prompt.trim().is_empty() {
        body.insert("prompt".to_owned(), prompt.into());
    }
    if let Ok(limit) = limit.trim().parse::<u64>() {
        body.insert("limit".to_owned(), limit.into());
    }
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::body;

    #[test]
    fn only_what_was_typed_is_asked() {
        assert_eq!(body("find it", "5"), json!({"excluded": true, "prompt": "find it", "limit": 5}));
        assert_eq!(body(" ", "many"), json!({"excluded": true}));
    }
}
