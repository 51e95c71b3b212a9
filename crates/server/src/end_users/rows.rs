//! `/end-users`: listed, exported, forgotten.

use ::end_users::{EndUser, EndUserFilter};
use axum::extract::State;
use document::{IntoParams, ToSchema};
use kernel::EndUserId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiResult, Json, PathOf, QueryOf, Scoped, end_user};

/// Somebody whom the project's agents serve.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndUserBody {
    pub id: Uuid,
    /// What the project calls them.
    pub end_user: String,
    pub created_at: String,
}

impl From<EndUser> for EndUserBody {
    fn from(end_user: EndUser) -> Self {
        Self { id: end_user.id.uuid(), end_user: end_user.name, created_at: end_user.created_at.to_string() }
    }
}

/// A page of end users, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndUsersAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub end_users: Vec<EndUserBody>,
}

/// Which end users to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListEndUsers {
    /// A part of the name.
    pub name: Option<String>,
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    /// The `cursor` of the page before.
    pub cursor: Option<Uuid>,
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForgottenAnswer {
    /// How many rows of each kind: `connections`, `sessions`, `subscriptions`, `schedules`, `approvals`, `runs`, `results`, and `calls`, of
    /// which the record keeps that they were made and no more.
    pub forgotten: BTreeMap<String, u64>,
}

/// What is kept about an end user, without secrets.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportAnswer {
    pub end_user: EndUserBody,
    /// By kind; lists are cut at 10,000 rows each.
    #[schema(value_type = Object)]
    pub data: BTreeMap<String, Value>,
}

/// List end users, newest first
#[document::path(get, path = "/end-users", operation_id = "list_end_users", tag = "End users", security(("key" = ["view_tools"])), params(ListEndUsers),
    responses((status = 200, body = EndUsersAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListEndUsers>,
) -> ApiResult<Json<EndUsersAnswer>> {
    let filter = EndUserFilter { name: list.name, limit: list.limit, cursor: list.cursor.map(EndUserId::from) };
    let page = app.end_users.list(scope.project, &filter).await?;
    let cursor = page.cursor.map(EndUserId::uuid);
    Ok(Json(EndUsersAnswer { count: page.end_users.len(), cursor, end_users: page.end_users.into_iter().map(Into::into).collect() }))
}

/// Read what is kept about an end user
#[document::path(get, path = "/end-users/{end_user}", operation_id = "export_end_user", tag = "End users", security(("key" = ["edit_tools"])),
    params(("end_user" = inline(crate::shapes::EndUserText), Path, description = "What the project calls them")),
    responses((status = 200, body = ExportAnswer), (status = 404, description = "No such end user")))]
pub(crate) async fn export(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf(name): PathOf<String>,
) -> ApiResult<Json<ExportAnswer>> {
    let (end_user, data) = app.end_users.export(scope, &end_user::read(&name)?).await?;
    let data = data.into_iter().map(|(kind, rows)| (kind.to_owned(), rows)).collect();
    Ok(Json(ExportAnswer { end_user: end_user.into(), data }))
}

/// Forget an end user
///
/// Removes their accounts, which are revoked at their providers where these listen, their sessions, triggers, approvals and runs, and what is kept
/// of their calls. The record keeps that calls were made, for somebody whom nobody can name any more. What was removed is counted.
#[document::path(delete, path = "/end-users/{end_user}", operation_id = "forget_end_user", tag = "End users", security(("key" = ["edit_tools"])),
    params(("end_user" = inline(crate::shapes::EndUserText), Path, description = "What the project calls them")),
    responses((status = 200, body = ForgottenAnswer), (status = 404, description = "No such end user")))]
pub(crate) async fn forget(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf(name): PathOf<String>,
) -> ApiResult<Json<ForgottenAnswer>> {
    let forgotten = app.end_users.forget(scope, &end_user::read(&name)?).await?;
    Ok(Json(ForgottenAnswer { forgotten: forgotten.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect() }))
}
