//! A tool config that stands for a whole integration: which connection, and what its author says of each action.

use std::collections::BTreeMap;

use connections::Connection;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{DEFAULT_PROVIDER, Fields, Problem, text};
use crate::Verdict;

/// Every action of an integration, through one connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionTool {
    pub connection: ConnectionNames,
    #[serde(default)]
    pub policy: ConnectionPolicy,
}

/// Which connection it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionNames {
    pub provider: String,
    pub integration: String,
    pub slug: String,
}

/// What the author says of its actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionPolicy {
    pub permissions: ConnectionPermissions,
}

/// The author's word on each action, and on those without one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionPermissions {
    pub default: ConnectionPermission,
    pub tools: BTreeMap<String, ConnectionPermission>,
}

/// What the author says of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionPermission {
    /// The plan of the run decides.
    #[default]
    Inherit,
    Allow,
    Ask,
    Deny,
    /// What only reads runs, everything else asks.
    AllowReads,
}

impl ConnectionPermission {
    const ALL: [(&'static str, Self); 5] =
        [("inherit", Self::Inherit), ("allow", Self::Allow), ("ask", Self::Ask), ("deny", Self::Deny), ("allow_reads", Self::AllowReads)];

    /// What it says of an action that only reads, or not; nothing where the plan of the run decides.
    pub fn verdict(self, read_only: bool) -> Option<Verdict> {
        match self {
            Self::Inherit => None,
            Self::Allow => Some(Verdict::Allow),
            Self::AllowReads if read_only => Some(Verdict::Allow),
            Self::Ask | Self::AllowReads => Some(Verdict::Ask),
            Self::Deny => Some(Verdict::Deny),
        }
    }

    fn read(key: &'static str, value: &Value) -> Result<Self, Problem> {
        let found = Self::ALL.into_iter().find(|(name, _)| value.as_str() == Some(*name));
        found.map(|(_, word)| word).ok_or(Problem::Wrong { key, expected: "`inherit`, `allow`, `ask`, `deny` or `allow_reads`" })
    }
}

impl ConnectionTool {
    /// The author's word on an action.
    pub fn permission(&self, action: &str) -> ConnectionPermission {
        let ConnectionPermissions { default, tools } = &self.policy.permissions;
        tools.get(action).copied().unwrap_or(*default)
    }

    /// The integration, as messages name it.
    pub fn shown(&self) -> String {
        let ConnectionNames { provider, integration, slug } = &self.connection;
        format!("{provider}/{integration}/{slug}")
    }
}

impl Fields {
    pub(super) fn connection(&mut self) -> Result<ConnectionTool, Problem> {
        let mut names = self.part("connection")?.ok_or(Problem::Missing { kind: self.kind, key: "connection" })?;
        let provider =
            names.take("provider").map_or_else(|| Ok(DEFAULT_PROVIDER.to_owned()), |value| text("connection.provider", value))?;
        let integration = names.take("integration").ok_or(Problem::Missing { kind: self.kind, key: "connection.integration" })?;
        let integration = text("connection.integration", integration)?;
        let slug = names.optional("slug").map(|value| text("connection.slug", value)).transpose()?;
        names.finish()?;
        let slug = slug.unwrap_or_else(|| Connection::usual_slug(&integration));
        Ok(ConnectionTool { connection: ConnectionNames { provider, integration, slug }, policy: self.connection_policy()? })
    }

    fn connection_policy(&mut self) -> Result<ConnectionPolicy, Problem> {
        let Some(mut policy) = self.part("policy")? else { return Ok(ConnectionPolicy::default()) };
        let permissions = policy.part("permissions")?;
        policy.finish()?;
        let Some(mut permissions) = permissions else { return Ok(ConnectionPolicy::default()) };
        let default = permissions.optional("default").map(|word| ConnectionPermission::read("policy.permissions.default", &word));
        let tools = permissions.part("tools")?.map(|tools| tools.left).unwrap_or_default();
        permissions.finish()?;
        let read = |(key, word): (String, Value)| match key.as_str() {
            "" => Err(Problem::Wrong { key: "policy.permissions.tools", expected: "an object of words by action" }),
            _ => Ok((key, ConnectionPermission::read("policy.permissions.tools", &word)?)),
        };
        let tools = tools.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(ConnectionPolicy { permissions: ConnectionPermissions { default: default.transpose()?.unwrap_or_default(), tools } })
    }

    /// An object inside, read like the whole.
    fn part(&mut self, key: &'static str) -> Result<Option<Fields>, Problem> {
        match self.optional(key) {
            None => Ok(None),
            Some(Value::Object(left)) => Ok(Some(Fields { kind: self.kind, left, known: Vec::new() })),
            Some(_) => Err(Problem::Wrong { key, expected: "an object" }),
        }
    }
}

/// The JSON Schema of the config.
pub(super) fn json_schema() -> Value {
    let word = serde_json::json!({"enum": ConnectionPermission::ALL.map(|(name, _)| name), "default": "inherit"});
    let permissions =
        object(&[("default", word.clone()), ("tools", serde_json::json!({"type": "object", "additionalProperties": word}))], &[]);
    let text = || serde_json::json!({"type": "string", "minLength": 1});
    let provider = serde_json::json!({"type": "string", "minLength": 1, "default": DEFAULT_PROVIDER, "examples": ["native", "openapi", "mcp", "composio"]});
    let slug = serde_json::json!({"type": ["string", "null"], "minLength": 1, "description": "`{integration}-main` if left out."});
    let connection = object(&[("provider", provider), ("integration", text()), ("slug", slug)], &["integration"]);
    let policy = object(&[("permissions", permissions)], &[]);
    let kind = serde_json::json!({"const": "gateway_connection"});
    let mut whole = object(&[("type", kind), ("connection", connection), ("policy", policy)], &["type", "connection"]);
    whole["description"] =
        "Every action of an integration, through a connection: the model finds them by `search_tools` and runs them by `run_tool`.".into();
    whole
}

fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<String, Value> = properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    serde_json::json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
