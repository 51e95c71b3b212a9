//! Agents on the wire.

use agents::{AgentPatch, AgentView, AssignedApp, HistoryEntry, NewAgent};
use axum::response::{IntoResponse, Response};
use document::ToSchema;
use http::header::ETAG;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::tools::requested;
use crate::edge::Json;
use crate::edge::Unused;

/// A body about an agent. Both kinds are written out, because serde cannot say of flattened fields which of them are unknown.
macro_rules! agent_body {
    ($(#[$about:meta])* $name:ident, $text:ty, $line:ty, $word:ty) => {
        $(#[$about])*
        #[derive(Debug, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Unique in the project.
            #[schema(value_type = $line)]
            pub name: $text,
            /// Any word; `GET /agents/types` suggests some.
            #[schema(value_type = $word)]
            pub agent_type: $text,
            #[schema(max_length = 20000)]
            pub description: Option<String>,
            #[schema(value_type = Option<crate::shapes::AgentWord>)]
            pub status: Option<String>,
            /// Yours. A change is laid over what is there, key by key.
            #[schema(value_type = Option<Object>)]
            pub configuration: Option<Map<String, Value>>,
            /// Up to 255 characters each.
            #[schema(max_items = 100)]
            pub tags: Option<Vec<String>>,
            #[schema(max_length = 255)]
            pub job_title: Option<String>,
            #[schema(max_length = 255)]
            pub marketplace_category: Option<String>,
            #[schema(value_type = Option<crate::shapes::WordText>)]
            pub priority_level: Option<String>,
            #[schema(minimum = 1, maximum = 10000)]
            pub max_concurrent_tasks: Option<i64>,
            pub auto_start: Option<bool>,
            #[schema(value_type = Option<crate::shapes::ToolModeWord>)]
            pub tool_mode: Option<String>,
            /// Tools besides those of assigned apps: tool configs, as `GET /tools/schema` describes them.
            #[schema(value_type = Option<Vec<crate::shapes::ObjectOrText>>, max_items = 1000)]
            pub tool_configs: Option<Vec<Value>>,
            /// The whole list of assigned apps: stable ids, names, catalog ids, or `{id, priority, config}`. An app that is left out is switched off.
            #[schema(value_type = Option<Vec<Value>>, max_items = 1000)]
            pub tool_ids: Option<Vec<Value>>,
            /// Toolyard keeps no skills; anything but an empty list is refused.
            #[schema(max_items = 0)]
            pub skill_ids: Option<Vec<i64>>,
            #[schema(ignore)]
            pub id: Unused,
            #[schema(ignore)]
            pub public_id: Unused,
            #[schema(ignore)]
            pub version: Unused,
            #[schema(ignore)]
            pub slug: Unused,
            #[schema(ignore)]
            pub model_config: Unused,
            #[schema(ignore)]
            pub agent_model_config: Unused,
            #[schema(ignore)]
            pub model_usage_stats: Unused,
            #[schema(ignore)]
            pub performance_metrics: Unused,
            #[schema(ignore)]
            pub voice_profile_id: Unused,
            #[schema(ignore)]
            pub is_system_agent: Unused,
            #[schema(ignore)]
            pub required_role: Unused,
            #[schema(ignore)]
            pub skills: Unused,
            #[schema(ignore)]
            pub tools: Unused,
            #[schema(ignore)]
            pub plugins: Unused,
            #[schema(ignore)]
            pub created_at: Unused,
            #[schema(ignore)]
            pub updated_at: Unused,
            #[schema(ignore)]
            pub created_by: Unused,
            #[schema(ignore)]
            pub updated_by: Unused,
        }

        impl $name {
            /// Everything but the name and the type.
            fn rest(self) -> AgentPatch {
                AgentPatch {
                    name: None,
                    agent_type: None,
                    description: self.description,
                    status: self.status,
                    configuration: self.configuration,
                    tags: self.tags,
                    job_title: self.job_title,
                    marketplace_category: self.marketplace_category,
                    priority_level: self.priority_level,
                    max_concurrent_tasks: self.max_concurrent_tasks,
                    auto_start: self.auto_start,
                    tool_mode: self.tool_mode,
                    tool_configs: self.tool_configs,
                    tool_ids: self.tool_ids.map(|items| items.into_iter().map(requested).collect()),
                    skill_ids: self.skill_ids,
                }
            }
        }
    };
}

agent_body!(
    /// What a new agent shall be.
    AgentCreate,
    String,
    crate::shapes::LineText,
    crate::shapes::WordText
);

agent_body!(
    /// What shall change; what is left out or null stays as it is.
    AgentUpdate,
    Option<String>,
    Option<crate::shapes::LineText>,
    Option<crate::shapes::WordText>
);

impl From<AgentCreate> for NewAgent {
    fn from(mut body: AgentCreate) -> Self {
        let (name, agent_type) = (std::mem::take(&mut body.name), std::mem::take(&mut body.agent_type));
        Self { name, agent_type, rest: body.rest() }
    }
}

impl From<AgentUpdate> for AgentPatch {
    fn from(mut body: AgentUpdate) -> Self {
        let (name, agent_type) = (body.name.take(), body.agent_type.take());
        Self { name, agent_type, ..body.rest() }
    }
}

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentBody {
    pub id: i64,
    pub public_id: Uuid,
    /// Goes up with every change; the `ETag` of the answer.
    pub version: i64,
    pub name: String,
    pub description: Option<String>,
    pub agent_type: String,
    pub status: &'static str,
    #[schema(value_type = Object)]
    pub configuration: Map<String, Value>,
    #[schema(value_type = Object)]
    pub performance_metrics: Map<String, Value>,
    pub tags: Vec<String>,
    pub priority_level: String,
    pub max_concurrent_tasks: i64,
    pub auto_start: bool,
    pub job_title: Option<String>,
    pub marketplace_category: Option<String>,
    pub tool_mode: &'static str,
    #[schema(value_type = Vec<Object>)]
    pub tool_configs: Value,
    pub created_at: String,
    pub updated_at: String,
    pub created_by: String,
    pub updated_by: String,
    /// Toolyard keeps none; the list is there for clients that expect it.
    #[schema(value_type = Vec<Object>)]
    pub skills: Vec<Value>,
    /// Assigned apps, the most preferred first.
    pub tools: Vec<AgentTool>,
    /// Toolyard keeps none; the list is there for clients that expect it.
    #[schema(value_type = Vec<Object>)]
    pub plugins: Vec<Value>,
}

/// An app that is assigned to an agent.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentTool {
    /// The stable id, so that it can be sent back as it is.
    pub id: i32,
    pub stable_id: i32,
    pub app_name: String,
    /// `{provider}.{integration}`; null when the catalog does not have the app.
    pub catalog_id: Option<String>,
    /// Always `EXTERNAL`: apps are services outside. Toolyard's own tools are not assigned but configured, in `tool_configs`.
    pub app_type: &'static str,
    pub assignment_id: i64,
    pub name: String,
    pub display_name: Option<String>,
    pub description: String,
    pub provider: Option<String>,
    pub category: Option<String>,
    pub icon: Option<String>,
    pub priority: i64,
    /// What the agent may do with it: `access`, `permission`, `allow`, `deny`.
    #[schema(value_type = Object)]
    pub permissions: Value,
    /// The assignment's `config` as it was given.
    #[schema(value_type = Object)]
    pub configuration: Map<String, Value>,
    /// `active`, `pending`, `added`, `disabled` (revoked), `failed` (the authorization failed), `not_connected` or `unknown`.
    pub status: &'static str,
    pub usable: bool,
    /// Why it is not usable.
    pub reason: Option<ReasonBody>,
    pub assigned_at: String,
    pub assigned_by: String,
}

