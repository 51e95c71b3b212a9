//! Finding a tool: by a sentence, or among those that were called lately.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::choice::Choice;
use crate::refusal::Refusal;
use crate::ui::{Markup, Tone, badge};
use crate::visit::Visit;

const ALTERNATIVES: usize = 8;
const LATELY: usize = 10;

/// What fits a sentence.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) tools: Vec<FoundTool>,
    pub(super) notes: Vec<String>,
}

#[derive(Debug)]
pub(super) struct FoundTool {
    pub(super) choice: Choice,
    pub(super) page: String,
    pub(super) description: String,
    pub(super) state: Markup,
    pub(super) confidence: Option<String>,
    /// How well it fits, and whether it can be called now.
    fit: (bool, f64),
}

#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    capabilities: Vec<Capability>,
    #[serde(default)]
    connections: Vec<Readiness>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Capability {
    tool: Option<Tool>,
    then: Option<Vec<Tool>>,
    #[serde(default)]
    alternatives: Vec<Tool>,
    trigger: Option<Event>,
    confidence: Option<f64>,
    note: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Tool {
    provider: String,
    integration: String,
    action: String,
    connection: Option<String>,
    description: String,
    confidence: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Event {
    integration: String,
    event_key: String,
}

#[derive(Debug, Deserialize)]
struct Readiness {
    provider: String,
    integration: String,
    state: String,
}

pub(super) async fn find(visit: &Visit, sentence: &str) -> Result<Found, Refusal> {
    let asked = json!({"use_cases": [sentence], "limit_alternatives": ALTERNATIVES, "debug": true});
    let answer: Answer = visit.post("/tools/discover", asked).await?;
    Ok(found(visit, answer))
}

fn found(visit: &Visit, answer: Answer) -> Found {
    let states: BTreeMap<(String, String), String> =
        answer.connections.into_iter().map(|state| ((state.provider, state.integration), state.state)).collect();
    let mut found = Found { notes: answer.notes, ..Found::default() };
    for capability in answer.capabilities {
        let best = capability.tool.map(|tool| Tool { confidence: capability.confidence, ..tool });
        let answer = best.into_iter().chain(capability.then.unwrap_or_default());
        found.tools.extend(answer.map(|tool| found_tool(visit, tool, &states)));
        let mut others: Vec<FoundTool> = capability.alternatives.into_iter().map(|tool| found_tool(visit, tool, &states)).collect();
        others.sort_by(|a, b| best_first(a.fit, b.fit));
        found.tools.extend(others);
        found.notes.extend(capability.note);
        found.notes.extend(capability.trigger.map(|event| {
            format!("This waits for an event: {} of {}. Subscribe to it under Triggers.", event.event_key, event.integration)
        }));
    }
    found
}

/// What can be called now comes before what has to be connected first.
fn best_first(a: (bool, f64), b: (bool, f64)) -> Ordering {
    b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
}

fn found_tool(visit: &Visit, tool: Tool, states: &BTreeMap<(String, String), String>) -> FoundTool {
    let state = states.get(&(tool.provider.clone(), tool.integration.clone()));
    let is_ready = tool.connection.is_some() || state.is_some_and(|state| state == "ready");
    let choice =
        Choice::Action { provider: tool.provider, integration: tool.integration, action: tool.action, connection: tool.connection };
    FoundTool {
        page: choice.page(visit).into(),
        choice,
        description: tool.description,
        state: if is_ready { badge(Tone::Good, "ready") } else { badge(Tone::Plain, "not connected") },
        confidence: tool.confidence.map(percent),
        fit: (is_ready, tool.confidence.unwrap_or_default()),
    }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part.clamp(0.0, 1.0) * 100.0)
}

/// A tool that was called lately.
#[derive(Debug)]
pub(super) struct Recent {
    pub(super) choice: Choice,
    pub(super) page: String,
}

#[derive(Debug, Deserialize)]
struct CallsAnswer {
    calls: Vec<Call>,
}

#[derive(Debug, Deserialize)]
struct Call {
    call_ref: String,
    tool: Option<String>,
}

/// The tools of the last calls, each once; none where the visitor may not see calls.
pub(super) async fn recent(visit: &Visit) -> Vec<Recent> {
    let answer = visit.get::<CallsAnswer>("/tools/calls?limit=100").await;
    let calls = answer.map(|answer| answer.calls).unwrap_or_default();
    let choices = each_once(calls.into_iter().filter_map(|call| Choice::of_ref(call.tool.as_ref().unwrap_or(&call.call_ref))));
    choices.into_iter().map(|choice| Recent { page: choice.page(visit).into(), choice }).collect()
}

fn each_once(choices: impl Iterator<Item = Choice>) -> Vec<Choice> {
    let mut seen = Vec::new();
    for choice in choices {
        if !seen.contains(&choice) && seen.len() < LATELY {
            seen.push(choice);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_calls_are_listed_once_and_in_order() {
        let refs = ["workflow.variant.a", "tools.p.i.A.c", "workflow.variant.a", "tools.agenta.op"];
        let names: Vec<String> =
            each_once(refs.into_iter().filter_map(Choice::of_ref)).iter().map(|choice| choice.name().to_owned()).collect();
        assert_eq!(names, ["a", "A"]);
    }

    #[test]
    fn what_can_be_called_comes_first() {
        let mut fits = vec![(false, 0.9), (true, 0.1), (true, 0.4)];
        fits.sort_by(|a, b| best_first(*a, *b));
        assert_eq!(fits, [(true, 0.4), (true, 0.1), (false, 0.9)]);
    }

    #[test]
    fn confidence_is_a_percentage() {
        assert_eq!([0.911, 0.0, 1.5].map(percent), ["91 %", "0 %", "100 %"]);
    }
}
