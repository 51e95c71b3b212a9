//! An agent's tools as its author wrote them: a closed union of seven shapes, read strictly and written back as read.

mod coerce;
mod connection;
mod schema;

use connections::Connection;
use kernel::call_ref::CallRefError;
use kernel::{CallRef, Slug};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::Verdict;

pub(crate) use coerce::check_embeds;
pub use coerce::{Coerced, ConfigError, Diagnostic, Identity, OnError, Problem, check_names, coerce, coerce_list};
pub use connection::{ConnectionNames, ConnectionPermission, ConnectionPermissions, ConnectionPolicy, ConnectionTool};
pub use schema::json_schema;

/// The provider of a gateway tool that names none, as existing configurations expect it.
pub const DEFAULT_PROVIDER: &str = "composio";

/// The values of `type`.
pub const KINDS: [&str; 7] = ["builtin", "gateway", "gateway_connection", "code", "client", "reference", "platform"];

/// The author's word on a tool, under its own name and its older ones.
const PERMISSION: [&str; 3] = ["permission", "permission_mode", "permissionMode"];

/// What makes an entry an embed.
const EMBED: &str = "@ag.embed";

/// Flags that stand for `permission: ask`.
const APPROVAL: [&str; 2] = ["needs_approval", "needsApproval"];

/// What discovery says of a gateway tool besides. The catalog says it again, and newer, when the tool is resolved.
const DISCOVERED: [&str; 3] = ["input_schema", "description", "provider_action"];

/// One tool of an agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ToolConfig {
    /// Legacy: built-ins are always active, so this resolves to nothing.
    Builtin(BuiltinTool),
    /// An action of an integration, through a connection.
    Gateway(GatewayTool),
    /// Every action of an integration, through a connection.
    #[serde(rename = "gateway_connection")]
    Connection(ConnectionTool),
    /// A script that the runner runs.
    Code(CodeTool),
    /// A tool that the caller's application fulfils.
    Client(ClientTool),
    /// A workflow.
    Reference(ReferenceTool),
    /// An operation of the platform itself.
    Platform(PlatformTool),
}

/// What every tool may say about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hints {
    /// Without one the run's plan decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Verdict>,
    /// How a client shows a call. Never read here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render: Option<Map<String, Value>>,
}

const NO_HINTS: Hints = Hints { permission: None, render: None };

/// A built-in by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuiltinTool {
    pub name: String,
    #[serde(flatten)]
    pub hints: Hints,
}

/// An action, by the four segments of its reference. They are checked when the tool is resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatewayTool {
    pub provider: String,
    pub integration: String,
    pub action: String,
    pub connection: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(flatten)]
    pub hints: Hints,
}

/// A script with the vault slugs of its secrets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CodeTool {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub runtime: Runtime,
    pub script: String,
    pub input_schema: Map<String, Value>,
    pub secrets: Vec<String>,
    #[serde(flatten)]
    pub hints: Hints,
}

/// What runs a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    Python,
    Node,
}

/// A tool that is only a name and a schema to us.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientTool {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub input_schema: Map<String, Value>,
    #[serde(flatten)]
    pub hints: Hints,
}

/// A workflow and which of its revisions runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReferenceTool {
    #[serde(flatten)]
    pub axis: Axis,
    pub slug: Slug,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub input_schema: Map<String, Value>,
    #[serde(flatten)]
    pub hints: Hints,
}

/// How a revision is picked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ref_by", rename_all = "lowercase")]
pub enum Axis {
    /// The newest revision, or the pinned one.
    Variant {
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<Slug>,
    },
    /// The revision that is deployed there.
    Environment { environment: Slug },
}

/// An operation by name. Whether it exists is checked when the tool is resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlatformTool {
    pub op: String,
    #[serde(flatten)]
    pub hints: Hints,
}

impl ToolConfig {
    /// The name that is known before anything is resolved.
    pub fn declared_name(&self) -> Option<&str> {
        match self {
            Self::Builtin(_) | Self::Connection(_) => None,
            Self::Gateway(tool) => tool.name.as_deref(),
            Self::Code(tool) => Some(&tool.name),
            Self::Client(tool) => Some(&tool.name),
            Self::Reference(tool) => Some(tool.name.as_deref().unwrap_or(tool.slug.as_str())),
            Self::Platform(tool) => Some(&tool.op),
        }
    }

    /// What a call of this tool is aimed at. Only gateway and reference tools have a ref of their own.
    pub fn call_ref(&self) -> Result<Option<CallRef>, CallRefError> {
        match self {
            Self::Gateway(tool) => tool.reference().parse().map(Some),
            Self::Reference(tool) => Ok(Some(tool.call_ref())),
            _ => Ok(None),
        }
    }

