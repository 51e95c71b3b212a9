//! The catalog on the wire: what `/tools/catalog` and `/triggers/catalog` share.

use catalog::{Action, CatalogError, Event, Integration, Page, PageQuery, Provider};
use document::{IntoParams, ToSchema};
use kernel::ProjectId;
use kernel::json::Document;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::App;
use crate::edge::{ApiError, ApiResult, Unused};

/// A provider of integrations.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProviderBody {
    pub key: &'static str,
    pub name: &'static str,
    pub description: &'static str,
    pub integrations_count: usize,
}

impl ProviderBody {
    pub(crate) fn new(app: &App, project: ProjectId, provider: &Provider) -> Result<Self, CatalogError> {
        let integrations_count = app.catalog.source(provider.key)?.integrations(project).len();
        Ok(Self { key: provider.key, name: provider.name, description: provider.description, integrations_count })
    }
}

/// One provider in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProviderAnswer {
    pub count: usize,
    pub provider: ProviderBody,
}

/// Providers in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProvidersAnswer {
    pub count: usize,
    pub providers: Vec<ProviderBody>,
}

/// An integration.
#[derive(Debug, Serialize, ToSchema)]
pub struct IntegrationBody {
    pub key: String,
    pub name: String,
    pub description: String,
    pub categories: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub actions_count: usize,
    pub events_count: usize,
    /// `oauth`, `api_key`; absent when no account is needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub auth_schemes: Vec<&'static str>,
    /// How an account can be connected, in detail; only where one integration is read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub auth: Vec<AuthBody>,
}

/// One way to connect.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuthBody {
    pub scheme: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldBody>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// Something that the user is asked for.
#[derive(Debug, Serialize, ToSchema)]
pub struct FieldBody {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    pub secret: bool,
    pub required: bool,
}

impl IntegrationBody {
    pub(crate) fn brief(integration: &Integration) -> Self {
        Self {
            key: integration.key.clone(),
            name: integration.name.clone(),
            description: integration.description.clone(),
            categories: integration.categories.clone(),
            logo: integration.logo.clone(),
            url: integration.url.clone(),
            actions_count: integration.actions.len(),
            events_count: integration.events.len(),
            auth_schemes: integration.wire_schemes(),
            auth: Vec::new(),
        }
    }

    pub(crate) fn full(integration: &Integration) -> Self {
        let auth = integration.schemes().map(|scheme| AuthBody {
            scheme: scheme.name(),
            fields: scheme
                .fields()
                .into_iter()
                .map(|(name, field)| FieldBody {
                    name,
                    label: field.label,
                    help: field.help,
                    secret: field.secret,
                    required: !field.optional && field.default.is_none(),
                })
                .collect(),
            scopes: match scheme {
                catalog::auth::AuthScheme::OAuth2(oauth) => oauth.scopes.clone(),
                catalog::auth::AuthScheme::ClientCredentials(client) => client.scopes.clone(),
                _ => Vec::new(),
            },
        });
        Self { auth: auth.collect(), ..Self::brief(integration) }
    }
}

/// One integration in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct IntegrationAnswer {
    pub count: usize,
    pub integration: IntegrationBody,
}

/// A page of integrations.
#[derive(Debug, Serialize, ToSchema)]
pub struct IntegrationsAnswer {
    pub count: usize,
    pub total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub integrations: Vec<IntegrationBody>,
}

impl From<Page<std::sync::Arc<Integration>>> for IntegrationsAnswer {
    fn from(page: Page<std::sync::Arc<Integration>>) -> Self {
        let integrations: Vec<_> = page.items.iter().map(|integration| IntegrationBody::brief(integration)).collect();
        Self { count: integrations.len(), total: page.total, cursor: page.cursor, integrations }
    }
}

/// An action. `schemas` and `scopes` are there where details are asked for.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionBody {
    pub key: String,
    pub name: String,
    pub description: String,
    pub categories: Vec<String>,
    pub read_only: bool,
    pub destructive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schemas: Option<SchemasBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub pagination: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub use_cases: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pitfalls: Vec<String>,
}

/// The schemas of an action.
#[derive(Debug, Serialize, ToSchema)]
pub struct SchemasBody {
    #[schema(value_type = Object)]
    pub inputs: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Value>,
}

impl ActionBody {
    pub(crate) fn new(action: &Action, categories: &[String], full: bool) -> Self {
        let details = |list: &Vec<String>| if full { list.clone() } else { Vec::new() };
        Self {
            key: action.key.clone(),
            name: action.name.clone(),
            description: action.description.clone(),
            categories: categories.to_vec(),
            read_only: action.read_only,
            destructive: action.destructive,
            schemas: full
                .then(|| SchemasBody { inputs: action.input_schema.value(), outputs: action.output_schema.as_ref().map(Document::value) }),
            scopes: full.then(|| action.scopes.clone()),
            pagination: action.pagination.as_ref().filter(|_| full).map(Document::value),
            use_cases: details(&action.use_cases),
            pitfalls: details(&action.pitfalls),
        }
    }
}

/// An event. `trigger_config` and `payload` are there where one event is read.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventBody {
    pub key: String,
    pub name: String,
    pub description: String,
    pub provider: String,
    pub integration: String,
    pub categories: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub trigger_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub payload: Option<Value>,
}

impl EventBody {
    pub(crate) fn new(event: &Event, integration: &Integration, full: bool) -> Self {
        Self {
            key: event.key.clone(),
            name: event.name.clone(),
            description: event.description.clone(),
            provider: integration.provider.to_owned(),
            integration: integration.key.clone(),
            categories: integration.categories.clone(),
            logo: integration.logo.clone(),
            trigger_config: full.then(|| event.config_schema.value()),
            payload: event.payload_schema.as_ref().filter(|_| full).map(Document::value),
        }
    }
}

/// Which integrations to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListIntegrations {
    /// Words to look for; fewer than three characters are ignored.
    pub search: Option<String>,
    #[param(inline, required = false, value_type = crate::shapes::SortWord)]
    pub sort_by: Option<String>,
    pub category: Option<String>,
    /// 20 by default, 1000 at most.
    #[param(minimum = 0)]
    pub limit: Option<i64>,
    #[param(inline, required = false, value_type = crate::shapes::CursorText)]
    pub cursor: Option<String>,
    #[param(ignore)]
    pub full_details: Unused,
}

impl ListIntegrations {
    pub(crate) fn query(self) -> ApiResult<PageQuery> {
        let alphabetical = match self.sort_by.as_deref() {
            None | Some("" | "usage") => false,
            Some("alphabetically") => true,
            Some(other) => return Err(ApiError::unknown_value("sort_by", other, &["usage", "alphabetically"])),
        };
        let categories = self.category.into_iter().collect();
        Ok(PageQuery { search: self.search, categories, alphabetical, limit: self.limit, cursor: self.cursor })
    }
}
