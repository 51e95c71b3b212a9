//! The tools that sessions are steered with: find, read, call several, connect. They are Composio's by their slugs and arguments; what they
//! say and do is ours.

use serde_json::{Map, Value, json};

use super::config::Config;

/// What a meta tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaTool {
    Search,
    Schemas,
    MultiExecute,
    Connect,
    Wait,
}

/// Meta tools that need a machine to run code on. There is none, so they are never listed.
const NEED_A_WORKBENCH: [&str; 2] = ["COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"];
/// Others that Composio has and that are not here.
const NOT_HERE: [&str; 4] = ["COMPOSIO_PROXY_EXECUTE", "COMPOSIO_SUBMIT_FEEDBACK", "COMPOSIO_UPSERT_RECIPE", "COMPOSIO_GET_RECIPE"];

/// What the toolkit of meta tools is called.
pub(super) const TOOLKIT: &str = "composio";

impl MetaTool {
    pub const ALL: [Self; 5] = [Self::Search, Self::Schemas, Self::MultiExecute, Self::Connect, Self::Wait];

    pub fn find(slug: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.slug().eq_ignore_ascii_case(slug))
    }

    /// Whether a slug is that of a meta tool, be it one that is not here.
    pub fn is_one(slug: &str) -> bool {
        let is_it = |known: &&str| known.eq_ignore_ascii_case(slug);
        Self::find(slug).is_some() || NEED_A_WORKBENCH.iter().any(is_it) || NOT_HERE.iter().any(is_it)
    }

    /// Why a slug is no meta tool of ours.
    pub fn why_not(slug: &str) -> String {
        let slug: String = slug.chars().filter(|letter| !letter.is_control()).take(80).collect();
        if NEED_A_WORKBENCH.iter().any(|known| known.eq_ignore_ascii_case(&slug)) {
            return format!(
                "`{slug}` needs a remote workbench, and this server has none. Call tools directly, or run code where the agent runs."
            );
        }
        format!("There is no meta tool `{slug}`. There are {}.", Self::ALL.map(|tool| format!("`{}`", tool.slug())).join(", "))
    }

    pub fn slug(self) -> &'static str {
        match self {
            Self::Search => "COMPOSIO_SEARCH_TOOLS",
            Self::Schemas => "COMPOSIO_GET_TOOL_SCHEMAS",
            Self::MultiExecute => "COMPOSIO_MULTI_EXECUTE_TOOL",
            Self::Connect => "COMPOSIO_MANAGE_CONNECTIONS",
            Self::Wait => "COMPOSIO_WAIT_FOR_CONNECTIONS",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "Search tools",
            Self::Schemas => "Get tool schemas",
            Self::MultiExecute => "Execute tools",
            Self::Connect => "Manage connections",
            Self::Wait => "Wait for connections",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Search => {
                "Finds tools for what shall be done. Give one sentence for each thing to do, with the app where it is known. The answer names the \
                 tools that fit, with their arguments, and says which apps have to be connected first."
            }
            Self::Schemas => "The full arguments of tools, by their slugs, before they are called.",
            Self::MultiExecute => {
                "Calls tools that were found, up to 50 at once and side by side. Only give tools together that do not need each other's results."
            }
            Self::Connect => {
                "Connects the user's accounts. For each toolkit it says that an account is there, or has a link for the user to open. Show the \
                 link to the user as it is, and go on when they are done."
            }
            Self::Wait => "Waits, for half a minute at most, until the user has connected accounts at the links they were given.",
        }
    }

    pub fn reads_only(self) -> bool {
        matches!(self, Self::Search | Self::Schemas | Self::Wait)
    }

    /// The schema of its arguments.
    pub fn input(self) -> Map<String, Value> {
        let toolkits = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 20,
            "description": "Slugs of toolkits, such as `github`"});
        let schema = match self {
            Self::Search => json!({
                "type": "object",
                "properties": {
                    "queries": {
                        "type": "array", "minItems": 1, "maxItems": 20,
                        "description": "What shall be done, one thing each",
                        "items": {
                            "type": "object",
                            "properties": {
                                "use_case": {"type": "string", "description": "A sentence, such as `create an issue on GitHub`"},
                                "known_fields": {"type": "string", "description": "What is known already, as `name:value, name:value`"},
                            },
                            "required": ["use_case"],
                        },
                    },
                    "session": {"type": "object", "description": "The `session` of an earlier answer", "properties": {"id": {"type": "string"}}},
                    "model": {"type": "string"},
                },
                "required": ["queries"],
            }),
            Self::Schemas => json!({
                "type": "object",
                "properties": {"tool_slugs": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 50, "description": "Slugs of tools"}},
                "required": ["tool_slugs"],
            }),
            Self::MultiExecute => json!({
                "type": "object",
                "properties": {
                    "tools": {
                        "type": "array", "minItems": 1, "maxItems": 50,
                        "items": {
                            "type": "object",
                            "properties": {
                                "tool_slug": {"type": "string"},
                                "arguments": {"type": "object", "description": "As the tool's schema says"},
                                "account": {"type": "string", "description": "The id or alias of the account, where the user has several"},
                            },
                            "required": ["tool_slug"],
                        },
                    },
                    "sync_response_to_workbench": {"type": "boolean", "description": "Has no effect: there is no workbench"},
                },
                "required": ["tools"],
            }),
            Self::Connect => json!({
                "type": "object",
                "properties": {
                    "toolkits": toolkits,
                    "reinitiate_all": {"type": "boolean", "description": "Connect again, even where an account works", "default": false},
                },
                "required": ["toolkits"],
            }),
            Self::Wait => json!({
                "type": "object",
                "properties": {
                    "toolkits": toolkits,
                    "mode": {"type": "string", "enum": ["any", "all"], "default": "all", "description": "Whether one of them is enough"},
                },
                "required": ["toolkits"],
            }),
        };
        if let Value::Object(members) = schema { members } else { Map::new() }
    }
}

impl Config {
    pub(crate) fn has_meta(&self, tool: MetaTool) -> bool {
        match tool {
            MetaTool::Search | MetaTool::Schemas => self.searches(),
            MetaTool::MultiExecute => self.calls_several(),
            MetaTool::Connect => self.connects(),
            MetaTool::Wait => self.waits(),
        }
    }

    /// The meta tools that are switched on.
    pub(crate) fn meta_tools(&self) -> Vec<MetaTool> {
        MetaTool::ALL.into_iter().filter(|tool| self.has_meta(*tool)).collect()
    }
}
