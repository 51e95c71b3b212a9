//! `/secrets`: made, replaced, listed and deleted by people, who never see a value again; shown to keys that may read.

use std::fmt;

use ::secrets::{Host, NewSecret, Purpose, Secret, SecretChange};
use axum::extract::State;
use document::ToSchema;
use http::StatusCode;
use kernel::{Permission, Slug};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditSecrets, ViewSecrets};
use crate::edge::{ApiError, ApiResult, Code, Json, NoFilters, PathOf, Payload, QueryOf, Scoped};

/// The one kind of secret that there is.
const KIND: &str = "custom_secret";
/// The one form of a value.
const FORMAT: &str = "text";

/// A secret. Its value is there only for a key that may read it.
#[derive(Debug, Serialize, ToSchema)]
pub struct SecretBody {
    pub id: Uuid,
    pub slug: String,
    /// Always `custom_secret`.
    pub kind: &'static str,
    pub data: SecretData,
    pub header: SecretHeader,
    /// The hosts that workflows may send it to in a header.
    pub hosts: Vec<String>,
    pub lifecycle: SecretLifecycle,
    /// Always true: nobody sees the value but keys with `read_secrets`.
    pub write_only: bool,
    pub value_status: ValueStatus,
}

/// What a secret holds.
#[derive(Debug, Serialize, ToSchema)]
pub struct SecretData {
    pub secret: SecretContent,
}

/// The value, where it may be seen.
#[derive(Serialize, ToSchema)]
pub struct SecretContent {
    /// Always `text`.
    pub format: &'static str,
    /// The value; an empty object where the key may not see it, because older clients read no secret without the member.
    #[schema(value_type = crate::shapes::ObjectOrText)]
    pub content: Value,
}

/// How people call it.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretHeader {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2000)]
    pub description: Option<String>,
}

/// When it was made and changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct SecretLifecycle {
    pub created_at: String,
    pub updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_by_id: Option<Uuid>,
}

/// Whether there is a value.
#[derive(Debug, Serialize, ToSchema)]
pub struct ValueStatus {
    pub configured: bool,
}

impl fmt::Debug for SecretContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretContent")
    }
}

impl SecretBody {
    fn new(secret: Secret, value: Option<&SecretString>) -> Self {
        Self {
            id: secret.id.uuid(),
            slug: secret.slug,
            kind: KIND,
            data: SecretData {
                secret: SecretContent { format: FORMAT, content: value.map_or_else(|| json!({}), |value| json!(value.expose_secret())) },
            },
            header: SecretHeader { name: secret.name, description: secret.description },
            hosts: secret.hosts.iter().map(ToString::to_string).collect(),
            lifecycle: SecretLifecycle {
                created_at: secret.created_at.to_string(),
                updated_at: secret.updated_at.to_string(),
                updated_by_id: secret.updated_by,
            },
            write_only: true,
            value_status: ValueStatus { configured: true },
        }
    }
}

/// A request to keep a secret.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSecret {
    /// Letters, digits, `-` and `_`; made from `header.name` if left out.
    pub slug: Option<String>,
    #[serde(default)]
    pub header: SecretHeader,
    pub secret: GivenSecret,
    /// The hosts that workflows may send it to in a header, such as `api.example.com`; none if left out.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub hosts: Vec<String>,
    /// True or left out: values are never shown to people.
    pub write_only: Option<bool>,
}

/// A request to change a secret; what is left out stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSecret {
    pub header: Option<SecretHeader>,
    pub secret: Option<GivenSecret>,
    #[schema(max_items = 50)]
    pub hosts: Option<Vec<String>>,
}

/// The secret as it is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenSecret {
    /// `custom_secret`.
    pub kind: String,
    pub data: GivenData,
}

/// What it holds.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenData {
    pub secret: GivenContent,
}

/// The value as it is given. It cannot be printed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenContent {
    /// `text`.
    pub format: String,
    /// At most 32 KiB.
    #[schema(value_type = String, min_length = 1, max_length = 32768)]
    pub content: SecretText,
}

/// A text that cannot be printed.
#[derive(Deserialize)]
#[serde(from = "String")]
pub struct SecretText(SecretString);

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}

impl GivenSecret {
    fn value(self) -> ApiResult<SecretString> {
        let GivenContent { format, content } = self.data.secret;
        match (self.kind.as_str(), format.as_str()) {
            (KIND, FORMAT) => Ok(content.0),
            (KIND, _) => Err(ApiError::new(Code::SecretInvalid, "Only values of the format `text` are kept here.")),
            _ => Err(ApiError::new(Code::SecretInvalid, "Only secrets of the kind `custom_secret` are kept here.")),
        }
    }
}

