//! Whole integrations for a runner: the two tools that reach them, and what its author says of each of their actions.

use serde::Serialize;
use serde_json::json;

use crate::config::{ConnectionPermission, Hints};
use crate::specs::{Callback, ToolImplementation, ToolSpec, spec};
use crate::{ResolvedConnection, Verdict};

/// An integration as a runner is told of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectedIntegration {
    pub provider: String,
    pub integration: String,
    pub connection: String,
    /// Changes with the actions of the integration and their schemas.
    pub toolkit_version: String,
    pub tools: Vec<ConnectedTool>,
}

/// An action of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectedTool {
    pub key: String,
    pub read_only: Option<bool>,
    pub permission: ConnectionPermission,
}

impl From<&ResolvedConnection> for ConnectedIntegration {
    fn from(ResolvedConnection { config, integration }: &ResolvedConnection) -> Self {
        let tool = |action: &std::sync::Arc<catalog::Action>| ConnectedTool {
            key: action.key.clone(),
            read_only: Some(action.read_only),
            permission: config.permission(&action.key),
        };
        Self {
            provider: config.connection.provider.clone(),
            integration: config.connection.integration.clone(),
            connection: config.connection.slug.clone(),
            toolkit_version: integration.version().to_owned(),
            tools: integration.actions.iter().map(tool).collect(),
        }
    }
}

impl ResolvedConnection {
    /// Actions that the author speaks of and the integration does not have.
    pub(crate) fn stale(&self) -> impl Iterator<Item = String> {
        let named = self.config.policy.permissions.tools.keys().filter(|key| self.integration.action(key).is_none());
        named.map(|key| format!("{} has no action `{key}`, so what is said of it holds for nothing", self.integration.key))
    }
}

/// The tools by which a model finds and runs the actions of all of its integrations. They may run: what the arguments name is judged.
pub(crate) fn specs() -> Vec<ToolSpec> {
    let hints = Hints { permission: Some(Verdict::Allow), render: None };
    let query = json!({"type": "object", "required": ["query"], "properties": {
        "query": {"type": "string", "description": "What you want to do, in one sentence."},
        "integration": {"type": "string", "description": "Search this integration only."},
    }});
    let run = json!({"type": "object", "required": ["integration", "tool", "arguments"], "properties": {
        "integration": {"type": "string", "description": "As `search_tools` returned it."},
        "tool": {"type": "string", "description": "The key of the tool, as `search_tools` returned it."},
        "arguments": {"type": "object", "description": "What fits the tool's input_schema."},
    }});
    let find = "Find tools of the integrations that are connected. At most five, the best first, each with the schema of its arguments.";
    let use_it = "Run a tool that `search_tools` returned. A call that was refused will be refused again.";
    let callback = |call_ref: &str| ToolImplementation::Callback(Callback::by_ref(call_ref.to_owned()));
    vec![
        ToolSpec { read_only: Some(true), ..spec("search_tools".to_owned(), find.to_owned(), query, &hints, callback("gateway.search")) },
        spec("run_tool".to_owned(), use_it.to_owned(), run, &hints, callback("gateway.run")),
    ]
}
