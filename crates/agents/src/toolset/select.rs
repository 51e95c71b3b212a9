//! Which tools of a toolset a model is given: those that the prompt names, then those that fit it best.

use std::cmp::Reverse;
use std::collections::HashSet;

use kernel::CallRef;

use super::relevance::{Candidate, relevance};
use super::tool::{LeftOut, Tool};
use crate::Reason;

/// A priority of this much counts for half as much relevance again, one of as much less for half of it.
const TILT: f64 = 100.0;

/// A tool that was picked.
#[derive(Clone, Copy, Debug)]
pub struct Picked<'a> {
    pub tool: &'a Tool,
    /// How well it fits the prompt; none without a prompt.
    pub score: Option<f64>,
    /// Whether the prompt names it.
    pub is_named: bool,
}

/// What a model is given, and what the limit kept from it.
#[derive(Clone, Debug)]
pub struct Selection<'a> {
    pub picked: Vec<Picked<'a>>,
    pub cut: Vec<LeftOut>,
}

pub(super) fn select<'a>(tools: &'a [Tool], prompt: Option<&str>, limit: Option<usize>) -> Selection<'a> {
    let mut ranked = rank(tools, prompt);
    let total = ranked.len();
    let named = ranked.iter().take_while(|picked| picked.is_named).count();
    let kept = limit.map_or(total, |limit| limit.max(named)).min(total);
    let out = |(index, picked): (usize, Picked<'_>)| LeftOut {
        tool: picked.tool.call_ref.to_string(),
        app: picked.tool.app.clone(),
        reason: Reason::OverLimit { rank: kept + index + 1, total, limit: limit.unwrap_or(total) },
    };
    let cut = ranked.split_off(kept).into_iter().enumerate().map(out).collect();
    Selection { picked: ranked, cut }
}

/// Named ones first, then by relevance tilted by priority. Equals stay in their order.
fn rank<'a>(tools: &'a [Tool], prompt: Option<&str>) -> Vec<Picked<'a>> {
    let Some(prompt) = prompt else {
        return tools.iter().map(|tool| Picked { tool, score: None, is_named: false }).collect();
    };
    let said = Said::new(prompt);
    let candidates: Vec<Candidate<'_>> = tools.iter().map(candidate).collect();
    let scores = relevance(prompt, &candidates);
    let mut ranked: Vec<(f64, Picked<'_>)> = tools
        .iter()
        .zip(scores)
        .map(|(tool, score)| (score * tilt(tool.priority), Picked { tool, score: Some(score), is_named: said.names(tool) }))
        .collect();
    ranked.sort_by(|(left, a), (right, b)| Reverse(a.is_named).cmp(&Reverse(b.is_named)).then(right.total_cmp(left)));
    ranked.into_iter().map(|(_, picked)| picked).collect()
}

#[expect(clippy::cast_precision_loss, reason = "priorities are within a million")]
fn tilt(priority: i64) -> f64 {
    1.0 + 0.5 * (priority as f64 / TILT).clamp(-1.0, 1.0)
}

fn candidate(tool: &Tool) -> Candidate<'_> {
    match tool.action() {
        Some((integration, action)) => Candidate {
            names: [&action.key, &action.name],
            app: [&integration.key, &integration.name],
            use_cases: &action.use_cases,
            description: &action.description,
        },
        None => Candidate { names: [&tool.name, tool.title()], description: tool.description(), ..Candidate::default() },
    }
}

/// The words of a prompt that could be names of tools.
struct Said {
    words: HashSet<String>,
    folded: HashSet<String>,
}

impl Said {
    fn new(prompt: &str) -> Self {
        let words = prompt.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
        let words: HashSet<String> = words.map(|word| word.trim_matches(['.', '-']).to_owned()).filter(|word| !word.is_empty()).collect();
        let folded = words.iter().map(|word| word.to_lowercase()).collect();
        Self { words, folded }
    }

