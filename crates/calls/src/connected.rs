//! `gateway.search` and `gateway.run`: runners that give a model a whole integration let it find its actions and name them in arguments.
//! A run becomes the call of the action that it names, before anything else happens to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{Action, CatalogError, Integration, Reach};
use connections::Connection;
use kernel::call_ref::GATEWAY_RUN;
use kernel::{Budget, CallName, CallRef, Scope, suggest};
use serde_json::{Map, Value, json};
use work::{LARGE, WorkError};

use crate::reserved::{AgentError, Refusal};
use crate::{CallError, CallRequest, Calls, read_arguments};

/// The most that a search finds.
const MOST_FOUND: usize = 5;
/// How many names are offered for one that does not exist.
const OFFERED: usize = 5;

/// What a runner says beside the arguments, which its model never sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayContext {
    pub provider: Option<String>,
    pub integration: Option<String>,
    pub connection: Option<String>,
    pub tool: Option<String>,
    /// What the integration was when its tools were resolved.
    pub toolkit_version: Option<String>,
    /// The same for a search: the integrations that the agent has.
    pub toolkit_versions: BTreeMap<String, String>,
}

/// An integration, and a connection to it.
struct Connected {
    integration: Arc<Integration>,
    slug: String,
}

/// Whether a call names what it calls in its arguments.
pub(crate) fn is_run(name: &CallName) -> bool {
    matches!(name.target(), Ok(CallRef::Reserved { op }) if op == GATEWAY_RUN)
}

impl Calls {
    /// The call of the action that `gateway.run` names.
    pub(crate) async fn named_action(&self, scope: Scope, request: &CallRequest) -> Result<CallRequest, Refusal> {
        let arguments = read_arguments(request.arguments.clone()).map_err(|error| AgentError::invalid_arguments(error.to_string()))?;
        let RunArguments { integration, tool, arguments } = RunArguments::read(arguments)?;
        let context = &request.gateway;
        for (name, said, meant) in [("integration", &context.integration, &integration), ("tool", &context.tool, &tool)] {
            if said.as_ref().is_some_and(|said| said != meant) {
                return Err(AgentError::invalid_arguments(format!("`{name}` is not the one that the runner allowed.")).into());
            }
        }
        let provider = context.provider.as_deref();
        let (found, slug) = if let (Some(provider), Some(slug)) = (provider, &context.connection) {
            (self.listed(scope, provider, &integration, &tool).await?, slug.clone())
        } else {
            let Connected { integration: only, slug } = self.only_connection(scope, provider, &integration).await?;
            (self.listed(scope, only.provider, &integration, &tool).await?, context.connection.clone().unwrap_or(slug))
        };
        if let Some(expected) = context.toolkit_version.as_deref().filter(|expected| *expected != found.version()) {
            let changed = format!("The tools of {integration} changed since they were resolved: then {expected}, now {}.", found.version());
            return Err(AgentError::new("toolkit_changed", changed).next("Resolve the agent's tools again and start over.").into());
        }
        if found.action(&tool).is_none() {
            return Err(no_such_tool(&found, &tool).into());
        }
        let target = CallRef::Gateway { provider: found.provider.to_owned(), integration, action: tool, connection: slug };
        let arguments = Value::Object(arguments);
        Ok(CallRequest { name: target.into(), arguments, gateway: GatewayContext::default(), ..request.clone() })
    }

    async fn listed(&self, scope: Scope, provider: &str, integration: &str, action: &str) -> Result<Arc<Integration>, Refusal> {
        let refused = |error: CatalogError| Refusal::Call(CallError::Connection(error.into()));
        self.0.catalog.ready(scope.project).await.map_err(refused)?;
        // A name that the provider does not have is told below, with those that are near.
        if let Err(error @ CatalogError::NotConfigured { .. }) = self.0.catalog.reach(provider, Reach::Action(integration, action)).await {
            return Err(refused(error));
        }
        self.0.catalog.integration(scope.project, provider, integration).map_err(refused)
    }

    /// The one connection that an integration has, or why there is no telling.
    async fn only_connection(&self, scope: Scope, provider: Option<&str>, integration: &str) -> Result<Connected, Refusal> {
        let mut all = self.connected(scope, provider, Some(integration)).await?;
        match all.len() {
            1 => Ok(all.remove(0)),
            0 => Err(self.not_connected(scope, integration).await?.into()),
            _ => {
                let names = all.iter().map(|one| json!({"provider": one.integration.provider, "connection": one.slug})).collect();
                let several = AgentError::new("connection_ambiguous", format!("{integration} has several connections."));
                Err(several.details(Value::Array(names)).next("Say which in `context.provider` and `context.connection`.").into())
            }
        }
    }

