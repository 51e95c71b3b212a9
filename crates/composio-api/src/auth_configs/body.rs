//! Auth configs as Composio shows them. Secrets are masked.

use std::collections::BTreeMap;

use document::ToSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{AuthConfig, slug_of_toolkit};
use crate::names::Toolkit;
use crate::{ids, schemes};

/// In the place of a secret.
pub(crate) const MASKED: &str = "REDACTED";

/// An auth config that was made.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::CreatedAuthConfig)]
pub struct CreatedAuthConfig {
    pub toolkit: CreatedAuthConfigToolkit,
    pub auth_config: CreatedAuthConfigBody,
}

/// The toolkit of an auth config.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::CreatedAuthConfigToolkit)]
pub struct CreatedAuthConfigToolkit {
    pub slug: String,
}

/// What is known of a new auth config.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::CreatedAuthConfigBody)]
pub struct CreatedAuthConfigBody {
    pub id: String,
    pub auth_scheme: &'static str,
    pub is_composio_managed: bool,
}

impl CreatedAuthConfig {
    pub(super) fn of(config: &AuthConfig, toolkit: &str) -> Self {
        Self {
            toolkit: CreatedAuthConfigToolkit { slug: toolkit.to_owned() },
            auth_config: CreatedAuthConfigBody {
                id: ids::AUTH_CONFIG.show(config.id),
                auth_scheme: schemes::word_of_name(&config.scheme),
                is_composio_managed: config.is_managed,
            },
        }
    }
}

/// An auth config.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AuthConfig)]
pub struct AuthConfigBody {
    pub id: String,
    pub uuid: Uuid,
    /// `default` with what is there, or `custom`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub toolkit: AuthConfigToolkit,
    pub name: String,
    /// `ENABLED` or `DISABLED`.
    pub status: &'static str,
    pub auth_scheme: &'static str,
    pub is_composio_managed: bool,
    pub no_of_connections: usize,
    /// Secrets are masked.
    #[schema(value_type = Object)]
    pub credentials: Map<String, Value>,
    pub tool_access_config: ToolAccessBody,
    pub is_enabled_for_tool_router: bool,
    #[schema(value_type = Vec<Object>)]
    pub expected_input_fields: Vec<Value>,
    pub created_at: String,
    pub last_updated_at: String,
}

/// The toolkit of an auth config, with its picture.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AuthConfigToolkit)]
pub struct AuthConfigToolkit {
    pub slug: String,
    pub logo: String,
}

/// Which tools an auth config is for.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = composio::ToolAccess)]
pub struct ToolAccessBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_for_connected_account_creation: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_available_for_execution: Option<Vec<String>>,
}

impl AuthConfigBody {
    pub(super) fn of(
        config: &AuthConfig,
        toolkit: Option<&Toolkit>,
        connections: usize,
        client_id: Option<String>,
        fields: &BTreeMap<String, String>,
    ) -> Self {
        let scheme = toolkit.and_then(|toolkit| toolkit.integration.schemes().find(|scheme| scheme.name() == config.scheme));
        let asked = scheme.map(catalog::auth::AuthScheme::fields).unwrap_or_default();
        let mut credentials = Map::new();
        if let Some(client_id) = client_id {
            credentials.insert("client_id".to_owned(), json!(client_id));
            credentials.insert("client_secret".to_owned(), json!(MASKED));
        }
        if let Some(scopes) = &config.scopes {
            credentials.insert("scopes".to_owned(), json!(scopes));
        }
        for (name, value) in fields {
            let is_open = asked.iter().any(|(known, field)| known == name && !field.secret);
            credentials.insert(name.clone(), json!(if is_open { value } else { MASKED }));
        }
        // What everybody is still asked for who connects with it.
        let expected = asked
            .into_iter()
            .filter(|(name, _)| !fields.contains_key(name))
            .map(|(name, field)| json!(schemes::AuthField::of(name, field)));
        Self {
            id: ids::AUTH_CONFIG.show(config.id),
            uuid: config.id.uuid(),
            kind: if config.is_managed { "default" } else { "custom" },
            toolkit: AuthConfigToolkit {
                slug: slug_of_toolkit(toolkit, config),
                logo: toolkit.and_then(|toolkit| toolkit.integration.logo.clone()).unwrap_or_default(),
            },
            name: config.name.clone(),
            status: if config.is_enabled { "ENABLED" } else { "DISABLED" },
            auth_scheme: schemes::word_of_name(&config.scheme),
            is_composio_managed: config.is_managed,
            no_of_connections: connections,
            credentials,
            tool_access_config: ToolAccessBody {
                tools_for_connected_account_creation: config.access.creation.clone(),
                tools_available_for_execution: config.access.execution.clone(),
            },
            is_enabled_for_tool_router: config.access.tool_router.unwrap_or(true),
            expected_input_fields: expected.collect(),
            created_at: config.created_at.to_string(),
            last_updated_at: config.updated_at.to_string(),
        }
    }
}

/// That something was done with an auth config.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AuthConfigChanged)]
pub struct AuthConfigChanged {
    pub success: bool,
    pub message: String,
}

impl AuthConfigChanged {
    pub(super) fn done(message: impl Into<String>) -> Self {
        Self { success: true, message: message.into() }
    }
}
