//! `/v3.1/tools`

use axum::extract::State;

use super::{ApiAnswer, ByKey};
use crate::App;
use crate::edge::Json;
use crate::edge::auth::ViewTools;

/// List the slugs of all tools
#[utoipa::path(get, path = "/v3.1/tools/enum", operation_id = "composio_list_tool_slugs", tag = "Composio's API",
    security(("key" = ["view_tools"]), ("composio_key" = [])), responses((status = 200, body = Vec<String>)))]
pub(crate) async fn slugs(ByKey(scope, _): ByKey<ViewTools>, State(app): State<App>) -> ApiAnswer<Json<Vec<String>>> {
    Ok(Json(app.composio_api.tool_slugs(scope).await?))
}
