//! `/admin/keys`

use accounts::{Key, NewKey};
use axum::Json;
use axum::extract::State;
use kernel::{KeyId, Permission, ProjectId, Role};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::App;
use crate::edge::{ApiResult, Operator, PathOf, Payload, QueryOf};

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
    /// The first characters of the key.
    pub hint: String,
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
    /// When it was last used, to the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
}

impl From<Key> for KeyBody {
    fn from(key: Key) -> Self {
        Self {
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
    #[schema(value_type = Option<String>, example = "editor")]
    pub role: Option<Role>,
    /// When given, the key may do only these of its role's permissions.
    #[schema(value_type = Option<Vec<String>>)]
    pub permissions: Option<Vec<Permission>>,
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

/// Create a key
#[utoipa::path(post, path = "/admin/keys", operation_id = "create_key", tag = "Admin", security(("operator" = [])),
    request_body = CreateKey, responses((status = 200, body = KeyAnswer), (status = 404, description = "No such project")))]
pub(crate) async fn create(_: Operator, State(app): State<App>, Payload(body): Payload<CreateKey>) -> ApiResult<Json<KeyAnswer>> {
    let NewKeyBody { project_id, name, role, permissions } = body.key;
    let new = NewKey { name: name.unwrap_or_else(|| "key".to_owned()), role: role.unwrap_or(Role::Editor), only: permissions };
    let (key, plain) = app.accounts.create_key(ProjectId::from(project_id), new).await?;
    Ok(Json(KeyAnswer { count: 1, key: key.into(), secret: Some(plain.expose().to_owned()) }))
}

/// List keys
#[utoipa::path(get, path = "/admin/keys", operation_id = "list_keys", tag = "Admin", security(("operator" = [])),
    params(ListKeys), responses((status = 200, body = KeysAnswer)))]
pub(crate) async fn list(_: Operator, State(app): State<App>, QueryOf(filter): QueryOf<ListKeys>) -> ApiResult<Json<KeysAnswer>> {
    let keys = app.accounts.list_keys(filter.project_id.map(ProjectId::from)).await?;
    Ok(Json(KeysAnswer { count: keys.len(), keys: keys.into_iter().map(Into::into).collect() }))
}

/// Revoke a key
#[utoipa::path(post, path = "/admin/keys/{key_id}/revoke", operation_id = "revoke_key", tag = "Admin", security(("operator" = [])),
    params(("key_id" = Uuid, Path)), responses((status = 200, body = KeyAnswer), (status = 404, description = "No such key")))]
pub(crate) async fn revoke(_: Operator, State(app): State<App>, PathOf(id): PathOf<KeyId>) -> ApiResult<Json<KeyAnswer>> {
    let key = app.accounts.revoke_key(id).await?;
    Ok(Json(KeyAnswer { count: 1, key: key.into(), secret: None }))
}
