//! The full resolver: from an agent's tool configs to the specs that a runner is given, on their wire names.

use std::collections::{BTreeMap, HashSet};

use kernel::{CallRef, Permission, Scope};
use secrets::Purpose;
use serde::Serialize;
use serde_json::{Map, Value, json};
use url::Url;
use workflows::{References, WorkflowError};

use crate::config::{
    ClientTool, CodeTool, ConfigError, GatewayTool, Hints, Identity, OnError, PlatformTool, ReferenceTool, Runtime, ToolConfig,
    check_names, coerce_list,
};
use crate::format::{Format, NameTable, ToolView, definition, expand_types, function_name};
use crate::ops::{self, Dispatch, Mount};
use crate::{
    BUILT_INS, Callee, ConnectedIntegration, Definitions, Env, ModelDefinitions, ResolveError, Resolved, ResolvedConnection, ResolvedTool,
    Verdict, about_workflow, whole, workflow_name,
};

/// One tool as a runner gets it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Verdict>,
    #[serde(flatten)]
    pub work: ToolImplementation,
}

/// Who does what the tool does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ToolImplementation {
    /// The server, reached by a call ref or by a request of its own.
    Callback(Callback),
    /// The runner, which runs a script, with the secrets that it was given.
    Code {
        runtime: Runtime,
        code: String,
        #[serde(skip_serializing_if = "Env::is_empty")]
        env: Env,
    },
    /// The caller's application.
    Client,
}

/// A workflow as a tool, and its name in rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Referenced {
    pub spec: ToolSpec,
    pub workflow: String,
}

/// How the server is reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Callback {
    #[serde(flatten)]
    pub dispatch: Dispatch,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub ephemeral_args: &'static [&'static str],
}

impl Callback {
    pub(crate) fn by_ref(call_ref: String) -> Self {
        Self { dispatch: Dispatch::Handler { call_ref, context_bindings: BTreeMap::new() }, timeout_ms: None, ephemeral_args: &[] }
    }
}

/// Where a runner takes its calls; the key is the runner's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolCallback {
    #[serde(serialize_with = "as_text")]
    pub endpoint: Url,
    pub authorization: Option<String>,
}

fn as_text<S: serde::Serializer>(url: &Url, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(url)
}

/// Specs with the one callback they share.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpecSet {
    pub specs: Vec<ToolSpec>,
    #[serde(rename = "toolCallback")]
    pub callback: Option<ToolCallback>,
    pub warnings: Vec<String>,
    /// Integrations that are there as a whole.
    #[serde(rename = "gatewayConnections", skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectedIntegration>,
}

impl SpecSet {
    /// Puts another set behind this one. Two different callbacks are a mistake, not a choice; so are two tools of one name.
    pub fn join(mut self, other: Self) -> Result<Self, ResolveError> {
        match (&self.callback, other.callback) {
            (Some(ours), Some(theirs)) if *ours != theirs => {
                return Err(ResolveError::TwoCallbacks(ours.endpoint.to_string(), theirs.endpoint.to_string()));
            }
            (None, theirs) => self.callback = theirs,
            (Some(_), _) => {}
        }
        self.specs.extend(other.specs);
        self.warnings.extend(other.warnings);
        self.connections.extend(other.connections);
        let mut names = HashSet::new();
        for spec in &self.specs {
            if BUILT_INS.contains(&spec.name.trim().to_lowercase().as_str()) {
                return Err(ConfigError::Reserved(spec.name.clone()).into());
            }
            if !names.insert(spec.name.as_str()) {
                return Err(ConfigError::Duplicate(Identity::Name(spec.name.clone())).into());
            }
        }
        Ok(self)
    }

    /// The tools as a model API takes them, by the names that their author gave them.
    pub fn definitions(&self, format: Format) -> Result<ModelDefinitions, ResolveError> {
        NameTable::new(self.specs.iter().map(|spec| spec.name.as_str()))?;
        let define = |spec: &ToolSpec| {
            let view = ToolView {
                name: &spec.name,
                description: &spec.description,
                input_schema: &spec.input_schema,
                output_schema: None,
                read_only: spec.read_only,
                destructive: None,
            };
            definition(format, &view)
        };
        let names = self.specs.iter().map(|spec| (function_name(&spec.name), spec.callee())).collect();
        Ok(ModelDefinitions { definitions: self.specs.iter().map(define).collect(), names })
    }
}

impl ToolSpec {
    /// What a call of the tool is aimed at.
    fn callee(&self) -> Callee {
        match &self.work {
            ToolImplementation::Callback(Callback { dispatch: Dispatch::Handler { call_ref, .. }, .. }) => Callee::Ref(call_ref.clone()),
            ToolImplementation::Callback(Callback { dispatch: Dispatch::Direct { .. }, .. }) => Callee::Op(self.name.clone()),
            ToolImplementation::Code { .. } | ToolImplementation::Client => Callee::Local(self.name.clone()),
        }
    }
}

