//! The rows of auth configs. Every query names the project.

use std::collections::BTreeMap;

use catalog::Integration;
use catalog::auth::AuthScheme;
use connections::Connection;
use kernel::seal::{SealError, SealedColumn, Sealer};
use kernel::{AppId, AuthConfigId, ProjectId, Scope, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::{Db, Remembered, Row, StoreError, args, row};
use uuid::{Builder, Uuid, Variant, Version};

use crate::names::Names;
use crate::{ApiError, ComposioApi};

/// How many are remembered.
const MAX_REMEMBERED: usize = 4096;

/// Configs that calls went through of late.
pub(crate) type ConfigCache = Remembered<(ProjectId, AuthConfigId), AuthConfig>;

/// How accounts of an integration are connected.
#[derive(Clone, Debug)]
pub(crate) struct AuthConfig {
    pub(crate) id: AuthConfigId,
    pub(crate) provider: String,
    pub(crate) integration: String,
    /// The name of the scheme in the catalog.
    pub(crate) scheme: String,
    pub(crate) name: String,
    /// Whether it uses what the project or the deployment has, in place of an app of its own.
    pub(crate) is_managed: bool,
    pub(crate) is_enabled: bool,
    pub(crate) app: Option<AppId>,
    /// OAuth scopes to ask for in place of the usual ones.
    pub(crate) scopes: Option<Vec<String>>,
    /// Fields that all of its accounts share, sealed.
    pub(crate) fields: Option<Vec<u8>>,
    pub(crate) access: ToolAccess,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) created_by: Option<Uuid>,
    /// It has no row: it stands for accounts that were made without one.
    pub(crate) is_implied: bool,
}

/// Which tools a config is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolAccess {
    /// Those whose scopes are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) creation: Option<Vec<String>>,
    /// Those that its accounts may run; all where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) execution: Option<Vec<String>>,
    /// Whether sessions use it; they do where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_router: Option<bool>,
}

impl ToolAccess {
    /// The scopes that the tools need which accounts are connected for.
    pub(crate) fn scopes(&self, names: &Names, scheme: &AuthScheme) -> Option<Vec<String>> {
        let tools = self.creation.as_ref().filter(|tools| !tools.is_empty() && scheme.name() == "oauth2")?;
        let mut scopes: Vec<String> =
            tools.iter().filter_map(|tool| names.find_tool(tool)).flat_map(|tool| tool.action().scopes.clone()).collect();
        scopes.sort_unstable();
        scopes.dedup();
        Some(scopes).filter(|scopes| !scopes.is_empty())
    }
}

impl AuthConfig {
    /// The config of accounts that are connected without one.
    pub(crate) fn implied(project: ProjectId, integration: &Integration, scheme: &AuthScheme) -> Self {
        Self::without_row(project, integration.provider, &integration.key, scheme.name())
    }

    /// The one of an account that was.
    pub(crate) fn implied_by(connection: &Connection) -> Self {
        let scheme = connection.auth_scheme.as_deref().unwrap_or("none");
        Self::without_row(connection.project, &connection.provider, &connection.integration, scheme)
    }

    fn without_row(project: ProjectId, provider: &str, integration: &str, scheme: &str) -> Self {
        let digest = Sha256::digest(format!("auth-config/{project}/{provider}/{integration}/{scheme}"));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        let id = Builder::from_bytes(bytes).with_variant(Variant::RFC4122).with_version(Version::Custom).into_uuid();
        Self {
            id: id.into(),
            provider: provider.to_owned(),
            integration: integration.to_owned(),
            scheme: scheme.to_owned(),
            name: format!("{integration} {scheme}"),
            is_managed: true,
            is_enabled: true,
            app: None,
            scopes: None,
            fields: None,
            access: ToolAccess::default(),
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
            created_by: None,
            is_implied: true,
        }
    }
}

macro_rules! columns {
    () => {
        "id, provider_key, integration_key, scheme, name, is_managed, is_enabled, app_id, scopes, fields, tool_access, created_at, updated_at, \
         created_by_id"
    };
}

fn read(row: &Row) -> Result<AuthConfig, StoreError> {
    let access = row.get::<Option<Value>>("tool_access")?;
    Ok(AuthConfig {
        id: row.get("id")?,
        provider: row.get("provider_key")?,
        integration: row.get("integration_key")?,
        scheme: row.get("scheme")?,
        name: row.get("name")?,
        is_managed: row.get("is_managed")?,
        is_enabled: row.get("is_enabled")?,
        app: row.get("app_id")?,
        scopes: row.get::<Option<Value>>("scopes")?.and_then(|scopes| serde_json::from_value(scopes).ok()),
        fields: row.get("fields")?,
        access: access.and_then(|access| serde_json::from_value(access).ok()).unwrap_or_default(),
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        created_by: row.get("created_by_id")?,
        is_implied: false,
    })
}