/// Why something is not there or cannot be used.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReasonBody {
    #[schema(example = "not_connected")]
    pub code: &'static str,
    pub message: String,
}

impl From<&agents::Reason> for ReasonBody {
    fn from(reason: &agents::Reason) -> Self {
        Self { code: reason.code(), message: reason.to_string() }
    }
}

impl From<AssignedApp> for AgentTool {
    fn from(app: AssignedApp) -> Self {
        let AssignedApp { assignment, integration, status, unusable } = app;
        let (name, policy) = (assignment.app.to_string(), &assignment.policy);
        let stable_id = assignment.app.stable_id().number();
        let integration = integration.as_deref();
        Self {
            id: stable_id,
            stable_id,
            app_name: name.clone(),
            catalog_id: integration.map(|integration| format!("{}.{}", integration.provider, integration.key)),
            app_type: "EXTERNAL",
            assignment_id: assignment.id,
            name,
            display_name: integration.map(|integration| integration.name.clone()),
            description: integration.map(|integration| integration.description.clone()).unwrap_or_default(),
            provider: integration.map(|integration| integration.provider.to_owned()),
            category: integration.and_then(|integration| integration.categories.first().cloned()),
            icon: integration.and_then(|integration| integration.logo.clone()),
            priority: assignment.priority,
            permissions: json!({
                "access": policy.access.name(),
                "permission": policy.permission,
                "allow": policy.allow,
                "deny": policy.deny,
            }),
            configuration: assignment.config,
            status: status.name(),
            usable: unusable.is_none(),
            reason: unusable.as_ref().map(Into::into),
            assigned_at: assignment.assigned_at.to_string(),
            assigned_by: assignment.assigned_by,
        }
    }
}