impl Definitions {
    /// Resolves configs of every kind: gateway tools first, then those that reach whole integrations, then platform, reference, code and client tools, each in their order. Names
    /// are checked before anything is looked up. Requests of ops go to the API at `mount`.
    #[kernel::boxed]
    pub async fn specs(&self, scope: Scope, items: &[Value], callback: &ToolCallback, mount: &Mount) -> Result<SpecSet, ResolveError> {
        let items = self.with_embeds(scope, items).await?;
        let configs = coerce_list(&items, OnError::Raise)?.configs;
        check_names(&configs)?;
        let (mut gateways, mut whole) = (Vec::new(), Vec::new());
        let (mut platform, mut references, mut local, mut warnings) = (Vec::new(), Vec::new(), (Vec::new(), Vec::new()), Vec::new());
        for config in &configs {
            match config {
                ToolConfig::Builtin(tool) => {
                    let lost = tool.hints.permission.map(|_| ", and its permission to no more: name it in `harness.permissions`");
                    let lost = lost.unwrap_or_default();
                    warnings.push(format!("`{}` is a built-in; it is always active and resolves to nothing{lost}", tool.name));
                }
                ToolConfig::Gateway(tool) => gateways.push(tool),
                ToolConfig::Connection(tool) => whole.push(tool),
                ToolConfig::Platform(tool) => platform.push(platform_spec(tool, mount)?),
                ToolConfig::Reference(tool) => references.push(tool),
                ToolConfig::Code(tool) => local.0.push(tool),
                ToolConfig::Client(tool) => local.1.push(client_spec(tool)),
            }
        }
        let gateways = self.gateway_specs(scope, &gateways).await?;
        let whole = self.resolve_connections(scope, &whole).await?;
        warnings.extend(whole.iter().flat_map(ResolvedConnection::stale));
        let connections: Vec<ConnectedIntegration> = whole.iter().map(Into::into).collect();
        let reaching = if connections.is_empty() { Vec::new() } else { whole::specs() };
        let mut referenced = Vec::with_capacity(references.len());
        for tool in references {
            referenced.push(self.reference(scope, tool).await?.spec);
        }
        let mut scripts = Vec::with_capacity(local.0.len());
        for tool in local.0 {
            scripts.push(self.code_spec(scope, tool).await?);
        }
        let reached =
            |specs: Vec<ToolSpec>| SpecSet { callback: (!specs.is_empty()).then(|| callback.clone()), specs, ..SpecSet::default() };
        let here = |specs| SpecSet { specs, ..SpecSet::default() };
        SpecSet { warnings, connections, ..SpecSet::default() }
            .join(reached(gateways))?
            .join(reached(reaching))?
            .join(reached(platform))?
            .join(reached(referenced))?
            .join(here(scripts))?
            .join(here(local.1))
    }

    async fn gateway_specs(&self, scope: Scope, tools: &[&GatewayTool]) -> Result<Vec<ToolSpec>, ResolveError> {
        let Resolved { custom, .. } = self.resolve_gateways(scope, tools).await?;
        Ok(custom.into_iter().zip(tools).map(|(resolved, tool)| gateway_spec(resolved, &tool.hints)).collect())
    }

    /// A script with the secrets that it names. Their values are only for keys that may read them.
    async fn code_spec(&self, scope: Scope, tool: &CodeTool) -> Result<ToolSpec, ResolveError> {
        if !tool.secrets.is_empty() && !scope.may(Permission::ReadSecrets) {
            return Err(ResolveError::Forbidden(Permission::ReadSecrets));
        }
        let mut values = Vec::with_capacity(tool.secrets.len());
        for name in &tool.secrets {
            let shown = self.secrets.show(scope, name, Purpose::CodeTool).await;
            let (_, value) = shown.map_err(|error| ResolveError::Secret { tool: tool.name.clone(), error })?;
            values.push((name.clone(), value));
        }
        let description = tool.description.clone().unwrap_or_else(|| tool.name.clone());
        let work = ToolImplementation::Code { runtime: tool.runtime, code: tool.script.clone(), env: values.into_iter().collect() };
        Ok(spec(tool.name.clone(), description, Value::Object(tool.input_schema.clone()), &tool.hints, work))
    }