fn place(id: AuthConfigId) -> SealedColumn<'static> {
    SealedColumn { table: "auth_configs", column: "fields", row: id.uuid() }
}

/// Seals the shared fields of every auth config with the current key; a row that changes meanwhile is left to its writer.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, ApiError> {
    let mut resealed = 0;
    for row in db.all("select project_id, id, fields from auth_configs where fields is not null", args![]).await? {
        let (project, id, old): (ProjectId, AuthConfigId, Vec<u8>) = (row.get("project_id")?, row.get("id")?, row.get("fields")?);
        if !sealer.is_current(&old) {
            let new = sealer.seal(&sealer.open(&old, place(id))?, place(id));
            let sql = "update auth_configs set fields = $3 where project_id = $1 and id = $2 and fields = $4";
            resealed += db.execute(sql, args![project, id, new, old]).await?;
        }
    }
    Ok(resealed)
}

pub(crate) fn cache(db: &Db) -> ConfigCache {
    Remembered::new(db, &["auth_configs"], MAX_REMEMBERED)
}

impl ComposioApi {
    /// The auth configs of a project, newest first.
    pub(crate) async fn auth_config_rows(&self, scope: Scope) -> Result<Vec<AuthConfig>, StoreError> {
        let sql = concat!("select ", columns!(), " from auth_configs where project_id = $1 order by created_at desc, id desc");
        self.parts().db.all(sql, args![scope.project]).await?.iter().map(read).collect()
    }

    pub(crate) async fn find_auth_config(&self, project: ProjectId, id: AuthConfigId) -> Result<Option<AuthConfig>, StoreError> {
        self.0.configs.or_find((project, id), || self.read_auth_config(project, id)).await
    }

    async fn read_auth_config(&self, project: ProjectId, id: AuthConfigId) -> Result<Option<AuthConfig>, StoreError> {
        let sql = concat!("select ", columns!(), " from auth_configs where project_id = $1 and id = $2");
        self.parts().db.optional(sql, args![project, id]).await?.as_ref().map(read).transpose()
    }

    pub(super) async fn insert_auth_config(&self, scope: Scope, config: &AuthConfig) -> Result<(), ApiError> {
        let row = row! {
            project_id: scope.project,
            id: config.id,
            provider_key: config.provider.as_str(),
            integration_key: config.integration.as_str(),
            scheme: config.scheme.as_str(),
            name: config.name.as_str(),
            is_managed: config.is_managed,
            is_enabled: config.is_enabled,
            app_id: config.app,
            scopes: config.scopes.clone().map(Value::from).as_ref(),
            fields: config.fields.clone(),
            tool_access: &json!(config.access),
            created_at: config.created_at,
            updated_at: config.updated_at,
            created_by_id: config.created_by,
        };
        Ok(self.parts().db.insert("auth_configs", row).await?)
    }

    pub(super) async fn update_auth_config(&self, scope: Scope, config: &AuthConfig) -> Result<(), ApiError> {
        let sql = "update auth_configs set name = $3, is_enabled = $4, app_id = $5, scopes = $6, fields = $7, tool_access = $8, updated_at = $9 \
                   where project_id = $1 and id = $2";
        let scopes = config.scopes.clone().map(Value::from);
        let args = args![
            scope.project,
            config.id,
            config.name.as_str(),
            config.is_enabled,
            config.app,
            scopes.as_ref(),
            config.fields.clone(),
            &json!(config.access),
            config.updated_at
        ];
        self.parts().db.execute(sql, args).await?;
        Ok(())
    }

    pub(super) async fn remove_auth_config(&self, scope: Scope, id: AuthConfigId) -> Result<(), ApiError> {
        self.parts().db.execute("delete from auth_configs where project_id = $1 and id = $2", args![scope.project, id]).await?;
        Ok(())
    }

    pub(super) fn seal_fields(&self, id: AuthConfigId, fields: &BTreeMap<String, String>) -> Option<Vec<u8>> {
        (!fields.is_empty()).then(|| self.parts().sealer.seal(json!(fields).to_string().as_bytes(), place(id)))
    }

    /// The fields that all accounts of a config share.
    pub(crate) fn open_fields(&self, config: &AuthConfig) -> Result<BTreeMap<String, String>, ApiError> {
        let Some(sealed) = &config.fields else { return Ok(BTreeMap::new()) };
        let plain = self.parts().sealer.open(sealed, place(config.id))?;
        Ok(serde_json::from_slice(&plain).map_err(|_| SealError::Damaged)?)
    }
}