    /// Permission and render, whatever the kind.
    pub fn hints(&self) -> &Hints {
        match self {
            Self::Builtin(tool) => &tool.hints,
            Self::Gateway(tool) => &tool.hints,
            // Its policy speaks of each action.
            Self::Connection(_) => &NO_HINTS,
            Self::Code(tool) => &tool.hints,
            Self::Client(tool) => &tool.hints,
            Self::Reference(tool) => &tool.hints,
            Self::Platform(tool) => &tool.hints,
        }
    }

    /// Reads the fields of a tool of this kind, without `type`; `None` when there is no such kind.
    fn read(kind: &str, fields: Map<String, Value>) -> Option<Result<Self, Problem>> {
        let kind = KINDS.into_iter().find(|known| *known == kind)?;
        Some(Fields { kind, left: fields, known: Vec::new() }.read())
    }
}

impl GatewayTool {
    /// `tools.{provider}.{integration}.{action}.{connection}`, not yet checked.
    pub fn reference(&self) -> String {
        format!("tools.{}.{}.{}.{}", self.provider, self.integration, self.action, self.connection)
    }

    /// The name that the model sees.
    pub fn tool_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}__{}", self.integration, self.action))
    }
}

impl ReferenceTool {
    /// The workflow's ref. Slugs are checked, so there always is one.
    pub fn call_ref(&self) -> CallRef {
        let slug = self.slug.to_string();
        match &self.axis {
            Axis::Variant { version } => CallRef::Variant { slug, version: version.as_ref().map(ToString::to_string) },
            Axis::Environment { environment } => CallRef::Environment { environment: environment.to_string(), slug },
        }
    }
}

const TEXT: &str = "a non-empty string";

/// The fields of one configuration, taken one by one; what is left at the end does not belong there.
struct Fields {
    kind: &'static str,
    left: Map<String, Value>,
    /// The fields that this kind has, as far as they were looked for.
    known: Vec<&'static str>,
}

impl Fields {
    fn read(mut self) -> Result<ToolConfig, Problem> {
        let config = match self.kind {
            "builtin" => ToolConfig::Builtin(BuiltinTool { name: self.text("name")?, hints: self.hints()? }),
            "gateway" => ToolConfig::Gateway(self.gateway()?),
            "gateway_connection" => ToolConfig::Connection(self.connection()?),
            "code" => ToolConfig::Code(self.code()?),
            "client" => ToolConfig::Client(self.client()?),
            "reference" => ToolConfig::Reference(self.reference()?),
            "platform" => ToolConfig::Platform(PlatformTool { op: self.text("op")?, hints: self.hints()? }),
            _ => return Err(Problem::Unsupported),
        };
        self.finish()?;
        Ok(config)
    }

    fn gateway(&mut self) -> Result<GatewayTool, Problem> {
        for told in DISCOVERED {
            self.take(told);
        }
        let integration = self.text("integration")?;
        Ok(GatewayTool {
            provider: self.take("provider").map_or_else(|| Ok(DEFAULT_PROVIDER.to_owned()), |value| text("provider", value))?,
            action: self.text("action")?,
            connection: self.optional_text("connection")?.unwrap_or_else(|| Connection::usual_slug(&integration)),
            integration,
            name: self.optional_text("name")?,
            hints: self.hints()?,
        })
    }

    fn code(&mut self) -> Result<CodeTool, Problem> {
        Ok(CodeTool {
            name: self.text("name")?,
            description: self.description()?,
            runtime: self.runtime()?,
            script: self.text("script")?,
            input_schema: self.input_schema()?,
            secrets: self.secrets()?,
            hints: self.hints()?,
        })
    }

    fn client(&mut self) -> Result<ClientTool, Problem> {
        Ok(ClientTool {
            name: self.text("name")?,
            description: self.description()?,
            input_schema: self.input_schema()?,
            hints: self.hints()?,
        })
    }

    fn reference(&mut self) -> Result<ReferenceTool, Problem> {
        Ok(ReferenceTool {
            axis: self.axis()?,
            slug: slug("slug", self.text("slug")?)?,
            name: self.optional_text("name")?,
            description: self.description()?,
            input_schema: self.input_schema()?,
            hints: self.hints()?,
        })
    }