    /// The schema is the author's, or else the workflow's own, so that it cannot drift.
    #[kernel::boxed]
    pub async fn reference(&self, scope: Scope, tool: &ReferenceTool) -> Result<Referenced, WorkflowError> {
        let call_ref = tool.call_ref();
        let references = match &call_ref {
            CallRef::Environment { environment, slug } => References::deployed(environment, slug),
            _ => References::workflow(tool.slug.as_str(), version(&call_ref)),
        };
        let found = self.workflows.retrieve(scope, &references, None).await;
        let found = found.map_err(|error| about_workflow(&call_ref, error))?;
        let workflow = workflow_name(&found);
        let name = tool.name.clone().unwrap_or_else(|| tool.slug.to_string());
        let authored = Value::Object(tool.input_schema.clone());
        let input_schema = if is_empty(&authored) { found.input_schema().cloned().unwrap_or(authored) } else { authored };
        let description = tool.description.clone().or(found.artifact.description).unwrap_or_else(|| name.clone());
        let work = ToolImplementation::Callback(Callback::by_ref(call_ref.to_string()));
        Ok(Referenced { spec: spec(name, description, input_schema, &tool.hints, work), workflow })
    }
}

fn version(call_ref: &CallRef) -> Option<&str> {
    match call_ref {
        CallRef::Variant { version, .. } => version.as_deref(),
        _ => None,
    }
}

/// What a config has when its author gives no schema.
fn is_empty(schema: &Value) -> bool {
    *schema == json!({"type": "object", "properties": {}}) || *schema == json!({})
}

pub(crate) fn spec(name: String, description: String, input_schema: Value, hints: &Hints, work: ToolImplementation) -> ToolSpec {
    let input_schema = expand_types(&input_schema);
    ToolSpec { name, description, input_schema, render: hints.render.clone(), read_only: None, permission: hints.permission, work }
}

fn gateway_spec(ResolvedTool { name, call_ref, tool }: ResolvedTool, hints: &Hints) -> ToolSpec {
    let work = ToolImplementation::Callback(Callback::by_ref(call_ref));
    ToolSpec { read_only: tool.read_only(), ..spec(name, tool.description().to_owned(), tool.input_schema(), hints, work) }
}

fn platform_spec(tool: &PlatformTool, mount: &Mount) -> Result<ToolSpec, ResolveError> {
    let op = ops::lookup(&tool.op).map_err(|error| ResolveError::Op(error.to_string()))?;
    let parts = ops::spec_parts(op, mount, tool.hints.permission);
    let work = ToolImplementation::Callback(Callback {
        dispatch: parts.dispatch,
        timeout_ms: parts.timeout_ms,
        ephemeral_args: parts.ephemeral_args,
    });
    Ok(ToolSpec {
        read_only: Some(parts.read_only),
        ..spec(tool.op.clone(), op.description.clone(), parts.input_schema, &tool.hints, work)
    })
}

fn client_spec(tool: &ClientTool) -> ToolSpec {
    let description = tool.description.clone().unwrap_or_else(|| tool.name.clone());
    spec(tool.name.clone(), description, Value::Object(tool.input_schema.clone()), &tool.hints, ToolImplementation::Client)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, endpoint: &str) -> SpecSet {
        let work = ToolImplementation::Callback(Callback::by_ref("workflow.variant.x".to_owned()));
        let spec = spec(name.to_owned(), name.to_owned(), json!({}), &Hints::default(), work);
        let callback = ToolCallback { endpoint: endpoint.parse().unwrap(), authorization: None };
        SpecSet { specs: vec![spec], callback: Some(callback), ..SpecSet::default() }
    }

    #[test]
    fn sets_share_one_callback_and_no_names() {
        let one = "https://a/tools/call";
        let joined = set("x", one).join(set("y", one)).unwrap();
        assert_eq!(joined.specs.len(), 2);
        assert!(matches!(set("x", one).join(set("y", "https://b/tools/call")), Err(ResolveError::TwoCallbacks(..))));
        assert!(matches!(set("x", one).join(set("x", one)), Err(ResolveError::Config(ConfigError::Duplicate(_)))));
        let alike = set("a.b", one).join(set("a__b", one)).unwrap();
        assert!(matches!(alike.definitions(Format::OpenAi), Err(ResolveError::Names(_))));
        assert!(matches!(set("x", one).join(set(" Bash", one)), Err(ResolveError::Config(ConfigError::Reserved(_)))));
    }

    #[test]
    fn specs_are_written_on_their_wire_names() {
        let op = platform_spec(&PlatformTool { op: "rename_agent".to_owned(), hints: Hints::default() }, &Mount::root()).unwrap();
        let wire = json!(op);
        assert_eq!((&wire["kind"], &wire["readOnly"], &wire["call"]["args_into"]), (&json!("callback"), &json!(false), &json!("workflow")));
        assert!(wire.get("callRef").is_none() && wire["inputSchema"].is_object() && wire.get("permission").is_none());
        let client = client_spec(&ClientTool { name: "pick".into(), description: None, input_schema: Map::new(), hints: Hints::default() });
        assert_eq!(json!(client), json!({"name": "pick", "description": "pick", "inputSchema": {}, "kind": "client"}));
    }
}
