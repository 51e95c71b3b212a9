//! `POST /tools/resolve` and `GET /tools/schema`

use std::collections::BTreeMap;

use axum::extract::State;
use definitions::format::{Format, UnknownFormat};
use definitions::{Callee, ConnectedIntegration, ResolvedConnection, ResolvedTool, SpecSet, ToolCallback, ToolSpec};
use document::{IntoParams, ToSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::edge::auth::ViewTools;
use crate::edge::{ApiError, ApiResult, Json, Payload, QueryOf, Scoped};
use crate::{App, addresses};

/// A request to resolve tool configs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveTools {
    /// Tool configs, in any of their shapes; `GET /tools/schema` describes them.
    #[serde(default)]
    #[schema(value_type = Vec<crate::shapes::ObjectOrText>)]
    pub tools: Vec<Value>,
}

/// What to hand back besides the tools.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ResolveOptions {
    /// `openai`, `anthropic`, `gemini` or `mcp`: adds definitions that this API accepts as they are.
    #[param(inline, required = false, value_type = crate::shapes::FormatWord)]
    pub format: Option<String>,
}

impl ResolveOptions {
    fn format(self) -> ApiResult<Option<Format>> {
        let read = |name: String| name.parse().map_err(|error: UnknownFormat| ApiError::unprocessable(error.to_string()));
        self.format.map(read).transpose()
    }
}

/// Tools that can be called.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResolveAnswer {
    pub count: usize,
    pub builtins: Vec<String>,
    pub custom: Vec<ResolvedBody>,
    /// Integrations that are given as a whole, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateway_connections: Vec<ConnectionSlice>,
    /// With `format`: the tools as the model API takes them, in the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub definitions: Option<Vec<Value>>,
    /// With `format`: from the function name that the model calls to the call ref.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeMap<String, String>>,
}

/// An integration that is given as a whole, with everything that it can do.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectionSlice {
    pub provider: String,
    pub integration: String,
    pub connection: String,
    /// Changes with the actions of the integration and their schemas.
    pub toolkit_version: String,
    pub tools: Vec<SliceTool>,
    /// What the config says of its tools, as it was read.
    #[schema(value_type = Object)]
    pub policy: Value,
}

/// One of its tools.
#[derive(Debug, Serialize, ToSchema)]
pub struct SliceTool {
    pub key: String,
    pub read_only: Option<bool>,
}

impl From<&ResolvedConnection> for ConnectionSlice {
    fn from(resolved: &ResolvedConnection) -> Self {
        let ConnectedIntegration { provider, integration, connection, toolkit_version, tools } = resolved.into();
        let tools = tools.into_iter().map(|tool| SliceTool { key: tool.key, read_only: tool.read_only }).collect();
        Self { provider, integration, connection, toolkit_version, tools, policy: json!(resolved.config.policy) }
    }
}

/// One tool that can be called.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResolvedBody {
    pub name: String,
    pub description: String,
    #[schema(value_type = Object)]
    pub input_schema: Value,
    pub call_ref: String,
    pub read_only: bool,
}

impl From<ResolvedTool> for ResolvedBody {
    fn from(ResolvedTool { name, call_ref, tool }: ResolvedTool) -> Self {
        Self {
            name,
            description: tool.description().to_owned(),
            input_schema: tool.input_schema(),
            call_ref,
            read_only: tool.read_only().unwrap_or_default(),
        }
    }
}

/// Resolve tool configs into tools that can be called
#[document::path(post, path = "/tools/resolve", operation_id = "resolve_tools", tag = "Tools", security(("key" = ["view_tools"])), params(ResolveOptions),
    request_body = ResolveTools, responses((status = 200, body = ResolveAnswer), (status = 400, description = "A bad segment or an unusable connection"),
        (status = 404, description = "No such provider, connection or action"), (status = 422, description = "A config of the wrong shape or kind")))]