fn hosts(given: &[String]) -> ApiResult<Vec<Host>> {
    given
        .iter()
        .map(|host| host.parse())
        .collect::<Result<_, _>>()
        .map_err(|error| ApiError::new(Code::SecretInvalid, format!("`hosts`: {error}")))
}

/// The slug that was given, or one made from the name for people.
fn slug(given: Option<&str>, name: Option<&str>) -> ApiResult<Slug> {
    let made = || {
        name.unwrap_or_default().split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
    };
    let text = given.map_or_else(made, str::to_owned);
    text.parse().map_err(|error| ApiError::new(Code::SlugInvalid, format!("'slug' {error}")))
}

/// List the project's secrets, without their values
#[document::path(get, path = "/secrets", operation_id = "list_secrets", tag = "Secrets", security(("key" = ["view_secrets"])),
    responses((status = 200, body = Vec<SecretBody>, description = "All of them: a project may have 500")))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewSecrets>,
    State(app): State<App>,
    _: QueryOf<NoFilters>,
) -> ApiResult<Json<Vec<SecretBody>>> {
    let secrets = app.secrets.list(scope.project).await?;
    Ok(Json(secrets.into_iter().map(|secret| SecretBody::new(secret, None)).collect()))
}

/// Keep a secret
#[document::path(post, path = "/secrets", operation_id = "create_secret", tag = "Secrets", security(("key" = ["edit_secrets"])), request_body = CreateSecret,
    responses((status = 200, body = SecretBody), (status = 409, description = "The slug is taken, or the project has as many as it may"),
        (status = 422, description = "A slug, host or value that cannot be used")))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditSecrets>,
    State(app): State<App>,
    Payload(body): Payload<CreateSecret>,
) -> ApiResult<Json<SecretBody>> {
    if body.write_only == Some(false) {
        return Err(ApiError::new(Code::SecretInvalid, "Secrets are write-only here: keys with `read_secrets` see values, people do not."));
    }
    let SecretHeader { name, description } = body.header;
    let new = NewSecret {
        slug: slug(body.slug.as_deref(), name.as_deref())?,
        name,
        description,
        hosts: hosts(&body.hosts)?,
        value: body.secret.value()?,
    };
    Ok(Json(SecretBody::new(app.secrets.create(scope, new).await?, None)))
}

/// Fetch a secret; its value is there for a key with `read_secrets`, and the read is recorded
#[document::path(get, path = "/secrets/{secret_id}", operation_id = "read_secret", tag = "Secrets", security(("key" = ["view_secrets"])),
    params(("secret_id" = String, Path, description = "Its id or slug")), responses((status = 200, body = SecretBody), (status = 404, description = "No such secret")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewSecrets>,
    State(app): State<App>,
    PathOf(named): PathOf<String>,
    _: QueryOf<NoFilters>,
) -> ApiResult<Json<SecretBody>> {
    if !scope.may(Permission::ReadSecrets) {
        return Ok(Json(SecretBody::new(app.secrets.find(scope.project, &named).await?, None)));
    }
    let (secret, value) = app.secrets.show(scope, &named, Purpose::Value).await?;
    Ok(Json(SecretBody::new(secret, Some(&value))))
}

/// Change a secret
#[document::path(put, path = "/secrets/{secret_id}", operation_id = "update_secret", tag = "Secrets", security(("key" = ["edit_secrets"])),
    params(("secret_id" = String, Path, description = "Its id or slug")), request_body = ChangeSecret,
    responses((status = 200, body = SecretBody), (status = 404, description = "No such secret"), (status = 422, description = "A host or value that cannot be used")))]
pub(crate) async fn change(
    Scoped(scope, _): Scoped<EditSecrets>,
    State(app): State<App>,
    PathOf(named): PathOf<String>,
    Payload(body): Payload<ChangeSecret>,
) -> ApiResult<Json<SecretBody>> {
    let SecretHeader { name, description } = body.header.unwrap_or_default();
    let change = SecretChange {
        name,
        description,
        hosts: body.hosts.as_deref().map(hosts).transpose()?,
        value: body.secret.map(GivenSecret::value).transpose()?,
    };
    Ok(Json(SecretBody::new(app.secrets.change(scope, &named, change).await?, None)))
}

/// Delete a secret
#[document::path(delete, path = "/secrets/{secret_id}", operation_id = "delete_secret", tag = "Secrets", security(("key" = ["edit_secrets"])),
    params(("secret_id" = String, Path, description = "Its id or slug")), responses((status = 204), (status = 404, description = "No such secret")))]
pub(crate) async fn delete(
    Scoped(scope, _): Scoped<EditSecrets>,
    State(app): State<App>,
    PathOf(named): PathOf<String>,
) -> ApiResult<StatusCode> {
    app.secrets.delete(scope, &named).await?;
    Ok(StatusCode::NO_CONTENT)
}
