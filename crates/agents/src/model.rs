//! Agents, their assignments, and what happened to both.

use std::str::FromStr;

use definitions::config::ToolConfig;
use kernel::{AgentId, ProjectId, Timestamp};
use serde_json::{Map, Value};

use crate::{AppName, AppPolicy, RequestedTool};

/// The type that lists leave out: agents made for one conversation.
pub(crate) const EPHEMERAL: &str = "ephemeral";

/// An agent.
#[derive(Clone, Debug)]
pub struct Agent {
    pub project: ProjectId,
    pub id: AgentId,
    /// The id that existing clients know: small, and never given twice in a project.
    pub number: i64,
    pub name: String,
    pub agent_type: String,
    pub description: Option<String>,
    pub status: Status,
    pub configuration: Map<String, Value>,
    pub tags: Vec<String>,
    pub job_title: Option<String>,
    pub marketplace_category: Option<String>,
    pub priority_level: String,
    pub max_concurrent_tasks: i64,
    pub auto_start: bool,
    pub tool_mode: ToolMode,
    pub tool_configs: Vec<ToolConfig>,
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub created_by: String,
    pub updated_by: String,
}

impl Agent {
    /// One without a row, which has these tools and nothing else.
    pub(crate) fn of_configs(project: ProjectId, tool_configs: Vec<ToolConfig>, now: Timestamp) -> Self {
        Self {
            project,
            id: AgentId::nil(),
            number: 0,
            name: String::new(),
            agent_type: String::new(),
            description: None,
            status: Status::Active,
            configuration: Map::new(),
            tags: Vec::new(),
            job_title: None,
            marketplace_category: None,
            priority_level: String::new(),
            max_concurrent_tasks: 1,
            auto_start: false,
            tool_mode: ToolMode::Explicit,
            tool_configs,
            version: 0,
            created_at: now,
            updated_at: now,
            created_by: String::new(),
            updated_by: String::new(),
        }
    }
}

/// How an agent is named in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentRef {
    Id(AgentId),
    Number(i64),
}

impl FromStr for AgentRef {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().map(Self::Number).or_else(|_| text.parse().map(Self::Id)).map_err(|_| ())
    }
}

/// Whether an agent is at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    #[default]
    Active,
    Inactive,
    Training,
}

impl Status {
    pub const ALL: [Self; 3] = [Self::Active, Self::Inactive, Self::Training];

    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Inactive => "inactive",
            Self::Training => "training",
        }
    }

    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }
}

/// Where an agent's apps come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolMode {
    /// Only what is assigned.
    #[default]
    Explicit,
    /// Every connected app of the project, but for those that are switched off.
    Inherit,
}

impl ToolMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Inherit => "inherit",
        }
    }

    pub fn named(text: &str) -> Option<Self> {
        [Self::Explicit, Self::Inherit].into_iter().find(|mode| mode.name() == text)
    }
}

/// What a new agent shall be.
#[derive(Clone, Debug, Default)]
pub struct NewAgent {
    pub name: String,
    pub agent_type: String,
    pub rest: AgentPatch,
}

/// What shall change; nothing said leaves it as it is.
#[derive(Clone, Debug, Default)]
pub struct AgentPatch {
    pub name: Option<String>,
    pub agent_type: Option<String>,
    pub description: Option<String>,
    pub status: Option<String>,
    /// Laid over the old one, key by key.
    pub configuration: Option<Map<String, Value>>,
    pub tags: Option<Vec<String>>,
    pub job_title: Option<String>,
    pub marketplace_category: Option<String>,
    pub priority_level: Option<String>,
    pub max_concurrent_tasks: Option<i64>,
    pub auto_start: Option<bool>,
    pub tool_mode: Option<String>,
    pub tool_configs: Option<Vec<Value>>,
    /// Every app that shall be assigned, by stable id, name or catalog id.
    pub tool_ids: Option<Vec<RequestedTool>>,
    pub skill_ids: Option<Vec<i64>>,
}

/// An app given to an agent. It stays, switched off, when the app is taken away again.
#[derive(Clone, Debug)]
pub struct Assignment {
    pub id: i64,
    pub agent: AgentId,
    pub app: AppName,
    pub is_active: bool,
    /// More is more preferred.
    pub priority: i64,
    pub config: Map<String, Value>,
    pub policy: AppPolicy,
    pub assigned_at: Timestamp,
    pub assigned_by: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Created,
    Updated,
    Deleted,
    Assigned,
    Reassigned,
    Adjusted,
    Unassigned,
}

impl Change {
    const ALL: [Self; 7] =
        [Self::Created, Self::Updated, Self::Deleted, Self::Assigned, Self::Reassigned, Self::Adjusted, Self::Unassigned];

    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Assigned => "assigned",
            Self::Reassigned => "reassigned",
            Self::Adjusted => "adjusted",
            Self::Unassigned => "unassigned",
        }
    }

    pub(crate) fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.name() == text)
    }
}

/// One line of an agent's history.
#[derive(Clone, Debug)]
pub struct HistoryEntry {
    pub id: uuid::Uuid,
    pub version: i64,
    pub change: Change,
    pub app: Option<AppName>,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub actor: String,
    pub at: Timestamp,
}

/// A page of history, newest first.
#[derive(Clone, Debug)]
pub struct HistoryPage {
    pub entries: Vec<HistoryEntry>,
    /// Where the next page begins.
    pub cursor: Option<uuid::Uuid>,
}
