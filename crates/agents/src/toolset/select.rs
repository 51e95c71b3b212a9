//! Which tools of a toolset a model is given: those that the prompt names, then those that fit it best.

use std::cmp::Reverse;
use std::collections::HashSet;

use kernel::CallRef;

use super::relevance::relevance;
use super::tool::{GrantedTool, LeftOut};
use crate::Reason;

/// A priority of this much counts for half as much relevance again, one of as much less for half of it.
const TILT: f64 = 100.0;

/// A tool that was picked.
#[derive(Clone, Copy, Debug)]
pub struct Picked<'a> {
    pub tool: &'a GrantedTool,
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

pub(super) fn select<'a>(tools: &'a [GrantedTool], prompt: Option<&str>, limit: Option<usize>) -> Selection<'a> {
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
fn rank<'a>(tools: &'a [GrantedTool], prompt: Option<&str>) -> Vec<Picked<'a>> {
    let Some(prompt) = prompt else {
        return tools.iter().map(|tool| Picked { tool, score: None, is_named: false }).collect();
    };
    let said = PromptWords::new(prompt);
    let scores = relevance(prompt, tools);
    let mut ranked: Vec<(f64, Picked<'_>)> = tools
        .iter()
        .zip(scores)
        .map(|(tool, score)| (tool, f64::from(score)))
        .map(|(tool, score)| (score * tilt(tool.priority), Picked { tool, score: Some(score), is_named: said.names(tool) }))
        .collect();
    ranked.sort_by(|(left, a), (right, b)| Reverse(a.is_named).cmp(&Reverse(b.is_named)).then(right.total_cmp(left)));
    ranked.into_iter().map(|(_, picked)| picked).collect()
}

#[expect(clippy::cast_precision_loss, reason = "priorities are within a million")]
fn tilt(priority: i64) -> f64 {
    1.0 + 0.5 * (priority as f64 / TILT).clamp(-1.0, 1.0)
}

/// The words of a prompt that could be names of tools.
struct PromptWords {
    words: HashSet<String>,
    folded: HashSet<String>,
    /// Whether one of them is made of several, as most names are.
    has_compound: bool,
}

impl PromptWords {
    fn new(prompt: &str) -> Self {
        let words = prompt.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
        let words: HashSet<String> = words.map(|word| word.trim_matches(['.', '-']).to_owned()).filter(|word| !word.is_empty()).collect();
        let folded = words.iter().map(|word| word.to_lowercase()).collect();
        let has_compound = words.iter().any(|word| word.contains(['_', '.']));
        Self { words, folded, has_compound }
    }

    fn has(&self, name: &str) -> bool {
        self.folded.contains(&name.to_lowercase())
    }

    /// Case does not matter, but for a key of a single word: `search` in a sentence is hardly the name of `SEARCH`.
    fn names(&self, tool: &GrantedTool) -> bool {
        let is_key = || tool.tool.action().is_some_and(|(_, action)| !action.key.contains('_') && self.words.contains(&action.key));
        self.has(&tool.name) || is_key() || (self.has_compound && self.names_in_parts(tool))
    }

    /// Whether a word that is made of several names the tool.
    fn names_in_parts(&self, tool: &GrantedTool) -> bool {
        if self.has(&tool.call_ref.to_string()) {
            return true;
        }
        if let CallRef::Reserved { op } = &tool.call_ref {
            return op.contains('_') && self.has(op);
        }
        let Some((integration, action)) = tool.tool.action() else { return false };
        let (app, key) = (&integration.key, &action.key);
        (key.contains('_') && self.has(key))
            || self.has(&format!("{app}.{key}"))
            || self.has(&format!("{app}_{key}"))
            || self.has(&format!("{}_{key}", app.replace('-', "_")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::{Action, Draft, Integration};
    use definitions::{DescribedTool, Tool, Verdict};
    use serde_json::json;

    use super::super::tool::give_names;
    use super::*;
    use crate::AppName;

    fn tool(integration: &Arc<Integration>, key: &str, priority: i64) -> GrantedTool {
        GrantedTool {
            call_ref: format!("tools.native.{}.{key}.main", integration.key).parse().unwrap(),
            name: String::new(),
            app: Some(AppName::of(&integration.key)),
            connection: Some("main".to_owned()),
            permission: Verdict::Allow,
            priority,
            failure: None,
            tool: Tool::Action(integration.clone(), integration.action(key).unwrap().clone()),
            wished: None,
        }
    }

    fn tools(priorities: &[(&str, i64)], keys: &[&str]) -> Vec<GrantedTool> {
        let mut tools = Vec::new();
        for (app, priority) in priorities {
            let actions = keys.iter().map(|key| Action::new((*key).to_owned(), (*key).to_owned(), String::new(), &json!({})));
            let draft = Draft { key: (*app).to_owned(), actions: actions.collect(), ..Draft::default() };
            let integration = Arc::new(Integration::new("native", draft));
            tools.extend(keys.iter().map(|key| tool(&integration, key, *priority)));
        }
        give_names(&mut tools);
        tools
    }

    fn picked(tools: &[GrantedTool], prompt: &str, limit: usize) -> Vec<String> {
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

    fn best(prompt: &str) -> &'static str {
        let offered = [
            ("CREATE_AN_ISSUE", "github", "Opens an issue in a repository."),
            ("LIST_REPOSITORIES", "github", "Lists the repositories of an account."),
            ("SEND_MESSAGE", "slack", "Sends a message to a channel."),
            ("CREATE_EVENT", "google-calendar", "Adds an event to a calendar."),
        ];
        let mut tools: Vec<GrantedTool> = Vec::new();
        for (key, app, description) in offered {
            let action = Action::new(key.to_owned(), key.to_owned(), description.to_owned(), &json!({}));
            let draft = Draft { key: app.to_owned(), name: app.to_owned(), actions: vec![action], ..Draft::default() };
            tools.push(tool(&Arc::new(Integration::new("native", draft)), key, 0));
        }
        let picked = select(&tools, Some(prompt), None).picked;
        assert!(picked[0].score > Some(0.0), "{prompt}");
        offered.iter().find(|(key, ..)| picked[0].tool.call_ref.to_string().contains(key)).unwrap().0
    }

    #[test]
    fn the_words_of_a_prompt_lead_to_the_tool() {
        for (prompt, tool) in [
            ("please open a new issue in the github repo", "CREATE_AN_ISSUE"),
            ("which repository do I have?", "LIST_REPOSITORIES"),
            ("tell the slack channel that we are done", "SEND_MESSAGE"),
            ("put it on my calendars", "CREATE_EVENT"),
        ] {
            assert_eq!(best(prompt), tool, "{prompt}");
        }
    }

    #[test]
    fn nothing_in_common_is_zero() {
        let mut tools = tools(&[("github", 0)], &["CREATE_AN_ISSUE"]);
        let say = DescribedTool {
            title: "say".to_owned(),
            description: "Greets a visitor.".to_owned(),
            input_schema: json!({}),
            read_only: None,
        };
        tools.push(GrantedTool {
            call_ref: "workflow.variant.say".parse().unwrap(),
            app: None,
            tool: Tool::Described(say),
            ..tools[0].clone()
        });
        for prompt in ["", "the of and", "weather tomorrow", "👋 …"] {
            assert!(select(&tools, Some(prompt), None).picked.iter().all(|picked| picked.score == Some(0.0)), "{prompt}");
        }
        let greeting = select(&tools, Some("greet the visitor"), Some(1)).picked;
        assert_eq!((greeting.len(), greeting[0].tool.tool.title()), (1, "say"), "what is no action is found too");
    }
}
