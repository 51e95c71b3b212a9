//! What a session has and what it has not. A tool outside of it is neither found, listed nor run. Functions of values.

use catalog::Action;

use super::blocks::{Tag, TagFilter};
use super::config::Config;
use crate::names::{Tool, Toolkit};

/// Whether a tool has a tag. Every tool of ours reaches out into the world, and one that only reads can be repeated.
fn has(action: &Action, tag: Tag) -> bool {
    match tag {
        Tag::ReadOnlyHint | Tag::IdempotentHint => action.read_only,
        Tag::DestructiveHint => action.destructive,
        Tag::OpenWorldHint => true,
    }
}

impl TagFilter {
    fn lets(&self, action: &Action) -> bool {
        self.enable.as_ref().is_none_or(|tags| tags.iter().any(|tag| has(action, *tag)))
            && !self.disable.iter().flatten().any(|tag| has(action, *tag))
    }
}

impl Config {
    pub(crate) fn has_toolkit(&self, slug: &str) -> bool {
        let Some(toolkits) = &self.toolkits else { return true };
        let names = |list: &Vec<String>| list.iter().any(|known| known == slug);
        toolkits.enable.as_ref().is_none_or(names) && !toolkits.disable.as_ref().is_some_and(names)
    }

    pub(crate) fn has_tool(&self, tool: &Tool) -> bool {
        self.has(&tool.toolkit, tool.slug(), tool.action())
    }

    fn has(&self, toolkit: &Toolkit, slug: &str, action: &Action) -> bool {
        if !self.has_toolkit(&toolkit.slug) {
            return false;
        }
        let names = |list: &Vec<String>| list.iter().any(|known| known == slug);
        let own = self.tools.get(&toolkit.slug);
        // A list of tools goes before tags, and tags of a toolkit before those of the session.
        if let Some(enabled) = own.and_then(|own| own.enable.as_ref()) {
            return names(enabled);
        }
        if let Some(disabled) = own.and_then(|own| own.disable.as_ref()) {
            return !names(disabled);
        }
        let tags = own.and_then(|own| own.tags.as_ref()).or(self.tags.as_ref());
        tags.is_none_or(|tags| tags.lets(action))
    }

