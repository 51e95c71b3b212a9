//! `/v3.1/tools`

use axum::extract::State;
use composio_api::execute::{ExecuteTool, ExecutedTool};
use composio_api::page::{Page, commas};
use composio_api::tools::{ToolDetails, ToolFilter, Versions};
use document::IntoParams;
use serde::Deserialize;

use super::{ApiAnswer, Asked, ByKey};
use crate::App;
use crate::edge::auth::{RunTools, ViewTools};
use crate::edge::{Json, PathOf, Payload, Unused};

/// Which tools to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioToolsQuery {
    /// Slugs with commas: these and nothing else. Unknown ones are left out.
    tool_slugs: Option<String>,
    /// Slugs of toolkits with commas.
    toolkit_slug: Option<String>,
    /// A sentence that says what the tool shall do; the best come first.
    query: Option<String>,
    /// The same.
    search: Option<String>,
    /// `true` for those that people mean most often, where a toolkit says which those are.
    important: Option<String>,
    /// With one of these tags.
    tags: Option<String>,
    /// That need one of these OAuth scopes.
    scopes: Option<String>,
    /// Those that these auth configs allow.
    auth_config_ids: Option<String>,
    /// A version for all toolkits, or one for each as `toolkit_versions[github]=...`.
    toolkit_versions: Option<String>,
    /// 20 where nothing is said, 1000 at most.
    limit: Option<String>,
    cursor: Option<String>,
    #[serde(default)]
    #[param(ignore)]
    pub include_deprecated: Unused,
}

/// List tools
#[document::path(get, path = "/v3.1/tools", operation_id = "composio_list_tools", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), params(ComposioToolsQuery),
    responses((status = 200, body = inline(Page<ToolDetails>)), (status = 404, description = "No such toolkit, or no such version")))]
pub(crate) async fn list(
    ByKey(scope, _): ByKey<ViewTools>,
    State(app): State<App>,
    Asked(query): Asked<ComposioToolsQuery>,
) -> ApiAnswer<Json<Page<ToolDetails>>> {
    let filter = ToolFilter {
        tools: commas(query.tool_slugs.as_deref()),
        toolkits: commas(query.toolkit_slug.as_deref()),
        search: query.query.or(query.search),
        important: query.important.as_deref() == Some("true"),
        tags: commas(query.tags.as_deref()),
        scopes: commas(query.scopes.as_deref()),
        auth_configs: commas(query.auth_config_ids.as_deref()),
        versions: Versions::read(query.toolkit_versions.as_deref())?,
    };
    Ok(Json(app.composio_api.tools(scope, &filter, query.limit.as_deref(), query.cursor.as_deref()).await?))
}

/// List the slugs of all tools
#[document::path(get, path = "/v3.1/tools/enum", operation_id = "composio_list_tool_slugs", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), responses((status = 200, body = Vec<String>)))]
pub(crate) async fn slugs(ByKey(scope, _): ByKey<ViewTools>, State(app): State<App>) -> ApiAnswer<Json<Vec<String>>> {
    Ok(Json(app.composio_api.tool_slugs(scope).await?))
}

/// The version that is meant.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioToolVersionQuery {
    /// `latest`, or the current one.
    version: Option<String>,
    /// A version for all toolkits, or one for each as `toolkit_versions[github]=...`.
    toolkit_versions: Option<String>,
}

/// Read a tool
#[document::path(get, path = "/v3.1/tools/{slug}", operation_id = "composio_fetch_tool", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), params(("slug" = String, Path), ComposioToolVersionQuery),
    responses((status = 200, body = ToolDetails), (status = 404, description = "No such tool, or no such version")))]
pub(crate) async fn fetch(
    ByKey(scope, _): ByKey<ViewTools>,
    State(app): State<App>,
    PathOf(slug): PathOf<String>,
    Asked(query): Asked<ComposioToolVersionQuery>,
) -> ApiAnswer<Json<ToolDetails>> {
    let versions = Versions::read(query.version.as_deref().or(query.toolkit_versions.as_deref()))?;
    Ok(Json(app.composio_api.tool_details(scope, &slug, &versions).await?))
}

/// Run a tool
///
/// Once the tool and the account are found, whatever goes wrong is a 200 whose `successful` is false, with the reason in `error`.
#[document::path(post, path = "/v3.1/tools/execute/{slug}", operation_id = "composio_execute_tool", tag = "Composio's API",
    security(("key" = ["run_tools"]), ("composio_key" = [])), params(("slug" = String, Path)), request_body = ExecuteTool,
    responses((status = 200, body = ExecutedTool), (status = 400, description = "No account that the call may use; code 1803"),
        (status = 404, description = "No such tool, or no such version"), (status = 422, description = "The account cannot be used"),
        (status = 501, description = "A part of Composio's API that is not served here")))]
pub(crate) async fn execute(
    ByKey(scope, _): ByKey<RunTools>,
    State(app): State<App>,
    PathOf(slug): PathOf<String>,
    Payload(body): Payload<ExecuteTool>,
) -> ApiAnswer<Json<ExecutedTool>> {
    Ok(Json(app.composio_api.execute(scope, &slug, body, app.options.run_limit()).await?))
}