    fn axis(&mut self) -> Result<Axis, Problem> {
        let by = self.take("ref_by").unwrap_or_else(|| json!("variant"));
        let (environment, version) = (self.optional("environment"), self.optional("version"));
        match (by.as_str(), environment, version) {
            (Some("variant"), None, version) => Ok(Axis::Variant { version: version.map(|value| slug_in("version", value)).transpose()? }),
            (Some("variant"), Some(_), _) => Err(Problem::StrayEnvironment),
            (Some("environment"), _, Some(_)) => Err(Problem::PinnedEnvironment),
            (Some("environment"), Some(value), None) => Ok(Axis::Environment { environment: slug_in("environment", value)? }),
            (Some("environment"), None, None) => Err(Problem::NoEnvironment),
            _ => Err(Problem::Wrong { key: "ref_by", expected: "`variant` or `environment`" }),
        }
    }

    fn runtime(&mut self) -> Result<Runtime, Problem> {
        match self.take("runtime").as_ref().map(Value::as_str) {
            None | Some(Some("python")) => Ok(Runtime::Python),
            Some(Some("node")) => Ok(Runtime::Node),
            Some(_) => Err(Problem::Wrong { key: "runtime", expected: "`python` or `node`" }),
        }
    }

    fn secrets(&mut self) -> Result<Vec<String>, Problem> {
        let wrong = Problem::Wrong { key: "secrets", expected: "a list of vault slugs" };
        match self.take("secrets") {
            None => Ok(Vec::new()),
            Some(Value::Array(slugs)) => slugs.iter().map(|slug| slug.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or(wrong),
            Some(_) => Err(wrong),
        }
    }

    fn input_schema(&mut self) -> Result<Map<String, Value>, Problem> {
        match self.take("input_schema").unwrap_or_else(|| json!({"type": "object", "properties": {}})) {
            Value::Object(schema) => Ok(schema),
            _ => Err(Problem::Wrong { key: "input_schema", expected: "an object" }),
        }
    }

    fn description(&mut self) -> Result<Option<String>, Problem> {
        match self.optional("description") {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::Wrong { key: "description", expected: "a string" }),
        }
    }

    fn hints(&mut self) -> Result<Hints, Problem> {
        let permission = self.permission()?;
        let render = match self.optional("render") {
            None => None,
            Some(Value::Object(render)) => Some(render),
            Some(_) => return Err(Problem::Wrong { key: "render", expected: "an object" }),
        };
        Ok(Hints { permission, render })
    }

    /// Words that contradict each other are refused: to follow one of them would drop the other.
    fn permission(&mut self) -> Result<Option<Verdict>, Problem> {
        let mut said: Option<(&'static str, Verdict)> = None;
        for key in PERMISSION {
            let Some(value) = self.optional(key) else { continue };
            let word = value.as_str().and_then(Verdict::named);
            let word = word.ok_or(Problem::Wrong { key, expected: "`allow`, `ask` or `deny`" })?;
            match said {
                Some((first, other)) if other != word => return Err(Problem::Contradiction { first, second: key }),
                Some(_) => {}
                None => said = Some((key, word)),
            }
        }
        for key in APPROVAL {
            match (self.optional(key), said) {
                (None | Some(Value::Bool(false)), _) => {}
                (Some(Value::Bool(true)), Some((first, Verdict::Allow))) => {
                    return Err(Problem::Contradiction { first, second: key });
                }
                (Some(Value::Bool(true)), said_before) => said = said_before.or(Some((key, Verdict::Ask))),
                (Some(_), _) => return Err(Problem::Wrong { key, expected: "`true` or `false`" }),
            }
        }
        Ok(said.map(|(_, word)| word))
    }

    fn text(&mut self, key: &'static str) -> Result<String, Problem> {
        let value = self.take(key).ok_or(Problem::Missing { kind: self.kind, key })?;
        text(key, value)
    }

    fn optional_text(&mut self, key: &'static str) -> Result<Option<String>, Problem> {
        self.optional(key).map(|value| text(key, value)).transpose()
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.left.remove(key)
    }

    fn optional(&mut self, key: &'static str) -> Option<Value> {
        self.take(key).filter(|value| !value.is_null())
    }

    fn finish(self) -> Result<(), Problem> {
        match self.left.into_iter().next() {
            Some((key, _)) => Err(Problem::unknown(self.kind, key, &self.known)),
            None => Ok(()),
        }
    }
}

fn text(key: &'static str, value: Value) -> Result<String, Problem> {
    match value {
        Value::String(text) if !text.is_empty() => Ok(text),
        _ => Err(Problem::Wrong { key, expected: TEXT }),
    }
}

fn slug(key: &'static str, text: String) -> Result<Slug, Problem> {
    text.parse().map_err(|source| Problem::Slug { key, source })
}

fn slug_in(key: &'static str, value: Value) -> Result<Slug, Problem> {
    slug(key, text(key, value)?)
}
