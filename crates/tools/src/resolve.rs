//! From an agent's tool configs to tools that can be called: names checked first, then connections and actions, all or nothing.

use std::borrow::Cow;
use std::collections::HashMap;

use catalog::{CatalogError, Reach};
use connections::Connection;
use kernel::{Permission, Scope};
use serde_json::{Map, Value};
use workflows::WorkflowError;
use workflows::embed::{EmbedLimits, ErrorPolicy, contains_embed};

use crate::config::{ConfigError, GatewayTool, OnError, ToolConfig, check_embeds, check_names, coerce_list};
use crate::format::{Format, NameCollision, NameTable, ToolView, definition, function_name};
use crate::{CallError, Tools};

/// Tools that can be called.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    pub builtins: Vec<String>,
    pub custom: Vec<ResolvedTool>,
}

/// One tool that can be called.
#[derive(Clone, Debug)]
pub struct ResolvedTool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub call_ref: String,
    pub read_only: bool,
    pub destructive: bool,
}

/// Definitions for a model API, and the way back from the names it calls.
#[derive(Clone, Debug)]
pub struct Definitions {
    pub definitions: Vec<Value>,
    pub names: Vec<(String, String)>,
}

/// Why tools were not resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("A `{0}` tool cannot be resolved here; give builtin and gateway tools.")]
    Kind(&'static str),
    #[error("Invalid tool slug: {reference} — Invalid slug segment: '{segment}'")]
    Segment { reference: String, segment: String },
    #[error("{0}")]
    Op(String),
    #[error("Tool `{tool}` needs secrets that are not here: {secrets}")]
    Secrets { tool: String, secrets: String },
    #[error("The tools have different callbacks: {0} and {1}")]
    TwoCallbacks(String, String),
    #[error("{0}")]
    Callback(String),
    #[error("Provider not found: {0}")]
    Provider(String),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Names(#[from] NameCollision),
}

impl Tools {
    /// The configs with what their embeds stand for: parts of workflows, taken as they are now.
    pub(crate) async fn with_embeds<'a>(&self, scope: Scope, items: &'a [Value]) -> Result<Cow<'a, [Value]>, ResolveError> {
        if !items.iter().any(contains_embed) {
            return Ok(Cow::Borrowed(items));
        }
        check_embeds(items)?;
        if !scope.may(Permission::ViewWorkflows) {
            return Err(CallError::Forbidden(Permission::ViewWorkflows).into());
        }
        let whole = Value::Object(Map::from_iter([("tools".to_owned(), Value::Array(items.to_vec()))]));
        let resolved = self.workflows.resolve(scope, whole, EmbedLimits::default(), ErrorPolicy::Exception).await;
        let mut resolved = resolved.map_err(|error| CallError::from(WorkflowError::from(error)))?.value;
        match resolved["tools"].take() {
            Value::Array(items) => Ok(Cow::Owned(items)),
            _ => Ok(Cow::Owned(Vec::new())),
        }
    }

    /// Resolves configs in their order. The first that fails fails all of them, before anything is used.
    pub async fn resolve(&self, scope: Scope, items: &[Value]) -> Result<Resolved, ResolveError> {
        let items = self.with_embeds(scope, items).await?;
        let configs = coerce_list(&items, OnError::Raise)?.configs;
        let mut builtins = Vec::new();
        let mut gateways = Vec::new();
        for config in &configs {
            match config {
                ToolConfig::Builtin(tool) => builtins.push(tool.name.clone()),
                ToolConfig::Gateway(tool) => gateways.push(check_segments(tool)?),
                ToolConfig::Code(_) => return Err(ResolveError::Kind("code")),
                ToolConfig::Client(_) => return Err(ResolveError::Kind("client")),
                ToolConfig::Reference(_) => return Err(ResolveError::Kind("reference")),
                ToolConfig::Platform(_) => return Err(ResolveError::Kind("platform")),
            }
        }
        check_names(&configs)?;
        Ok(Resolved { builtins, ..self.resolve_gateways(scope, &gateways).await? })
    }

    /// Resolves gateway tools in their order, with one look at the project's connections.
    pub(crate) async fn resolve_gateways(&self, scope: Scope, tools: &[&GatewayTool]) -> Result<Resolved, ResolveError> {
        if tools.is_empty() {
            return Ok(Resolved::default());
        }
        tools.iter().try_for_each(|tool| check_segments(tool).map(|_| ()))?;
        for GatewayTool { provider, integration, action, .. } in tools.iter().copied() {
            self.catalog.reach(provider, Reach::Action(integration, action)).await.map_err(|error| match error {
                CatalogError::UnknownProvider(missing) => ResolveError::Provider(missing.key),
                other => CallError::Connection(other.into()).into(),
            })?;
        }
        let mut connections = self.connections.query(scope.project, None, None).await.map_err(CallError::from)?;
        for row in connections.iter_mut().filter(|row| !row.is_usable()) {
            if tools
                .iter()
                .any(|tool| (&tool.provider, &tool.integration, &tool.connection) == (&row.provider, &row.integration, &row.slug))
            {
                *row = self.connections.look_again(row.clone()).await.map_err(CallError::from)?;
            }
        }
        let connections: HashMap<(&str, &str, &str), &Connection> = connections
            .iter()
            .map(|connection| ((connection.provider.as_str(), connection.integration.as_str(), connection.slug.as_str()), connection))
            .collect();
        let custom = tools.iter().map(|tool| self.resolve_gateway(scope, tool, &connections)).collect::<Result<_, _>>()?;
        Ok(Resolved { builtins: Vec::new(), custom })
    }

    fn resolve_gateway(
        &self,
        scope: Scope,
        tool: &GatewayTool,
        connections: &HashMap<(&str, &str, &str), &Connection>,
    ) -> Result<ResolvedTool, ResolveError> {
        let GatewayTool { provider, integration, action, connection, .. } = tool;
        let listed = self.catalog.integration(scope.project, provider, integration).ok();
        match connections.get(&(provider.as_str(), integration.as_str(), connection.as_str())) {
            Some(row) => row.require_usable().map_err(CallError::from)?,
            None if listed.as_ref().is_some_and(|listed| Connection::implicit_named(scope.project, listed, connection).is_some()) => {}
            None => return Err(CallError::ConnectionNotFound(format!("{provider}/{integration}/{connection}")).into()),
        }
        let listed = listed.ok_or_else(|| CallError::ActionNotFound(format!("{provider}/{integration}/{action}")))?;
        let found = listed.action(action).ok_or_else(|| CallError::no_action(&listed, action))?;
        Ok(ResolvedTool {
            name: tool.tool_name(),
            description: found.description.clone(),
            input_schema: found.input_schema.value(),
            output_schema: found.output_schema.as_ref().map(kernel::json::Document::value),
            call_ref: tool.reference(),
            read_only: found.read_only,
            destructive: found.destructive,
        })
    }
}

