//! `/v3.1/toolkits`

use axum::extract::State;
use composio_api::page::{Page, commas};
use composio_api::toolkits::{CategoryById, ToolkitDetails, ToolkitFilter, ToolkitItem};
use document::{IntoParams, ToSchema};
use serde::Deserialize;
use serde_json::Value;

use super::{ApiAnswer, Asked, ByKey};
use crate::App;
use crate::edge::auth::ViewTools;
use crate::edge::{Json, PathOf, Payload, Unused};

/// Which toolkits to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioToolkitsQuery {
    category: Option<String>,
    /// `composio`, `project` or `all`.
    managed_by: Option<String>,
    /// `native`, `custom` or `all`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// `usage` or `alphabetically`.
    sort_by: Option<String>,
    /// Words of the slug, the name or the description.
    search: Option<String>,
    /// Slugs with commas.
    toolkits: Option<String>,
    /// 20 where nothing is said, 1000 at most.
    limit: Option<String>,
    cursor: Option<String>,
    #[serde(default)]
    #[param(ignore)]
    pub include_deprecated: Unused,
    #[serde(default)]
    #[param(ignore)]
    pub user_id: Unused,
}

impl ComposioToolkitsQuery {
    fn filter(&self) -> ToolkitFilter {
        ToolkitFilter {
            category: self.category.clone(),
            managed_by: self.managed_by.clone(),
            kind: self.kind.clone(),
            sort_by: self.sort_by.clone(),
            search: self.search.clone(),
            slugs: self.toolkits.as_deref().map(|slugs| commas(Some(slugs))),
        }
    }
}

/// List toolkits
#[document::path(get, path = "/v3.1/toolkits", operation_id = "composio_list_toolkits", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), params(ComposioToolkitsQuery), responses((status = 200, body = inline(Page<ToolkitItem>))))]
pub(crate) async fn list(
    ByKey(scope, _): ByKey<ViewTools>,
    State(app): State<App>,
    Asked(query): Asked<ComposioToolkitsQuery>,
) -> ApiAnswer<Json<Page<ToolkitItem>>> {
    Ok(Json(app.composio_api.toolkits(scope, &query.filter(), query.limit.as_deref(), query.cursor.as_deref()).await?))
}

/// Which toolkits to list, as a body.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ComposioToolkitsBody {
    /// Slugs.
    toolkits: Option<Vec<String>>,
    category: Option<String>,
    managed_by: Option<String>,
    sort_by: Option<String>,
    search: Option<String>,
    /// A number.
    #[schema(value_type = Option<f64>)]
    limit: Option<Value>,
    cursor: Option<String>,
}

/// List several toolkits
#[document::path(post, path = "/v3.1/toolkits/multi", operation_id = "composio_list_several_toolkits", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), request_body = ComposioToolkitsBody,
    responses((status = 200, body = inline(Page<ToolkitItem>))))]
pub(crate) async fn several(
    ByKey(scope, _): ByKey<ViewTools>,
    State(app): State<App>,
    Payload(body): Payload<ComposioToolkitsBody>,
) -> ApiAnswer<Json<Page<ToolkitItem>>> {
    let ComposioToolkitsBody { toolkits, category, managed_by, sort_by, search, limit, cursor } = body;
    let filter = ToolkitFilter { category, managed_by, kind: None, sort_by, search, slugs: toolkits };
    let limit = limit.filter(|limit| !limit.is_null()).map(|limit| limit.as_str().map_or_else(|| limit.to_string(), str::to_owned));
    Ok(Json(app.composio_api.toolkits(scope, &filter, limit.as_deref(), cursor.as_deref()).await?))
}

/// List the categories of toolkits
#[document::path(get, path = "/v3.1/toolkits/categories", operation_id = "composio_list_toolkit_categories", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), responses((status = 200, body = inline(Page<CategoryById>))))]
pub(crate) async fn categories(ByKey(scope, _): ByKey<ViewTools>, State(app): State<App>) -> ApiAnswer<Json<Page<CategoryById>>> {
    Ok(Json(app.composio_api.toolkit_categories(scope).await?))
}

/// The version that is meant.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComposioVersionQuery {
    /// `latest`, or the current one.
    version: Option<String>,
}

/// Read a toolkit
#[document::path(get, path = "/v3.1/toolkits/{slug}", operation_id = "composio_fetch_toolkit", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), params(("slug" = String, Path), ComposioVersionQuery),
    responses((status = 200, body = ToolkitDetails), (status = 404, description = "No such toolkit, or no such version")))]
pub(crate) async fn fetch(
    ByKey(scope, _): ByKey<ViewTools>,
    State(app): State<App>,
    PathOf(slug): PathOf<String>,
    Asked(query): Asked<ComposioVersionQuery>,
) -> ApiAnswer<Json<ToolkitDetails>> {
    Ok(Json(app.composio_api.toolkit_details(scope, &slug, query.version.as_deref()).await?))
}
