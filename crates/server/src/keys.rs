//! `/keys`: the keys of a project, made and revoked by those who decide who belongs to it.

use std::collections::HashMap;

use ::agents::AgentError;
use accounts::{Key, NewKey};
use axum::Extension;
use axum::extract::State;
use document::ToSchema;
use http::StatusCode;
use kernel::{AgentId, KeyId, Permission, ProjectId, Role};
use serde::{Deserialize, Serialize};
use store::PageSize;
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{ByClient, EditMembers, ViewMembers};
use crate::edge::{ApiError, ApiResult, Code, Json, PathOf, Payload, QueryOf, Scoped};
use crate::people::members::ListPage;

const NOT_FOR_CLIENTS: &str = "A client that somebody let in makes no keys: they would outlive what it was allowed. Sign in, or use a key.";

/// A key of the project. `secret` is the key itself, and is there once, when it is made.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectKeyBody {
    pub id: Uuid,
    pub name: String,
    /// The first characters of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the key may do.
    pub permissions: Vec<String>,
    /// The agents that the key acts for; without it the key is not bound to any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    pub created_at: String,
    /// When it was last used, to the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl ProjectKeyBody {
    fn new(key: Key, agents: &HashMap<KeyId, Vec<String>>) -> Self {
        Self {
            id: key.id.uuid(),
            permissions: key.permissions().iter().map(|permission| permission.name().to_owned()).collect(),
            agents: key.is_for_agents.then(|| agents.get(&key.id).cloned().unwrap_or_default()),
            hint: Some(key.hint).filter(|hint| !hint.is_empty()),
            name: key.name,
            created_at: key.created_at.to_string(),
            last_used_at: key.last_used_at.map(|time| time.to_string()),
            revoked_at: key.revoked_at.map(|time| time.to_string()),
            secret: None,
        }
    }
}

/// One key in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectKeyAnswer {
    pub count: usize,
    pub key: ProjectKeyBody,
}

/// A page of keys, the newest first; those that were revoked are among them.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectKeysAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub keys: Vec<ProjectKeyBody>,
}

/// A request to make a key of the project.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateProjectKey {
    pub key: NewProjectKey,
}

/// What a new key shall be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProjectKey {
    #[schema(value_type = crate::shapes::LineText)]
    pub name: String,
    /// What the key may do; with a `role`, only what that role has of it. `read_secrets` is in no role.
    #[schema(value_type = Option<Vec<crate::shapes::PermissionName>>)]
    pub permissions: Option<Vec<Permission>>,
    /// `editor` where neither this nor `permissions` is given.
    #[schema(value_type = Option<crate::shapes::RoleWord>)]
    pub role: Option<Role>,
    /// When given, the key acts for these agents only, each by name, number or id: it opens `/agents` and `/mcp/agents/{agent_id}` of theirs, and nothing else.
    #[schema(min_items = 1)]
    pub agents: Option<Vec<String>>,
}

impl NewProjectKey {
    fn wanted(self) -> NewKey {
        // Permissions that are named without a role are meant as they are, and the highest role leaves them so.
        let assumed = if self.permissions.is_some() { Role::Owner } else { Role::Editor };
        let role = self.role.unwrap_or(assumed);
        NewKey { name: self.name, role, only: self.permissions, is_for_agents: self.agents.is_some() }
    }
}

/// The agents that a new key shall act for, if it is for agents.
pub(crate) async fn named_agents(app: &App, project: ProjectId, names: Option<&[String]>) -> Result<Vec<AgentId>, AgentError> {
    match names {
        Some(names) => app.agents.named(project, names).await,
        None => Ok(Vec::new()),
    }
}

/// Binds a key that was just made. One that cannot be bound goes again, because nobody could use it.
pub(crate) async fn bind(app: &App, key: &Key, agents: &[AgentId]) -> ApiResult<()> {
    match app.agents.bind_key(key.project, key.id, agents).await {
        Ok(()) => Ok(()),
        Err(error) => {
            app.accounts.discard_key(key.project, key.id).await?;
            Err(error.into())
        }
    }
}

/// List the project's keys
#[document::path(get, path = "/keys", operation_id = "list_project_keys", tag = "Keys", security(("key" = ["view_members"])), params(ListPage),
    responses((status = 200, body = ProjectKeysAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewMembers>,
    State(app): State<App>,
    QueryOf(page): QueryOf<ListPage>,
) -> ApiResult<Json<ProjectKeysAnswer>> {
    let page = app.accounts.project_keys(scope.project, page.cursor.map(KeyId::from), PageSize::asked(page.limit)).await?;
    let cursor = page.cursor(|key| key.id.uuid());
    let agents = app.agents.of_keys(Some(scope.project)).await?;
    let keys: Vec<ProjectKeyBody> = page.rows.into_iter().map(|key| ProjectKeyBody::new(key, &agents)).collect();
    Ok(Json(ProjectKeysAnswer { count: keys.len(), cursor, keys }))
}

/// Make a key of the project
///
/// The answer shows the key this once. Nobody gives a key permissions that they do not have at that moment, and a client that somebody let in makes
/// none, because a key would outlive what it was allowed.
#[document::path(post, path = "/keys", operation_id = "create_project_key", tag = "Keys", security(("key" = ["edit_members"])),
    request_body = CreateProjectKey, responses((status = 200, body = ProjectKeyAnswer), (status = 404, description = "No such agent")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditMembers>,
    State(app): State<App>,
    client: Option<Extension<ByClient>>,
    Payload(body): Payload<CreateProjectKey>,
) -> ApiResult<Json<ProjectKeyAnswer>> {
    if client.is_some() {
        return Err(ApiError::new(Code::MissingPermission, NOT_FOR_CLIENTS));
    }
    let agents = named_agents(&app, scope.project, body.key.agents.as_deref()).await?;
    let (key, plain) = app.accounts.give_key(&scope, body.key.wanted()).await?;
    bind(&app, &key, &agents).await?;
    let names = app.agents.of_keys(Some(scope.project)).await?;
    let key = ProjectKeyBody { secret: Some(plain.expose().to_owned()), ..ProjectKeyBody::new(key, &names) };
    Ok(Json(ProjectKeyAnswer { count: 1, key }))
}

/// Revoke a key of the project
///
/// It stops working at once and for good, and stays in the list. Whoever decides who belongs to the project may revoke any of its keys.
#[document::path(delete, path = "/keys/{key_id}", operation_id = "revoke_project_key", tag = "Keys", security(("key" = ["edit_members"])),
    params(("key_id" = Uuid, Path)), responses((status = 204, description = "Revoked")))]
pub(crate) async fn revoke(
    Scoped(scope, _): Scoped<EditMembers>,
    State(app): State<App>,
    PathOf(id): PathOf<KeyId>,
) -> ApiResult<StatusCode> {
    app.accounts.revoke_project_key(scope.project, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