    /// Whether the session itself wants a person to be asked before the tool is called.
    pub(crate) fn asks_before(&self, tool: &Tool) -> bool {
        let (toolkit, action) = (&tool.toolkit.slug, tool.action());
        let own = self.tools.get(toolkit);
        let by_tag = |tags: Option<&TagFilter>| tags.is_some_and(|tags| tags.require_approval.iter().any(|tag| has(action, *tag)));
        self.toolkits.as_ref().is_some_and(|toolkits| toolkits.require_approval.contains(toolkit))
            || own.is_some_and(|own| own.require_approval.iter().any(|slug| slug == tool.slug()))
            || by_tag(own.and_then(|own| own.tags.as_ref()))
            || by_tag(self.tags.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::{Draft, Integration};
    use serde_json::{Value, json};

    use super::*;
    use crate::names::Names;
    use crate::sessions::blocks::SessionBlocks;

    fn names() -> Names {
        let action = |key: &str, read_only, destructive| {
            let mut action = Action::new(key.to_owned(), key.to_owned(), String::new(), &json!({"type": "object"}));
            (action.read_only, action.destructive) = (read_only, destructive);
            action
        };
        let integration = |key: &str| {
            let actions = vec![action("READ", true, false), action("WRITE", false, false), action("DROP", false, true)];
            Arc::new(Integration::new("native", Draft { key: key.to_owned(), actions, ..Draft::default() }))
        };
        Names::of(vec![integration("git-hub"), integration("mail")])
    }

    fn changed(config: Config, blocks: Value) -> Result<Config, String> {
        let blocks: SessionBlocks = serde_json::from_value(blocks).unwrap();
        config.changed(blocks, &names()).map_err(|refusal| refusal.message)
    }

    fn shown(blocks: Value) -> Vec<String> {
        let config = changed(Config::default(), blocks).unwrap();
        let names = names();
        let tools = names.toolkits().iter().flat_map(Toolkit::tools).filter(|tool| config.has_tool(tool));
        tools.map(|tool| tool.slug().to_owned()).collect()
    }

    #[test]
    fn what_is_outside_is_not_there() {
        assert_eq!(shown(json!({})).len(), 6);
        assert_eq!(shown(json!({"toolkits": {"enable": ["GitHub"]}})), ["GITHUB_READ", "GITHUB_WRITE", "GITHUB_DROP"]);
        assert_eq!(shown(json!({"toolkits": {"enable": []}})), Vec::<String>::new());
        assert_eq!(shown(json!({"toolkits": {"disable": ["mail"]}})), ["GITHUB_READ", "GITHUB_WRITE", "GITHUB_DROP"]);
        assert_eq!(
            shown(
                json!({"toolkits": {"enable": ["github"]}, "tools": {"github": {"enable": ["github_read"]}, "mail": {"enable": ["MAIL_READ"]}}})
            ),
            ["GITHUB_READ"],
            "a tool does not open its toolkit"
        );
        assert_eq!(
            shown(json!({"tools": {"github": {"disable": ["GITHUB_DROP"]}}, "tags": ["readOnlyHint"]})),
            ["GITHUB_READ", "GITHUB_WRITE", "MAIL_READ"],
            "a list goes before tags"
        );
        assert_eq!(
            shown(json!({"tools": {"github": {"tags": {"disable": ["destructiveHint"]}}}, "tags": {"enable": ["destructiveHint"]}})),
            ["GITHUB_READ", "GITHUB_WRITE", "MAIL_DROP"]
        );
        assert_eq!(
            shown(json!({"tags": {"enable": ["openWorldHint"], "disable": ["idempotentHint", "destructiveHint"]}})),
            ["GITHUB_WRITE", "MAIL_WRITE"]
        );
    }

    #[test]
    fn a_session_can_ask_before_a_call() {
        let asks = |blocks: Value| {
            let (config, names) = (changed(Config::default(), blocks).unwrap(), names());
            let tools = names.toolkits().iter().flat_map(Toolkit::tools).filter(|tool| config.asks_before(tool));
            tools.map(|tool| tool.slug().to_owned()).collect::<Vec<_>>()
        };
        assert!(asks(json!({})).is_empty());
        assert_eq!(asks(json!({"toolkits": {"require_approval": ["mail"]}})), ["MAIL_READ", "MAIL_WRITE", "MAIL_DROP"]);
        assert_eq!(asks(json!({"tools": {"mail": {"require_approval": ["MAIL_READ"]}}})), ["MAIL_READ"]);
        assert_eq!(asks(json!({"tags": {"require_approval": ["destructiveHint"]}})), ["GITHUB_DROP", "MAIL_DROP"]);
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let first = json!({"toolkits": {"enable": ["github"]}, "manage_connections": {"enable": false, "callback_url": "https://a.example"},
            "multi_account": {"enable": true, "max_accounts_per_toolkit": 3}, "preload": {"tools": "all"}});
        let config = changed(Config::default(), first).unwrap();
        let next = json!({"manage_connections": {"callback_url": null}, "multi_account": {"max_accounts_per_toolkit": null}, "search": {"enable": false}});
        let config = changed(config, next).unwrap();
        assert!(!config.connects() && config.connecting.callback_url.is_none() && !config.searches());
        assert_eq!(config.most_accounts(), 5);
        assert!(!config.has_toolkit("mail"));
        let open = changed(config.clone(), json!({"toolkits": null})).unwrap_err();
        assert!(open.contains("`all`"), "{open}");
        let open = changed(config, json!({"toolkits": null, "preload": null, "manage_connections": null})).unwrap();
        assert!(open.has_toolkit("mail") && open.connects());
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        for (blocks, says) in [
            (json!({"toolkits": {"enable": ["git"]}}), "`git` was not found"),
            (json!({"toolkits": {"enable": ["mail"], "disable": ["github"]}}), "either `enable` or `disable`"),
            (json!({"tools": {"mail": {"enable": ["GITHUB_READ"]}}}), "is a tool of `github`"),
            (json!({"tools": {"mail": {"enable": [], "tags": []}}}), "either `enable`, `disable` or `tags`"),
            (json!({"preload": {"tools": ["MAIL_REED"]}}), "MAIL_READ"),
            (json!({"preload": {"tools": "all"}}), "`all` only where"),
            (json!({"preload": {"tools": ["MAIL_READ"]}, "toolkits": {"enable": ["github"]}}), "outside"),
            (json!({"multi_account": {"max_accounts_per_toolkit": 1}}), "2 to 10"),
            (json!({"connected_accounts": {"nothing": "ca_1"}}), "`nothing` was not found"),
        ] {
            let error = changed(Config::default(), blocks.clone()).unwrap_err();
            assert!(error.contains(says), "{blocks}: {error}");
        }
        assert!(serde_json::from_value::<SessionBlocks>(json!({"tags": ["createHint"]})).is_err(), "a tag that no tool of ours has");
        assert!(serde_json::from_value::<SessionBlocks>(json!({"preload": {"tools": "some"}})).is_err());
    }
}
