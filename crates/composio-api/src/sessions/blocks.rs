//! What a session is asked to be: the blocks of a config, as SDKs send them when they make or change one.

use std::collections::BTreeMap;

use document::ToSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A member of a change: left out it changes nothing, and null removes what there is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Given<T> {
    #[default]
    Absent,
    Null,
    Value(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Null, Self::Value))
    }
}

impl<T> Given<T> {
    /// Changes what is held; a block is taken as a whole.
    pub(crate) fn apply(self, held: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Null => *held = None,
            Self::Value(value) => *held = Some(value),
        }
    }

    /// What is given, or nothing.
    pub(crate) fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }
}

/// A new session of the tool router.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = composio::NewSession)]
pub struct NewSession {
    /// Whose accounts it uses.
    #[schema(min_length = 1, max_length = 255)]
    pub user_id: String,
    #[serde(flatten)]
    pub blocks: SessionBlocks,
}

/// A change of a session: only what is given changes, and null removes a block.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = composio::PatchSession)]
pub struct PatchSession {
    /// Refuses the change where another version of the config is in force.
    pub expected_config_version: Option<i64>,
    #[serde(flatten)]
    pub blocks: SessionBlocks,
}

/// The blocks of a config. What is about a remote workbench is taken and changes nothing, because there is none.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::SessionBlocks)]
pub struct SessionBlocks {
    /// Which toolkits there are: only some, or all but some.
    #[schema(value_type = Option<ToolkitFilter>)]
    #[serde(default)]
    pub toolkits: Given<ToolkitFilter>,
    /// Which tools of a toolkit there are, by its slug.
    #[schema(value_type = Option<BTreeMap<String, ToolFilter>>)]
    #[serde(default)]
    pub tools: Given<BTreeMap<String, ToolFilter>>,
    /// Which tools there are by their tags, in toolkits of which `tools` says nothing.
    #[schema(value_type = Option<TagFilter>)]
    #[serde(default)]
    pub tags: Given<TagFilter>,
    /// The auth config that new accounts of a toolkit are connected with.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    #[serde(default)]
    pub auth_configs: Given<BTreeMap<String, String>>,
    /// The accounts that calls of a toolkit go through: the first, or one of them where the call chooses.
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    #[serde(default)]
    pub connected_accounts: Given<BTreeMap<String, Several>>,
    #[schema(value_type = Option<ManageConnections>)]
    #[serde(default)]
    pub manage_connections: Given<ManageConnections>,
    #[schema(value_type = Option<MultiAccount>)]
    #[serde(default)]
    pub multi_account: Given<MultiAccount>,
    /// Tools that are listed beside the meta tools.
    #[schema(value_type = Option<Preload>)]
    #[serde(default)]
    pub preload: Given<Preload>,
    /// Whether tools can be searched for; they can where nothing is said.
    #[schema(value_type = Option<Switch>)]
    #[serde(default)]
    pub search: Given<Switch>,
    #[schema(value_type = Option<ExecuteSwitch>)]
    #[serde(default)]
    pub execute: Given<ExecuteSwitch>,
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub workbench: Given<Map<String, Value>>,
    #[schema(value_type = Option<Experimental>)]
    #[serde(default)]
    pub experimental: Given<Experimental>,
}

/// Which toolkits there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = composio::ToolkitFilter)]
pub struct ToolkitFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable: Option<Vec<String>>,
    /// Calls of these wait for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require_approval: Vec<String>,
}

/// Which tools of a toolkit there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = composio::ToolFilter)]
pub struct ToolFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<TagFilter>,
    /// Calls of these wait for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require_approval: Vec<String>,
}

/// Which tags tools must have one of, and which they may have none of. A list is what they must have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = composio::TagFilter)]
pub struct TagFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<Vec<Tag>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable: Option<Vec<Tag>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require_approval: Vec<Tag>,
}

/// What is known about every tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = composio::Tag)]
#[expect(clippy::enum_variant_names, reason = "these are Composio's words")]
pub enum Tag {
    ReadOnlyHint,
    DestructiveHint,
    IdempotentHint,
    OpenWorldHint,
}

impl Tag {
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnlyHint => "readOnlyHint",
            Self::DestructiveHint => "destructiveHint",
            Self::IdempotentHint => "idempotentHint",
            Self::OpenWorldHint => "openWorldHint",
        }
    }
}

