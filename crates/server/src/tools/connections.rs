//! `/tools/connections`

use crate::connections::connection_routes;
use crate::edge::auth::{EditTools, ViewTools};

connection_routes!(
    "Tools",
    "/tools/connections",
    "/tools/connections/query",
    "/tools/connections/{connection_id}",
    "/tools/connections/{connection_id}/refresh",
    "/tools/connections/{connection_id}/revoke",
    "/tools/connections/{connection_id}/usage",
    "/tools/connections/{connection_id}/consumers",
    "view_tools",
    "edit_tools",
    ViewTools,
    EditTools,
    [
        "query_tool_connections",
        "create_tool_connection",
        "fetch_tool_connection",
        "delete_tool_connection",
        "refresh_tool_connection",
        "revoke_tool_connection",
        "fetch_tool_connection_usage",
        "edit_tool_connection",
        "list_tool_connection_consumers"
    ]
);
