//! From an agent's tool configs to tools that can be called: names checked first, then connections and actions, all or nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use catalog::{CatalogError, Integration, Reach};
use connections::Connection;
use kernel::{Permission, Scope};
use serde_json::{Map, Value};
use workflows::WorkflowError;
use workflows::embed::{EmbedLimits, ErrorPolicy, contains_embed};

use crate::config::{ConnectionTool, GatewayTool, OnError, ToolConfig, check_embeds, check_names, coerce_list};
use crate::format::{Format, NameTable, function_name};
use crate::{Definitions, ResolveError, Tool, unknown_action};

/// Tools that can be called.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    pub builtins: Vec<String>,
    pub custom: Vec<ResolvedTool>,
    pub connections: Vec<ResolvedConnection>,
}

/// A whole integration that can be used.
#[derive(Clone, Debug)]
pub struct ResolvedConnection {
    pub config: ConnectionTool,
    pub integration: Arc<Integration>,
}

/// One tool that can be called, and the name that its author gave it.
#[derive(Clone, Debug)]
pub struct ResolvedTool {
    pub name: String,
    pub call_ref: String,
    pub tool: Tool,
}

/// Definitions for a model API, and the way back from the names it calls.
#[derive(Clone, Debug)]
pub struct ModelDefinitions {
    pub definitions: Vec<Value>,
    pub names: Vec<(String, Callee)>,
}

/// What the function name of a model leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A call by its ref.
    Ref(String),
    /// A platform op that is a request of its own.
    Op(String),
    /// What the runner or the caller's application does itself.
    Local(String),
}

