//! `GET /secrets/{secret_id}/reads`: who was shown a value.

use axum::extract::State;
use document::{IntoParams, ToSchema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::App;
use crate::edge::auth::ViewSecrets;
use crate::edge::{ApiResult, Json, PathOf, QueryOf, Scoped};

/// That a key was shown a value.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadBody {
    pub id: Uuid,
    pub key_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
    /// `value`, or `code_tool` where a runner was given it for a tool.
    pub purpose: String,
    pub read_at: String,
}

/// A page of reads, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadsAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub reads: Vec<ReadBody>,
}

/// Which page.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListReads {
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    /// The `cursor` of the page before.
    pub cursor: Option<Uuid>,
}

/// List who was shown the value of a secret
#[document::path(get, path = "/secrets/{secret_id}/reads", operation_id = "list_secret_reads", tag = "Secrets", security(("key" = ["view_secrets"])),
    params(("secret_id" = String, Path, description = "Its id or slug"), ListReads),
    responses((status = 200, body = ReadsAnswer), (status = 404, description = "No such secret")))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewSecrets>,
    State(app): State<App>,
    PathOf(named): PathOf<String>,
    QueryOf(asked): QueryOf<ListReads>,
) -> ApiResult<Json<ReadsAnswer>> {
    let secret = app.secrets.find(scope.project, &named).await?;
    let page = app.secrets.reads(scope.project, secret.id, asked.limit, asked.cursor).await?;
    let cursor = page.cursor(|last| last.id.to_string());
    let holders = app.accounts.holders(scope.project).await?;
    let reads: Vec<ReadBody> = page
        .rows
        .into_iter()
        .map(|read| ReadBody {
            id: read.id.uuid(),
            key_id: read.key.uuid(),
            key_name: holders.get(&read.key).and_then(|holder| holder.key.clone()),
            user_id: read.user.map(kernel::Id::uuid),
            purpose: read.purpose,
            read_at: read.read_at.to_string(),
        })
        .collect();
    Ok(Json(ReadsAnswer { count: reads.len(), cursor, reads }))
}
