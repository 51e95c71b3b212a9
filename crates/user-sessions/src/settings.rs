//! What a session is for: which apps, tools and accounts, and how they are shown. Functions of values.

use std::collections::BTreeMap;

use kernel::AgentId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How the tools of a session are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shown {
    /// Each by itself.
    #[default]
    All,
    /// Three in place of all: find, call, connect.
    Search,
}

/// What a session lets its end user use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserSessionSettings {
    /// The integrations, by key; all where nothing is said.
    pub apps: Option<Vec<String>>,
    /// The tools of this agent, in place of the apps.
    pub agent: Option<AgentId>,
    /// The tools, each a ref without its connection; all of the apps where nothing is said.
    pub tools: Option<Vec<String>>,
    /// The account to use, by integration: its slug, alias or id.
    pub accounts: BTreeMap<String, String>,
    /// Rules for calls, as the project's are written; they can only be stricter.
    pub permissions: Option<Value>,
    pub shown: Shown,
    /// Whether the end user may connect accounts of their own.
    pub may_connect: bool,
    /// Whether the end user may approve calls that wait.
    pub may_approve: bool,
    /// What triggers start that the end user makes; nothing where they make none.
    pub triggers: Option<SessionTarget>,
}

/// What events start that an end user watches in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionTarget {
    /// They go to the webhook of the project.
    Webhook,
    /// A workflow runs: `references`, `inputs_fields` and `selector`, as a trigger has them.
    Workflow(Map<String, Value>),
}

impl UserSessionSettings {
    /// Whether an integration is among the apps.
    pub fn has_app(&self, integration: &str) -> bool {
        self.apps.as_ref().is_none_or(|apps| apps.iter().any(|app| app == integration))
            && self.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool.split('.').nth(2) == Some(integration)))
    }

    /// Whether an action may be called.
    pub fn has_tool(&self, provider: &str, integration: &str, action: &str) -> bool {
        let name = format!("tools.{provider}.{integration}.{action}");
        self.has_app(integration) && self.tools.as_ref().is_none_or(|tools| tools.contains(&name))
    }

    /// Whether somebody named the integration, so that its tools are shown before there is an account.
    pub fn names_app(&self, integration: &str) -> bool {
        (self.apps.is_some() || self.tools.is_some()) && self.has_app(integration)
    }

    /// The account that a call goes through which names `account`; nothing where another was chosen for the session.
    pub fn account<'a>(&'a self, integration: &str, account: &'a str, newest: &str) -> Option<&'a str> {
        match self.accounts.get(integration) {
            None => Some(account),
            Some(pinned) if account == newest || account == pinned => Some(pinned),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_not_there() {
        let open = UserSessionSettings::default();
        assert!(open.has_tool("native", "github", "X") && !open.names_app("github"));
        let apps = UserSessionSettings { apps: Some(vec!["github".to_owned()]), ..UserSessionSettings::default() };
        assert!(apps.has_tool("native", "github", "X") && apps.names_app("github") && !apps.has_tool("native", "slack", "X"));
        let none = UserSessionSettings { apps: Some(Vec::new()), ..UserSessionSettings::default() };
        assert!(!none.has_tool("native", "github", "X"));
        let tools = UserSessionSettings { tools: Some(vec!["tools.native.github.X".to_owned()]), ..UserSessionSettings::default() };
        assert!(
            tools.has_tool("native", "github", "X")
                && !tools.has_tool("native", "github", "Y")
                && !tools.has_tool("openapi", "github", "X")
        );
        assert!(tools.has_app("github") && !tools.has_app("slack"));
    }

    #[test]
    fn a_chosen_account_is_the_only_one() {
        let accounts = BTreeMap::from([("github".to_owned(), "work".to_owned())]);
        let pinned = UserSessionSettings { accounts, ..UserSessionSettings::default() };
        assert_eq!(pinned.account("github", "auto", "auto"), Some("work"));
        assert_eq!(pinned.account("github", "work", "auto"), Some("work"));
        assert_eq!(pinned.account("github", "home", "auto"), None);
        assert_eq!(pinned.account("slack", "home", "auto"), Some("home"));
    }
}