impl Resolved {
    /// The tools as a model API takes them.
    pub fn definitions(&self, format: Format) -> Result<Definitions, ResolveError> {
        NameTable::new(self.custom.iter().map(|tool| tool.call_ref.as_str()))?;
        let define = |tool: &ResolvedTool| {
            let view = ToolView {
                name: &tool.call_ref,
                description: &tool.description,
                input_schema: &tool.input_schema,
                output_schema: tool.output_schema.as_ref(),
                read_only: Some(tool.read_only),
                destructive: Some(tool.destructive),
            };
            definition(format, &view)
        };
        let names = self.custom.iter().map(|tool| (function_name(&tool.call_ref), tool.call_ref.clone())).collect();
        Ok(Definitions { definitions: self.custom.iter().map(define).collect(), names })
    }
}

/// A segment stands between dots and double underscores, so it may neither hold nor touch them.
fn check_segments(tool: &GatewayTool) -> Result<&GatewayTool, ResolveError> {
    let fits = |segment: &str| {
        segment.split('_').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
    };
    match [&tool.provider, &tool.integration, &tool.action, &tool.connection].into_iter().find(|segment| !fits(segment)) {
        None => Ok(tool),
        Some(segment) => {
            let GatewayTool { provider, integration, action, connection, .. } = tool;
            Err(ResolveError::Segment { reference: format!("{provider}.{integration}.{action}.{connection}"), segment: segment.clone() })
        }
    }
}