    /// The usable connections of a project, each with its integration. One that needs no account is there where it is named.
    async fn connected(&self, scope: Scope, provider: Option<&str>, integration: Option<&str>) -> Result<Vec<Connected>, CallError> {
        self.0.catalog.ready(scope.project).await.map_err(|error| CallError::Connection(error.into()))?;
        let rows = self.0.connections.choices(scope, provider, integration).await?;
        let mut found = Vec::new();
        for row in rows.iter().filter(|row| row.is_usable()) {
            if let Ok(integration) = self.0.catalog.integration(scope.project, &row.provider, &row.integration) {
                found.push(Connected { integration, slug: row.slug.clone() });
            }
        }
        if let (true, Some(named)) = (rows.is_empty(), integration) {
            for known in self.0.catalog.providers().iter().filter(|known| provider.is_none_or(|provider| provider == known.key)) {
                let slug = Connection::usual_slug(named);
                let listed = self.0.catalog.integration(scope.project, known.key, named).ok();
                let implicit = |listed: &Arc<Integration>| Connection::implicit_named(scope.into(), listed, &slug).is_some();
                found.extend(listed.filter(implicit).map(|integration| Connected { integration, slug: slug.clone() }));
            }
        }
        Ok(found)
    }

    async fn not_connected(&self, scope: Scope, integration: &str) -> Result<AgentError, CallError> {
        let known = self.connected(scope, None, None).await?;
        let near = suggest::did_you_mean(integration, known.iter().map(|one| one.integration.key.as_str()));
        let told = AgentError::new("integration_not_connected", format!("{integration} is not connected.{near}"));
        Ok(told.next("Call search_tools to find a tool of an integration that is connected."))
    }

    /// The actions of connected integrations that fit a sentence best.
    pub(crate) async fn query_connected(
        &self,
        scope: Scope,
        context: &GatewayContext,
        arguments: &Map<String, Value>,
    ) -> Result<Value, Refusal> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let query = text("query").unwrap_or_default().to_owned();
        let named = text("integration");
        let mut connected = self.connected(scope, context.provider.as_deref(), named).await?;
        if let (Some(integration), true) = (named, connected.is_empty()) {
            return Err(self.not_connected(scope, integration).await?.into());
        }
        if !context.toolkit_versions.is_empty() {
            connected.retain(|one| context.toolkit_versions.contains_key(&one.integration.key));
        }
        let mut integrations: Vec<Arc<Integration>> = Vec::new();
        for Connected { integration, .. } in connected {
            if !integrations.iter().any(|known| Arc::ptr_eq(known, &integration)) {
                integrations.push(integration);
            }
        }
        let names: Vec<String> = integrations.iter().map(|integration| integration.key.clone()).collect();
        let search = move |_: &Budget| Ok::<_, WorkError>(best(&query, &integrations));
        let results = self.0.workers.run(scope.project, LARGE, search).await.map_err(CallError::from)?;
        let mut answer = json!({"results": results, "connected_integrations": names});
        if results.is_empty() {
            answer["message"] = "No tool of the connected integrations fits. Say more about what you want to do.".into();
        }
        Ok(answer)
    }
}

/// What `gateway.run` was asked for.
struct RunArguments {
    integration: String,
    tool: String,
    arguments: Map<String, Value>,
}

impl RunArguments {
    fn read(mut given: Map<String, Value>) -> Result<Self, AgentError> {
        let mut text = |name: &str| match given.remove(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            _ => Err(AgentError::invalid_arguments(format!("`{name}` must be text, as search_tools returned it."))),
        };
        let (integration, tool) = (text("integration")?, text("tool")?);
        let Some(Value::Object(arguments)) = given.remove("arguments") else {
            return Err(AgentError::invalid_arguments("`arguments` must be an object that fits the tool's input_schema."));
        };
        match given.keys().next() {
            Some(unknown) => Err(AgentError::invalid_arguments(format!("`{unknown}` is not known; put it into `arguments`."))),
            None => Ok(Self { integration, tool, arguments }),
        }
    }
}

fn no_such_tool(integration: &Integration, tool: &str) -> AgentError {
    let near = suggest::closest(tool, integration.actions.iter().map(|action| action.key.as_str()), OFFERED);
    let told =
        AgentError::new("tool_not_found", format!("{} has no tool `{}`.", integration.key, tool.chars().take(200).collect::<String>()));
    let told = if near.is_empty() { told } else { told.details(json!({"suggestions": near})) };
    told.next("Call search_tools and use the key of a tool that it returns.")
}

/// The actions that fit, the best first.
fn best(query: &str, integrations: &[Arc<Integration>]) -> Vec<Value> {
    let lists: Vec<&Integration> = integrations.iter().map(AsRef::as_ref).collect();
    let scores = catalog::relevance(query, &lists, &[]);
    let scored = integrations
        .iter()
        .zip(&scores)
        .flat_map(|(integration, scores)| integration.actions.iter().zip(scores).map(move |(action, score)| (*score, integration, action)));
    let mut fitting: Vec<(f32, &Arc<Integration>, &Arc<Action>)> = scored.filter(|(score, ..)| *score > 0.0).collect();
    fitting.sort_by(|one, other| other.0.total_cmp(&one.0));
    let shown = |(_, integration, action): (f32, &Arc<Integration>, &Arc<Action>)| {
        json!({
            "integration": integration.key,
            "provider": integration.provider,
            "tool": action.key,
            "name": action.name,
            "description": action.description,
            "input_schema": action.input_schema.value(),
            "read_only": action.read_only,
        })
    };
    fitting.into_iter().take(MOST_FOUND).map(shown).collect()
}
