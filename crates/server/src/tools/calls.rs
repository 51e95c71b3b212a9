//! `GET /tools/calls`: the audit trail.

use axum::Json;
use axum::extract::State;
use kernel::ConnectionId;
use serde::{Deserialize, Serialize};
use tools::{CallFilter, CallRecord};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::App;
use crate::edge::auth::ViewTools;
use crate::edge::{ApiResult, QueryOf, Scoped};

/// A call for the record; no arguments, no results.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecordBody {
    pub id: Uuid,
    pub call_ref: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<Uuid>,
    pub key_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
    /// `ok`, `error` (the tool said no) or `failed` (it did not run to its end).
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub duration_ms: f64,
    pub created_at: String,
}

impl From<CallRecord> for RecordBody {
    fn from(record: CallRecord) -> Self {
        Self {
            id: record.id.uuid(),
            call_ref: record.call_ref,
            connection_id: record.connection.map(ConnectionId::uuid),
            key_id: record.key.uuid(),
            user_id: record.user.map(kernel::UserId::uuid),
            outcome: record.outcome.name(),
            message: record.message,
            duration_ms: record.duration.as_secs_f64() * 1000.0,
            created_at: record.created_at.to_string(),
        }
    }
}

/// A page of calls, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecordsAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub calls: Vec<RecordBody>,
}

/// Which calls to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListCalls {
    pub connection_id: Option<Uuid>,
    /// `ok`, `error` or `failed`.
    pub outcome: Option<String>,
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    pub cursor: Option<String>,
}

/// List calls, newest first
#[utoipa::path(get, path = "/tools/calls", operation_id = "list_tool_calls", tag = "Tools", security(("key" = ["view_tools"])), params(ListCalls),
    responses((status = 200, body = RecordsAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListCalls>,
) -> ApiResult<Json<RecordsAnswer>> {
    let filter = CallFilter {
        connection: list.connection_id.map(ConnectionId::from),
        outcome: list.outcome,
        limit: list.limit,
        cursor: list.cursor,
    };
    let page = app.tools.calls(scope.project, &filter).await?;
    Ok(Json(RecordsAnswer { count: page.calls.len(), cursor: page.cursor, calls: page.calls.into_iter().map(Into::into).collect() }))
}
