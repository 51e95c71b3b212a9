//! `POST /tools/resolve` and `GET /tools/schema`

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::format::{Format, UnknownFormat};
use tools::{ResolvedTool, SpecSet, ToolCallback, ToolSpec};
use utoipa::{IntoParams, ToSchema};

use crate::App;
use crate::edge::auth::ViewTools;
use crate::edge::{ApiError, ApiResult, Payload, QueryOf, Scoped};

/// A request to resolve tool configs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveTools {
    /// Tool configs, in any of their shapes; `GET /tools/schema` describes them.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Value>,
}

/// What to hand back besides the tools.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ResolveOptions {
    /// `openai`, `anthropic`, `gemini` or `mcp`: adds definitions that this API accepts as they are.
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
    /// With `format`: the tools as the model API takes them, in the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub definitions: Option<Vec<Value>>,
    /// With `format`: from the function name that the model calls to the call ref.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeMap<String, String>>,
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
    fn from(tool: ResolvedTool) -> Self {
        Self {
            name: tool.name,
            description: tool.description,
            input_schema: tool.input_schema,
            call_ref: tool.call_ref,
            read_only: tool.read_only,
        }
    }
}

/// Resolve tool configs into tools that can be called
#[utoipa::path(post, path = "/tools/resolve", operation_id = "resolve_tools", tag = "Tools", security(("key" = ["view_tools"])), params(ResolveOptions),
    request_body = ResolveTools, responses((status = 200, body = ResolveAnswer), (status = 400, description = "A bad segment or an unusable connection"),
        (status = 404, description = "No such provider, connection or action"), (status = 422, description = "A config of the wrong shape or kind")))]
pub(crate) async fn resolve(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(options): QueryOf<ResolveOptions>,
    Payload(body): Payload<ResolveTools>,
) -> ApiResult<Json<ResolveAnswer>> {
    let format = options.format()?;
    let resolved = app.tools.resolve(scope, &body.tools).await?;
    let defined = format.map(|format| resolved.definitions(format)).transpose()?;
    let (definitions, names) = defined.map(|defined| (defined.definitions, defined.names.into_iter().collect())).unzip();
    let custom: Vec<ResolvedBody> = resolved.custom.into_iter().map(Into::into).collect();
    Ok(Json(ResolveAnswer { count: resolved.builtins.len() + custom.len(), builtins: resolved.builtins, custom, definitions, names }))
}

/// A request to resolve an agent's tools.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveSpecs {
    /// Tool configs of every kind.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Value>,
}

/// Specs for a runner, on their wire names.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecsAnswer {
    pub count: usize,
    /// In this order: gateway, platform, reference, code, client.
    #[schema(value_type = Vec<Object>)]
    pub custom_tools: Vec<ToolSpec>,
    /// Where calls go; null when no tool needs it. The authorization is the runner's own key.
    #[schema(value_type = Option<Object>)]
    pub tool_callback: Option<ToolCallback>,
    pub warnings: Vec<String>,
    /// With `format`: the tools as the model API takes them, in the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub definitions: Option<Vec<Value>>,
    /// With `format`: from the function name that the model calls to what is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<BTreeMap<String, String>>,
}

/// Resolve an agent's tools into the specs that a runner is given
#[utoipa::path(post, path = "/tools/specs", operation_id = "resolve_tool_specs", tag = "Tools", security(("key" = ["view_tools"])), params(ResolveOptions),
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
    let set = app.tools.specs(scope, &body.tools, &callback).await?;
    let defined = format.map(|format| set.definitions(format)).transpose()?;
    let (definitions, names) = defined.map(|defined| (defined.definitions, defined.names.into_iter().collect())).unzip();
    let SpecSet { specs, callback, warnings } = set;
    Ok(Json(SpecsAnswer { count: specs.len(), custom_tools: specs, tool_callback: callback, warnings, definitions, names }))
}

/// The JSON Schema of an agent's tool configuration
#[utoipa::path(get, path = "/tools/schema", operation_id = "fetch_tool_schema", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, description = "A JSON Schema", body = Object)))]
pub(crate) async fn schema(_: Scoped<ViewTools>) -> Json<Value> {
    Json(tools::config::json_schema())
}
