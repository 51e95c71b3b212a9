//! `/admin/keys`

use std::collections::HashMap;

use accounts::{Key, NewKey};
use axum::extract::State;
use document::{IntoParams, ToSchema};
use kernel::{KeyId, Permission, ProjectId, Role};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::App;
use crate::edge::{ApiResult, Json, Operator, PathOf, Payload, QueryOf};
use crate::keys::{bind, named_agents};

/// A key, without the key itself.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyBody {
    pub id: Uuid,
    pub project_id: Uuid,
    pub name: String,
    /// `viewer`, `annotator`, `editor` or `owner`.
    pub role: String,
    /// What the key may do.
    pub permissions: Vec<String>,
    /// The agents that the key acts for; without it the key is not bound to any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// The first characters of the key.
    pub hint: String,
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
    /// When it was last used, to the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
}

impl KeyBody {
    fn new(key: Key, agents: &HashMap<KeyId, Vec<String>>) -> Self {
        Self {
            agents: key.is_for_agents.then(|| agents.get(&key.id).cloned().unwrap_or_default()),
            id: key.id.uuid(),
            project_id: key.project.uuid(),
            permissions: key.permissions().iter().map(|permission| permission.name().to_owned()).collect(),
            name: key.name,
            role: key.role.name().to_owned(),
            hint: key.hint,
            created_at: key.created_at.to_string(),
            revoked_at: key.revoked_at.map(|time| time.to_string()),
            last_used_at: key.last_used_at.map(|time| time.to_string()),
        }
    }
}

/// One key in an answer. `secret` is there once, when the key is made.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyAnswer {
    pub count: usize,
    pub key: KeyBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// Keys in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeysAnswer {
    pub count: usize,
    pub keys: Vec<KeyBody>,
}

/// What a new key shall be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKeyBody {
    pub project_id: Uuid,
    pub name: Option<String>,
    #[schema(value_type = Option<crate::shapes::RoleWord>)]
    pub role: Option<Role>,
    /// When given, the key may do only these of its role's permissions. `read_secrets` is in no role, and is had only where it is named here.
    #[schema(value_type = Option<Vec<crate::shapes::PermissionName>>)]
    pub permissions: Option<Vec<Permission>>,
    /// When given, the key acts for these agents only, each by name, number or id: it opens `/agents` and `/mcp/agents/{agent_id}` of theirs, and nothing else.
    #[schema(min_items = 1)]
    pub agents: Option<Vec<String>>,
}

/// A request to make a key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    pub key: NewKeyBody,
}

/// Which keys to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListKeys {
    pub project_id: Option<Uuid>,
}

async fn answer(app: &App, key: Key) -> ApiResult<KeyAnswer> {
    let agents = app.agents.of_keys(Some(key.project)).await?;
    Ok(KeyAnswer { count: 1, key: KeyBody::new(key, &agents), secret: None })
}

/// Create a key
#[document::path(post, path = "/admin/keys", operation_id = "create_key", tag = "Admin", security(("operator" = [])),
    request_body = CreateKey, responses((status = 200, body = KeyAnswer), (status = 404, description = "No such project or agent")))]
pub(crate) async fn create(_: Operator, State(app): State<App>, Payload(body): Payload<CreateKey>) -> ApiResult<Json<KeyAnswer>> {
    let NewKeyBody { project_id, name, role, permissions, agents } = body.key;
    let project = ProjectId::from(project_id);
    let bound = named_agents(&app, project, agents.as_deref()).await?;
    let new = NewKey {
        name: name.unwrap_or_else(|| "key".to_owned()),
        role: role.unwrap_or(Role::Editor),
        only: permissions,
        is_for_agents: agents.is_some(),
    };
    let (key, plain) = app.accounts.create_key(project, new).await?;
    bind(&app, &key, &bound).await?;
    Ok(Json(KeyAnswer { secret: Some(plain.expose().to_owned()), ..answer(&app, key).await? }))
}

/// List keys
#[document::path(get, path = "/admin/keys", operation_id = "list_keys", tag = "Admin", security(("operator" = [])),
    params(ListKeys), responses((status = 200, body = KeysAnswer)))]
pub(crate) async fn list(_: Operator, State(app): State<App>, QueryOf(filter): QueryOf<ListKeys>) -> ApiResult<Json<KeysAnswer>> {
    let project = filter.project_id.map(ProjectId::from);
    let keys = app.accounts.list_keys(project).await?;
    let agents = app.agents.of_keys(project).await?;
    Ok(Json(KeysAnswer { count: keys.len(), keys: keys.into_iter().map(|key| KeyBody::new(key, &agents)).collect() }))
}

/// Revoke a key
#[document::path(post, path = "/admin/keys/{key_id}/revoke", operation_id = "revoke_key", tag = "Admin", security(("operator" = [])),
    params(("key_id" = Uuid, Path)), responses((status = 200, body = KeyAnswer), (status = 404, description = "No such key")))]
pub(crate) async fn revoke(_: Operator, State(app): State<App>, PathOf(id): PathOf<KeyId>) -> ApiResult<Json<KeyAnswer>> {
    let key = app.accounts.revoke_key(id).await?;
    Ok(Json(answer(&app, key).await?))
}