impl<'de> Deserialize<'de> for TagFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Members {
            enable: Option<Vec<Tag>>,
            disable: Option<Vec<Tag>>,
            #[serde(default)]
            require_approval: Vec<Tag>,
        }
        use serde::de::Error as _;
        match Value::deserialize(deserializer)? {
            tags @ Value::Array(_) => Ok(Self { enable: Some(serde_json::from_value(tags).map_err(D::Error::custom)?), ..Self::default() }),
            members => {
                let Members { enable, disable, require_approval } = serde_json::from_value(members).map_err(D::Error::custom)?;
                Ok(Self { enable, disable, require_approval })
            }
        }
    }
}

/// One text, or a list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Several(pub Vec<String>);

impl<'de> Deserialize<'de> for Several {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        match Value::deserialize(deserializer)? {
            Value::String(one) => Ok(Self(vec![one])),
            list => serde_json::from_value(list).map(Self).map_err(D::Error::custom),
        }
    }
}

/// Whether, and how, accounts are connected in the session. Only members that are given change.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[schema(as = composio::ManageConnections)]
pub struct ManageConnections {
    /// Yes where nothing is said.
    #[schema(value_type = Option<bool>)]
    #[serde(default)]
    pub enable: Given<bool>,
    /// Where the browser goes once an account is connected.
    #[schema(value_type = Option<String>)]
    #[serde(default)]
    pub callback_url: Given<String>,
    /// Whether there is a tool that waits for accounts; no where nothing is said.
    #[schema(value_type = Option<bool>)]
    #[serde(default)]
    pub enable_wait_for_connections: Given<bool>,
    #[schema(value_type = Option<bool>)]
    #[serde(default)]
    pub enable_connection_removal: Given<bool>,
}

/// Whether a user may have several accounts of one toolkit. Only members that are given change.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[schema(as = composio::MultiAccount)]
pub struct MultiAccount {
    #[schema(value_type = Option<bool>)]
    #[serde(default)]
    pub enable: Given<bool>,
    #[schema(value_type = Option<u32>, minimum = 2, maximum = 10)]
    #[serde(default)]
    pub max_accounts_per_toolkit: Given<u32>,
    /// Whether a call has to name the account where there are several.
    #[schema(value_type = Option<bool>)]
    #[serde(default)]
    pub require_explicit_selection: Given<bool>,
}

/// Tools that are listed beside the meta tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = composio::Preload)]
pub struct Preload {
    #[serde(default)]
    pub tools: PreloadedTools,
}

/// Slugs, or `all` that the session has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = composio::PreloadedTools)]
pub enum PreloadedTools {
    All(AllWord),
    Slugs(Vec<String>),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = composio::AllWord)]
pub enum AllWord {
    All,
}

impl Default for PreloadedTools {
    fn default() -> Self {
        Self::Slugs(Vec::new())
    }
}

impl<'de> Deserialize<'de> for PreloadedTools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        match Value::deserialize(deserializer)? {
            word @ Value::String(_) => serde_json::from_value(word).map(Self::All).map_err(D::Error::custom),
            list => serde_json::from_value(list).map(Self::Slugs).map_err(D::Error::custom),
        }
    }
}

/// Whether something is switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = composio::Switch)]
pub struct Switch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
}

/// Whether several tools can be called at once; they can where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = composio::ExecuteSwitch)]
pub struct ExecuteSwitch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_multi_execute: Option<bool>,
}

/// What is not stable in Composio's API. Tools of the caller's own run in the caller's process; they are not kept.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::Experimental)]
pub struct Experimental {
    pub assistive_prompt_config: Option<AssistivePrompt>,
    pub custom_tools: Option<Vec<CustomTool>>,
    pub custom_toolkits: Option<Vec<CustomToolkit>>,
}

/// What the words for a model are written with.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::AssistivePrompt)]
pub struct AssistivePrompt {
    /// Such as `Europe/Berlin`.
    pub user_timezone: Option<String>,
}

/// A tool of the caller's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = composio::CustomTool)]
pub struct CustomTool {
    pub slug: String,
    pub name: String,
    pub description: String,
    #[schema(value_type = Object)]
    pub input_schema: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Map<String, Value>>,
    /// The toolkit whose accounts it uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends_toolkit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preload: Option<bool>,
}

/// Tools of the caller's own under one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = composio::CustomToolkit)]
pub struct CustomToolkit {
    pub slug: String,
    pub name: String,
    pub description: String,
    pub tools: Vec<CustomTool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preload: Option<bool>,
}
