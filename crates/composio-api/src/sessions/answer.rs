//! A session as SDKs read it. What is sent as `enable` and `disable` is answered as `enabled` and `disabled`.

use std::collections::BTreeMap;

use document::ToSchema;
use kernel::UserSessionId;
use serde::Serialize;

use super::blocks::{ExecuteSwitch, PreloadedTools, Switch, Tag, TagFilter};
use super::config::Config;
use super::custom::{ListedCustomTool, ListedCustomToolkit};
use crate::ids;

/// From how many preloaded tools on a model is shown more than it can keep in mind.
const MANY_TOOLS: usize = 50;

/// A session of the tool router.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::Session)]
pub struct SessionAnswer {
    pub session_id: String,
    pub mcp: McpAddress,
    /// The slugs of the tools that are listed.
    pub tool_router_tools: Vec<String>,
    /// Grows with every change of the config.
    pub config_version: i64,
    pub config: ShownConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<ShownExperimental>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<SessionWarning>,
}

/// Where clients of the Model Context Protocol find the tools, with the project's key in `x-api-key`.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::McpAddress)]
pub struct McpAddress {
    #[schema(example = "http")]
    pub r#type: &'static str,
    pub url: String,
}

/// What somebody should know about a session.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionWarning)]
pub struct SessionWarning {
    pub code: &'static str,
    pub message: String,
}

/// What SDKs do not call stable.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = composio::ShownExperimental)]
pub struct ShownExperimental {
    /// Words for a model that uses the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assistive_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_tools: Option<Vec<ListedCustomTool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_toolkits: Option<Vec<ListedCustomToolkit>>,
}

/// The config that is in force.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionConfig)]
pub struct ShownConfig {
    pub user_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolkits: Option<ShownFilter>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ShownFilter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<ShownTags>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub auth_configs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub connected_accounts: BTreeMap<String, Vec<String>>,
    pub manage_connections: ShownConnecting,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_account: Option<ShownSeveral>,
    pub preload: ShownPreload,
    pub search: Switch,
    pub execute: ExecuteSwitch,
    /// There is none here.
    pub workbench: Switch,
    /// There is none here.
    pub instant: bool,
}

/// What is there, or what is not.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ShownFilter)]
pub struct ShownFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<ShownTags>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require_approval: Vec<String>,
}

/// Which tags tools must have one of, and which they may have none of.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ShownTags)]
pub struct ShownTags {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<Vec<Tag>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Vec<Tag>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require_approval: Vec<Tag>,
}

impl From<TagFilter> for ShownTags {
    fn from(tags: TagFilter) -> Self {
        Self { enabled: tags.enable, disabled: tags.disable, require_approval: tags.require_approval }
    }
}

/// Whether, and how, accounts are connected.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ShownConnecting)]
pub struct ShownConnecting {
    pub enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    pub enable_wait_for_connections: bool,
    pub enable_connection_removal: bool,
}

/// Whether a user may have several accounts of one toolkit.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ShownSeveral)]
pub struct ShownSeveral {
    pub enable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_accounts_per_toolkit: Option<u32>,
    pub require_explicit_selection: bool,
}

/// Tools that are listed beside the meta tools.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ShownPreload)]
pub struct ShownPreload {
    pub tools: PreloadedTools,
}

impl ShownConfig {
    pub(crate) fn of(config: Config, user_id: String) -> Self {
        let (connects, waits, calls_several, searches) = (config.connects(), config.waits(), config.calls_several(), config.searches());
        let toolkits = config.toolkits.map(|toolkits| ShownFilter {
            enabled: toolkits.enable,
            disabled: toolkits.disable,
            tags: None,
            require_approval: toolkits.require_approval,
        });
        let tools = config.tools.into_iter().map(|(slug, filter)| {
            let shown = ShownFilter {
                enabled: filter.enable,
                disabled: filter.disable,
                tags: filter.tags.map(Into::into),
                require_approval: filter.require_approval,
            };
            (slug, shown)
        });
        Self {
            user_id,
            toolkits,
            tools: tools.collect(),
            tags: config.tags.map(Into::into),
            auth_configs: config.auth_configs,
            connected_accounts: config.connected_accounts,
            manage_connections: ShownConnecting {
                enabled: connects,
                callback_url: config.connecting.callback_url,
                enable_wait_for_connections: waits,
                enable_connection_removal: config.connecting.removes.unwrap_or(true),
            },
            multi_account: config.several.map(|several| ShownSeveral {
                enable: several.enable.unwrap_or(false),
                max_accounts_per_toolkit: several.most,
                require_explicit_selection: several.must_choose.unwrap_or(false),
            }),
            preload: ShownPreload { tools: config.preload },
            search: Switch { enable: Some(searches) },
            execute: ExecuteSwitch { enable_multi_execute: Some(calls_several) },
            workbench: Switch { enable: Some(false) },
            instant: false,
        }
    }
}

impl SessionWarning {
    /// What there is to say about so many tools in a prompt.
    pub(crate) fn about_tools(preloaded: usize) -> Vec<Self> {
        let message = format!("{preloaded} tools are preloaded. A model chooses better among few; let it search for the others.");
        let warning = Self { code: "PRELOAD_TOOLS_HIGH_CONTEXT_USAGE", message };
        if preloaded > MANY_TOOLS { vec![warning] } else { Vec::new() }
    }
}

/// Where clients of the Model Context Protocol find the tools of a session.
pub fn session_mcp(public_url: &str, session: UserSessionId) -> String {
    format!("{}/tool_router/{}/mcp", public_url.trim_end_matches('/'), ids::SESSION.show(session))
}

/// That a session is over.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::DeletedSession)]
pub struct DeletedSession {
    pub session_id: String,
    pub deleted: bool,
}

/// One version of a config.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionConfigVersion)]
pub struct ConfigVersion {
    pub version: i64,
    pub config: ShownConfig,
    pub created_at: String,
    /// Whether it is in force.
    pub is_current: bool,
}
