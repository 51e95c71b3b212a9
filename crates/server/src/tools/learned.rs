//! `/tools/discover/learned`: use cases that led to a call that succeeded.

use axum::extract::State;
use axum::http::StatusCode;
use discovery::{LearnedPage, LearnedUseCase};
use document::{IntoParams, ToSchema};
use kernel::UseCaseId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiResult, Json, PathOf, Payload, QueryOf, Scoped};

/// A use case and the action it led to.
#[derive(Debug, Serialize, ToSchema)]
pub struct LearnedBody {
    pub id: Uuid,
    pub use_case: String,
    pub provider: String,
    pub integration: String,
    pub action: String,
    /// How often it led there.
    pub uses: i64,
    pub created_at: String,
    pub used_at: String,
}

impl From<LearnedUseCase> for LearnedBody {
    fn from(learned: LearnedUseCase) -> Self {
        Self {
            id: learned.id.uuid(),
            use_case: learned.use_case,
            provider: learned.provider,
            integration: learned.integration,
            action: learned.action,
            uses: learned.uses,
            created_at: learned.created_at.to_string(),
            used_at: learned.used_at.to_string(),
        }
    }
}

/// What the project learned, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct LearnedAnswer {
    pub count: usize,
    /// Whether the project learns, and looks at what it learned.
    pub learns: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub use_cases: Vec<LearnedBody>,
}

impl From<LearnedPage> for LearnedAnswer {
    fn from(page: LearnedPage) -> Self {
        let use_cases: Vec<LearnedBody> = page.use_cases.into_iter().map(Into::into).collect();
        Self { count: use_cases.len(), learns: page.learns, cursor: page.cursor.map(UseCaseId::uuid), use_cases }
    }
}

/// Which use cases to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListLearned {
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    pub cursor: Option<Uuid>,
}

/// Whether to learn.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Learning {
    pub learns: bool,
}

/// How many use cases were forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub struct Forgotten {
    pub count: u64,
}

/// List what the project learned from successful calls, newest first
#[document::path(get, path = "/tools/discover/learned", operation_id = "list_learned_use_cases", tag = "Tools",
    security(("key" = ["view_tools"])), params(ListLearned), responses((status = 200, body = LearnedAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListLearned>,
) -> ApiResult<Json<LearnedAnswer>> {
    Ok(Json(app.discovery.learned(scope, list.limit, list.cursor.map(UseCaseId::from)).await?.into()))
}

/// Switch learning on or off
#[document::path(put, path = "/tools/discover/learned", operation_id = "set_learning", tag = "Tools", security(("key" = ["edit_tools"])),
    request_body = Learning, responses((status = 200, body = Learning)))]
pub(crate) async fn set(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    Payload(learning): Payload<Learning>,
) -> ApiResult<Json<Learning>> {
    app.discovery.set_learns(scope, learning.learns).await?;
    Ok(Json(learning))
}

/// Forget everything that the project learned
#[document::path(delete, path = "/tools/discover/learned", operation_id = "forget_learned_use_cases", tag = "Tools",
    security(("key" = ["edit_tools"])), responses((status = 200, body = Forgotten)))]
pub(crate) async fn clear(Scoped(scope, _): Scoped<EditTools>, State(app): State<App>) -> ApiResult<Json<Forgotten>> {
    Ok(Json(Forgotten { count: app.discovery.forget_learned(scope, None).await? }))
}

/// Forget one use case
#[document::path(delete, path = "/tools/discover/learned/{id}", operation_id = "forget_learned_use_case", tag = "Tools",
    security(("key" = ["edit_tools"])), params(("id" = Uuid, Path)), responses((status = 204), (status = 404)))]
pub(crate) async fn forget(Scoped(scope, _): Scoped<EditTools>, State(app): State<App>, PathOf(id): PathOf<Uuid>) -> ApiResult<StatusCode> {
    app.discovery.forget_learned(scope, Some(id.into())).await?;
    Ok(StatusCode::NO_CONTENT)
}