pub(crate) async fn resolve(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(options): QueryOf<ResolveOptions>,
    Payload(body): Payload<ResolveTools>,
) -> ApiResult<Json<ResolveAnswer>> {
    let format = options.format()?;
    let resolved = app.definitions.resolve(scope, &body.tools).await?;
    let defined = format.map(|format| resolved.definitions(format)).transpose()?;
    let (definitions, names) = defined.map(|defined| (defined.definitions, names(defined.names))).unzip();
    let custom: Vec<ResolvedBody> = resolved.custom.into_iter().map(Into::into).collect();
    let gateway_connections: Vec<ConnectionSlice> = resolved.connections.iter().map(Into::into).collect();
    let count = resolved.builtins.len() + custom.len() + gateway_connections.len();
    Ok(Json(ResolveAnswer { count, builtins: resolved.builtins, custom, gateway_connections, definitions, names }))
}

/// A request to resolve an agent's tools.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveSpecs {
    /// Tool configs of every kind.
    #[serde(default)]
    #[schema(value_type = Vec<crate::shapes::ObjectOrText>)]
    pub tools: Vec<Value>,
}

/// Specs for a runner, on their wire names.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecsAnswer {
    pub count: usize,
    /// In this order: gateway, the two that reach whole integrations, platform, reference, code, client.
    #[schema(value_type = Vec<Object>)]
    pub custom_tools: Vec<ToolSpec>,
    /// Where calls go; null when no tool needs it. The authorization is the runner's own key.
    #[schema(value_type = Option<Object>)]
    pub tool_callback: Option<ToolCallback>,
    pub warnings: Vec<String>,
    /// Integrations that are given as a whole: their connection, their version, and for each tool whether it only reads and what the config
    /// says of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub gateway_connections: Vec<ConnectedIntegration>,
    /// With `format`: the tools as the model API takes them, in the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub definitions: Option<Vec<Value>>,
    /// With `format`: from the function name that the model calls to what is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeMap<String, String>>,
}

/// Resolve an agent's tools into the specs that a runner is given
#[document::path(post, path = "/tools/specs", operation_id = "resolve_tool_specs", tag = "Tools", security(("key" = ["view_tools"])), params(ResolveOptions),
    request_body = ResolveSpecs, responses((status = 200, body = SpecsAnswer), (status = 400, description = "A bad segment or an unusable connection"),
        (status = 404, description = "No such provider, connection, action or workflow"), (status = 422, description = "A config of the wrong shape")))]
pub(crate) async fn specs(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(options): QueryOf<ResolveOptions>,
    Payload(body): Payload<ResolveSpecs>,
) -> ApiResult<Json<SpecsAnswer>> {
    let format = options.format()?;
    let callback = ToolCallback { endpoint: app.options.callback.clone(), authorization: None };
    let mount = addresses::mount(&callback.endpoint).map_err(ApiError::bad_request)?;
    let set = app.definitions.specs(scope, &body.tools, &callback, &mount).await?;
    let defined = format.map(|format| set.definitions(format)).transpose()?;
    let (definitions, names) = defined.map(|defined| (defined.definitions, names(defined.names))).unzip();
    let SpecSet { specs, callback, warnings, connections } = set;
    Ok(Json(SpecsAnswer {
        count: specs.len(),
        custom_tools: specs,
        tool_callback: callback,
        warnings,
        gateway_connections: connections,
        definitions,
        names,
    }))
}

/// From function names to what they lead to.
fn names(names: Vec<(String, Callee)>) -> BTreeMap<String, String> {
    names.into_iter().map(|(name, callee)| (name, addresses::callee(callee))).collect()
}

/// The JSON Schema of an agent's tool configuration
#[document::path(get, path = "/tools/schema", operation_id = "fetch_tool_schema", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, description = "A JSON Schema", body = Object)))]
pub(crate) async fn schema(_: Scoped<ViewTools>) -> Json<Value> {
    Json(definitions::config::json_schema())
}