impl From<AgentView> for AgentBody {
    fn from(view: AgentView) -> Self {
        let AgentView { agent, apps } = view;
        Self {
            id: agent.number,
            public_id: agent.id.uuid(),
            version: agent.version,
            name: agent.name,
            description: agent.description,
            agent_type: agent.agent_type,
            status: agent.status.name(),
            configuration: agent.configuration,
            performance_metrics: Map::new(),
            tags: agent.tags,
            priority_level: agent.priority_level,
            max_concurrent_tasks: agent.max_concurrent_tasks,
            auto_start: agent.auto_start,
            job_title: agent.job_title,
            marketplace_category: agent.marketplace_category,
            tool_mode: agent.tool_mode.name(),
            tool_configs: json!(agent.tool_configs),
            created_at: agent.created_at.to_string(),
            updated_at: agent.updated_at.to_string(),
            created_by: agent.created_by,
            updated_by: agent.updated_by,
            skills: Vec::new(),
            tools: apps.into_iter().map(Into::into).collect(),
            plugins: Vec::new(),
        }
    }
}

/// One agent in an answer, with its version as `ETag`.
#[derive(Debug)]
pub(crate) struct Tagged(pub(crate) AgentBody);

impl From<AgentView> for Tagged {
    fn from(view: AgentView) -> Self {
        Self(view.into())
    }
}

impl IntoResponse for Tagged {
    fn into_response(self) -> Response {
        ([(ETAG, format!("\"{}\"", self.0.version))], Json(self.0)).into_response()
    }
}

/// One line of an agent's history.
#[derive(Debug, Serialize, ToSchema)]
pub struct HistoryBody {
    pub id: Uuid,
    /// The agent's version after the change.
    pub version: i64,
    /// `created`, `updated`, `deleted`, `assigned`, `reassigned`, `adjusted` or `unassigned`.
    pub change: &'static str,
    pub app_name: Option<String>,
    /// What it was: the fields that changed, or the assignment.
    #[schema(value_type = Option<Object>)]
    pub before: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub after: Option<Value>,
    /// The user, or the key where it belongs to nobody.
    pub actor: String,
    pub at: String,
}

impl From<HistoryEntry> for HistoryBody {
    fn from(entry: HistoryEntry) -> Self {
        Self {
            id: entry.id,
            version: entry.version,
            change: entry.change.name(),
            app_name: entry.app.map(|app| app.to_string()),
            before: entry.before,
            after: entry.after,
            actor: entry.actor,
            at: entry.at.to_string(),
        }
    }
}