impl Definitions {
    /// The configs with what their embeds stand for: parts of workflows, taken as they are now.
    pub(crate) async fn with_embeds<'a>(&self, scope: Scope, items: &'a [Value]) -> Result<Cow<'a, [Value]>, ResolveError> {
        if !items.iter().any(contains_embed) {
            return Ok(Cow::Borrowed(items));
        }
        check_embeds(items)?;
        if !scope.may(Permission::ViewWorkflows) {
            return Err(ResolveError::Forbidden(Permission::ViewWorkflows));
        }
        let whole = Value::Object(Map::from_iter([("tools".to_owned(), Value::Array(items.to_vec()))]));
        let resolved = self.workflows.resolve(scope, whole, EmbedLimits::default(), ErrorPolicy::Exception).await;
        let mut resolved = resolved.map_err(WorkflowError::from)?.value;
        match resolved["tools"].take() {
            Value::Array(items) => Ok(Cow::Owned(items)),
            _ => Ok(Cow::Owned(Vec::new())),
        }
    }

    /// Resolves configs in their order. The first that fails fails all of them, before anything is used.
    #[kernel::boxed]
    pub async fn resolve(&self, scope: Scope, items: &[Value]) -> Result<Resolved, ResolveError> {
        let items = self.with_embeds(scope, items).await?;
        let configs = coerce_list(&items, OnError::Raise)?.configs;
        let mut builtins = Vec::new();
        let (mut gateways, mut whole) = (Vec::new(), Vec::new());
        for config in &configs {
            match config {
                ToolConfig::Builtin(tool) => builtins.push(tool.name.clone()),
                ToolConfig::Gateway(tool) => gateways.push(check_segments(tool)?),
                ToolConfig::Connection(tool) => whole.push(tool),
                ToolConfig::Code(_) => return Err(ResolveError::Kind("code")),
                ToolConfig::Client(_) => return Err(ResolveError::Kind("client")),
                ToolConfig::Reference(_) => return Err(ResolveError::Kind("reference")),
                ToolConfig::Platform(_) => return Err(ResolveError::Kind("platform")),
            }
        }
        check_names(&configs)?;
        let connections = self.resolve_connections(scope, &whole).await?;
        Ok(Resolved { builtins, connections, ..self.resolve_gateways(scope, &gateways).await? })
    }

    /// Resolves gateway tools in their order, with one look at the project's connections.
    pub(crate) async fn resolve_gateways(&self, scope: Scope, tools: &[&GatewayTool]) -> Result<Resolved, ResolveError> {
        if tools.is_empty() {
            return Ok(Resolved::default());
        }
        tools.iter().try_for_each(|tool| check_segments(tool).map(|_| ()))?;
        for GatewayTool { provider, integration, action, .. } in tools.iter().copied() {
            self.catalog.reach(provider, Reach::Action(integration, action)).await.map_err(unreached)?;
        }
        let mut connections = self.connections.query(scope, None, None).await?;
        for row in connections.iter_mut().filter(|row| !row.is_usable()) {
            if tools
                .iter()
                .any(|tool| (&tool.provider, &tool.integration, &tool.connection) == (&row.provider, &row.integration, &row.slug))
            {
                *row = self.connections.look_again(row.clone()).await?;
            }
        }
        let connections: HashMap<(&str, &str, &str), &Connection> = connections
            .iter()
            .map(|connection| ((connection.provider.as_str(), connection.integration.as_str(), connection.slug.as_str()), connection))
            .collect();
        let custom = tools.iter().map(|tool| self.resolve_gateway(scope, tool, &connections)).collect::<Result<_, _>>()?;
        Ok(Resolved { custom, ..Resolved::default() })
    }

    /// Resolves whole integrations in their order: the connection must be usable, and the answer is all that the catalog has.
    pub(crate) async fn resolve_connections(
        &self,
        scope: Scope,
        tools: &[&ConnectionTool],
    ) -> Result<Vec<ResolvedConnection>, ResolveError> {
        let mut resolved = Vec::with_capacity(tools.len());
        for tool in tools {
            let names = &tool.connection;
            self.catalog.reach(&names.provider, Reach::Integration(&names.integration)).await.map_err(unreached)?;
            let integration = self.catalog.integration(scope.project, &names.provider, &names.integration);
            let integration =
                integration.map_err(|_| ResolveError::IntegrationNotFound(format!("{}/{}", names.provider, names.integration)))?;
            match self.connections.find(scope, &names.provider, &names.integration, &names.slug).await? {
                Some(row) => self.connections.look_again(row).await?.require_usable()?,
                None => return Err(ResolveError::ConnectionNotFound(tool.shown())),
            }
            resolved.push(ResolvedConnection { config: (*tool).clone(), integration });
        }
        Ok(resolved)
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
            Some(row) => row.require_usable()?,
            None if listed.as_ref().is_some_and(|listed| Connection::implicit_named(scope.into(), listed, connection).is_some()) => {}
            None => return Err(ResolveError::ConnectionNotFound(format!("{provider}/{integration}/{connection}"))),
        }
        let listed = listed.ok_or_else(|| ResolveError::ActionNotFound(format!("{provider}/{integration}/{action}")))?;
        let found = listed.action(action).ok_or_else(|| ResolveError::ActionNotFound(unknown_action(&listed, action)))?;
        let found = found.clone();
        Ok(ResolvedTool { name: tool.tool_name(), call_ref: tool.reference(), tool: Tool::Action(listed, found) })
    }
}

impl Resolved {
    /// The tools as a model API takes them.
    pub fn definitions(&self, format: Format) -> Result<ModelDefinitions, ResolveError> {
        NameTable::new(self.custom.iter().map(|tool| tool.call_ref.as_str()))?;
        let define = |ResolvedTool { call_ref, tool, .. }: &ResolvedTool| tool.define(format, call_ref, tool.description());
        let names = self.custom.iter().map(|tool| (function_name(&tool.call_ref), Callee::Ref(tool.call_ref.clone()))).collect();
        Ok(ModelDefinitions { definitions: self.custom.iter().map(define).collect(), names })
    }
}

/// A provider that is not there, or cannot be asked now.
fn unreached(error: CatalogError) -> ResolveError {
    match error {
        CatalogError::UnknownProvider(missing) => ResolveError::Provider(missing.key),
        other => ResolveError::Connection(other.into()),
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