    /// Case does not matter, but for a key of a single word: `search` in a sentence is hardly the name of `SEARCH`.
    fn names(&self, tool: &Tool) -> bool {
        let folded = |name: &str| self.folded.contains(&name.to_lowercase());
        if folded(&tool.name) || folded(&tool.call_ref.to_string()) {
            return true;
        }
        if let CallRef::Reserved { op } = &tool.call_ref {
            return op.contains('_') && folded(op);
        }
        let Some((integration, action)) = tool.action() else { return false };
        let (app, key) = (&integration.key, &action.key);
        let is_key = if key.contains('_') { folded(key) } else { self.words.contains(key.as_str()) };
        is_key || folded(&format!("{app}.{key}")) || folded(&format!("{app}_{key}")) || folded(&format!("{}_{key}", app.replace('-', "_")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::{Action, Draft, Integration};
    use serde_json::json;
    use tools::permission::Permission;

    use super::super::tool::{Shape, give_names};
    use super::*;
    use crate::AppName;

    fn tools(priorities: &[(&str, i64)], keys: &[&str]) -> Vec<Tool> {
        let mut tools = Vec::new();
        for (app, priority) in priorities {
            let integration = Arc::new(Integration::new("native", Draft { key: (*app).to_owned(), ..Draft::default() }));
            for key in keys {
                let action = Arc::new(Action::new((*key).to_owned(), (*key).to_owned(), String::new(), &json!({})));
                let call_ref = format!("tools.native.{app}.{key}.main").parse().unwrap();
                tools.push(Tool {
                    call_ref,
                    name: String::new(),
                    app: Some(AppName::of(app)),
                    connection: Some("main".to_owned()),
                    read_only: None,
                    destructive: None,
                    permission: Permission::Allow,
                    priority: *priority,
                    shape: Shape::Action(integration.clone(), action),
                    wished: None,
                });
            }
        }
        give_names(&mut tools);
        tools
    }

    fn picked(tools: &[Tool], prompt: &str, limit: usize) -> Vec<String> {
        select(tools, Some(prompt), Some(limit)).picked.iter().map(|picked| picked.tool.call_ref.to_string()).collect()
    }

    #[test]
    fn a_tool_that_is_named_is_always_there() {
        let tools = tools(&[("hacker-news", 0), ("github", 0)], &["SEARCH", "LIST_ISSUES", "GET_A_USER"]);
        for name in [
            "GITHUB_LIST_ISSUES",
            "github_list_issues",
            "github.LIST_ISSUES",
            "tools.native.github.LIST_ISSUES.main",
            "tools__native__github__LIST_ISSUES__main",
        ] {
            let kept = picked(&tools, &format!("do not search users with hacker-news; use {name}."), 0);
            assert_eq!(kept, ["tools.native.github.LIST_ISSUES.main"], "{name}");
        }
        assert_eq!(picked(&tools, "call list_issues", 1).len(), 2, "an action key names it at every app");
        assert_eq!(picked(&tools, "HACKER_NEWS_SEARCH", 0), ["tools.native.hacker-news.SEARCH.main"]);
        assert!(picked(&tools, "search", 0).is_empty());
        assert_eq!(picked(&tools, "SEARCH", 0).len(), 2);
    }

    #[test]
    fn priority_tilts_and_does_not_bury() {
        let tools = tools(&[("low", 0), ("high", 50)], &["LIST_ISSUES", "DELETE_USERS"]);
        let order = picked(&tools, "list the issues", 9);
        assert_eq!(order[..2], ["tools.native.high.LIST_ISSUES.main", "tools.native.low.LIST_ISSUES.main"]);
    }

    #[test]
    fn what_the_limit_cuts_is_told() {
        let tools = tools(&[("a", 0)], &["LIST_ISSUES", "DELETE_USERS", "GET_A_USER"]);
        let selection = select(&tools, Some("issues"), Some(1));
        assert_eq!((selection.picked.len(), selection.cut.len()), (1, 2));
        assert_eq!(selection.cut[0].reason, Reason::OverLimit { rank: 2, total: 3, limit: 1 });
        assert_eq!(select(&tools, None, None).picked.len(), 3);
    }
}
