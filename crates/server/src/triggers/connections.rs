//! `/triggers/connections`

use crate::connections::connection_routes;
use crate::edge::auth::{EditTriggers, ViewTriggers};

connection_routes!(
    "Triggers",
    "/triggers/connections",
    "/triggers/connections/query",
    "/triggers/connections/{connection_id}",
    "/triggers/connections/{connection_id}/refresh",
    "/triggers/connections/{connection_id}/revoke",
    "/triggers/connections/{connection_id}/usage",
    "/triggers/connections/{connection_id}/consumers",
    "view_triggers",
    "edit_triggers",
    ViewTriggers,
    EditTriggers,
    [
        "query_trigger_connections",
        "create_trigger_connection",
        "fetch_trigger_connection",
        "delete_trigger_connection",
        "refresh_trigger_connection",
        "revoke_trigger_connection",
        "fetch_trigger_connection_usage",
        "edit_trigger_connection",
        "list_trigger_connection_consumers"
    ]
);
