//! Toolkits: our integrations, as Composio lists and describes them.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::auth::AuthScheme;
use catalog::{Category, Integration};
use connections::Owner;
use document::ToSchema;
use kernel::Scope;
use serde::Serialize;
use serde_json::Value;

use crate::names::Toolkit;
use crate::page::{Page, Window};
use crate::schemes::{self, AuthFields};
use crate::{ApiError, ComposioApi, Refusal, versions};

/// The most toolkits on a page.
const MOST: usize = 1000;
/// Nobody knows when an integration was made or changed.
const UNKNOWN_TIME: &str = "1970-01-01T00:00:00.000Z";

/// Which toolkits to list.
#[derive(Clone, Debug, Default)]
pub struct ToolkitFilter {
    pub category: Option<String>,
    /// `composio`, `project` or `all`.
    pub managed_by: Option<String>,
    /// `native`, `custom` or `all`.
    pub kind: Option<String>,
    /// `usage` or `alphabetically`.
    pub sort_by: Option<String>,
    pub search: Option<String>,
    /// Only these, in any order.
    pub slugs: Option<Vec<String>>,
}

/// A toolkit in a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ToolkitItem)]
pub struct ToolkitItem {
    pub slug: String,
    pub name: String,
    /// `native`, or `custom` for what a project imported.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub is_local_toolkit: bool,
    pub no_auth: bool,
    pub auth_schemes: Vec<&'static str>,
    /// The ways to connect that need nothing from whoever makes an auth config.
    pub composio_managed_auth_schemes: Vec<&'static str>,
    pub deprecated: DeprecatedToolkit,
    pub meta: ToolkitItemMeta,
}

/// What older clients read.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::DeprecatedToolkit)]
pub struct DeprecatedToolkit {
    #[serde(rename = "toolkitId")]
    pub toolkit_id: String,
    #[serde(rename = "rawProxyInfoByAuthSchemes", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub raw_proxy_info: Option<Vec<Value>>,
}

/// What is said about a toolkit.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ToolkitItemMeta)]
pub struct ToolkitItemMeta {
    pub created_at: &'static str,
    pub updated_at: &'static str,
    pub description: String,
    pub logo: String,
    pub categories: Vec<CategoryById>,
    pub tools_count: usize,
    pub triggers_count: usize,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_url: Option<String>,
}

/// A category in a list of toolkits.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::CategoryById)]
pub struct CategoryById {
    pub id: String,
    pub name: String,
}

/// A category of one toolkit.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::CategoryBySlug)]
pub struct CategoryBySlug {
    pub slug: String,
    pub name: String,
}

/// One toolkit in full.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ToolkitDetails)]
pub struct ToolkitDetails {
    pub slug: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub enabled: bool,
    pub is_local_toolkit: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    pub composio_managed_auth: Vec<ManagedAuth>,
    pub composio_managed_auth_schemes: Vec<&'static str>,
    pub deprecated: DeprecatedToolkit,
    pub meta: ToolkitDetailsMeta,
    pub auth_config_details: Vec<AuthConfigDetails>,
}

/// What is said about one toolkit.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ToolkitDetailsMeta)]
pub struct ToolkitDetailsMeta {
    pub created_at: &'static str,
    pub updated_at: &'static str,
    pub description: String,
    pub logo: String,
    pub categories: Vec<CategoryBySlug>,
    pub tools_count: usize,
    pub triggers_count: usize,
    pub version: String,
    pub available_versions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_url: Option<String>,
}

/// A way to connect for which an OAuth app is there.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ManagedAuth)]
pub struct ManagedAuth {
    pub mode: &'static str,
    pub scopes: ManagedScopes,
}

/// The scopes that such an app asks for.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ManagedScopes)]
pub struct ManagedScopes {
    pub available: Vec<String>,
}

/// One way to connect, and what has to be filled in for it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AuthConfigDetails)]
pub struct AuthConfigDetails {
    pub mode: &'static str,
    pub name: String,
    pub required_scopes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyAddress>,
    pub fields: AuthConfigFields,
}

/// Where the service is.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ProxyAddress)]
pub struct ProxyAddress {
    pub base_url: String,
}

/// What is filled in for an auth config, and what for an account.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AuthConfigFields)]
pub struct AuthConfigFields {
    pub auth_config_creation: AuthFields,
    pub connected_account_initiation: AuthFields,
}

impl ComposioApi {
    /// A page of the toolkits that fit.
    #[kernel::boxed]
    pub async fn toolkits(
        &self,
        scope: Scope,
        filter: &ToolkitFilter,
        limit: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<ToolkitItem>, ApiError> {
        let window = Window::read(limit, cursor, MOST)?;
        let wants = Wanted::read(filter)?;
        let names = self.names(scope).await?;
        let mut found: Vec<&Arc<Toolkit>> = names.toolkits().iter().filter(|toolkit| wants.fits(toolkit)).collect();
        if wants.is_alphabetical {
            found.sort_by_key(|toolkit| toolkit.integration.name.to_lowercase());
        }
        let apps = self.oauth_apps(scope).await?;
        Ok(window.cut(found).map(|toolkit| item(toolkit, &apps)))
    }

    /// One toolkit in full.
    #[kernel::boxed]
    pub async fn toolkit_details(&self, scope: Scope, slug: &str, version: Option<&str>) -> Result<ToolkitDetails, ApiError> {
        let toolkit = self.toolkit(scope, slug).await?;
        versions::check(&toolkit.integration, &toolkit.slug, version)?;
        let apps = self.oauth_apps(scope).await?;
        Ok(details(&toolkit, &apps))
    }

    /// The categories of all toolkits, the largest first.
    #[kernel::boxed]
    pub async fn toolkit_categories(&self, scope: Scope) -> Result<Page<CategoryById>, ApiError> {
        let names = self.names(scope).await?;
        let mut counted: Vec<(String, usize)> = Vec::new();
        for category in names.toolkits().iter().flat_map(|toolkit| &toolkit.integration.categories) {
            match counted.iter_mut().find(|(known, _)| known == category) {
                Some((_, count)) => *count += 1,
                None => counted.push((category.clone(), 1)),
            }
        }
        counted.sort_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.cmp(other)));
        let items: Vec<CategoryById> = counted.into_iter().map(|(id, _)| CategoryById { name: Category::title(&id), id }).collect();
        Ok(Page { next_cursor: None, total_pages: 1, current_page: 1, total_items: items.len(), items })
    }

    /// The integrations for which the project or the deployment has an OAuth app.
    pub(crate) async fn oauth_apps(&self, scope: Scope) -> Result<OAuthApps, ApiError> {
        let connections = &self.parts().connections;
        let mut all = connections.list_apps(Owner::Project(scope.project)).await?;
        let own = all.len();
        all.extend(connections.list_apps(Owner::Deployment).await?);
        let place = |(number, app): (usize, connections::OAuthApp)| (app.provider, app.integration, number < own);
        Ok(OAuthApps(all.into_iter().enumerate().map(place).collect()))
    }
}

/// Integrations with OAuth apps, and whether the app is the project's own.
#[derive(Debug, Default)]
pub(crate) struct OAuthApps(HashSet<(String, String, bool)>);

impl OAuthApps {
    /// Whether an account can be connected by OAuth without bringing an app. The deployment's is not for addresses that a project chose.
    pub(crate) fn has(&self, integration: &Integration, scheme: &AuthScheme) -> bool {
        let has = |own: bool| self.0.contains(&(integration.provider.to_owned(), integration.key.clone(), own));
        match scheme {
            AuthScheme::OAuth2(oauth) => has(true) || (!oauth.trusts_the_connection() && has(false)),
            AuthScheme::Hosted(hosted) => hosted.is_managed,
            _ => false,
        }
    }

    pub(crate) fn managed(&self, integration: &Integration) -> Vec<&'static str> {
        let mut words: Vec<&'static str> = Vec::new();
        for word in integration.schemes().filter(|scheme| self.has(integration, scheme)).map(schemes::word) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }
}

/// A filter that was understood.
struct Wanted<'a> {
    filter: &'a ToolkitFilter,
    /// `native` or `custom`.
    kind: Option<&'static str>,
    is_alphabetical: bool,
}

impl<'a> Wanted<'a> {
    fn read(filter: &'a ToolkitFilter) -> Result<Self, Refusal> {
        let by_manager = match filter.managed_by.as_deref() {
            None | Some("all") => None,
            Some("composio") => Some("native"),
            Some("project") => Some("custom"),
            Some(_) => return Err(Refusal::bad_request("`managed_by` must be `composio`, `project` or `all`.")),
        };
        let by_kind = match filter.kind.as_deref() {
            None | Some("all") => None,
            Some("native") => Some("native"),
            Some("custom") => Some("custom"),
            Some(_) => return Err(Refusal::bad_request("`type` must be `native`, `custom` or `all`.")),
        };
        let is_alphabetical = match filter.sort_by.as_deref() {
            None | Some("usage") => false,
            Some("alphabetically") => true,
            Some(_) => return Err(Refusal::bad_request("`sort_by` must be `usage` or `alphabetically`.")),
        };
        Ok(Self { filter, kind: by_kind.or(by_manager), is_alphabetical })
    }

    fn fits(&self, toolkit: &Toolkit) -> bool {
        let integration = &toolkit.integration;
        let in_category = |wanted: &String| integration.categories.iter().any(|category| category.eq_ignore_ascii_case(wanted));
        let text = || format!("{}\n{}\n{}\n{}", toolkit.slug, integration.name, integration.description, integration.aliases.join("\n"));
        let is_found = |search: &String| {
            let text = text().to_lowercase();
            search.to_lowercase().split_whitespace().all(|word| text.contains(word))
        };
        let is_named = |slugs: &Vec<String>| slugs.iter().any(|slug| slug.eq_ignore_ascii_case(&toolkit.slug));
        self.kind.is_none_or(|wanted| wanted == kind(integration))
            && self.filter.category.as_ref().is_none_or(in_category)
            && self.filter.search.as_ref().is_none_or(is_found)
            && self.filter.slugs.as_ref().is_none_or(is_named)
    }
}

/// `custom` for what a project imported.
pub(crate) fn kind(integration: &Integration) -> &'static str {
    if matches!(integration.provider, "openapi" | "mcp") { "custom" } else { "native" }
}

fn item(toolkit: &Toolkit, apps: &OAuthApps) -> ToolkitItem {
    let integration = &toolkit.integration;
    let category = |id: &String| CategoryById { id: id.clone(), name: Category::title(id) };
    ToolkitItem {
        slug: toolkit.slug.clone(),
        name: integration.name.clone(),
        kind: kind(integration),
        is_local_toolkit: false,
        no_auth: integration.is_no_auth(),
        auth_schemes: schemes::words(integration),
        composio_managed_auth_schemes: apps.managed(integration),
        deprecated: DeprecatedToolkit { toolkit_id: toolkit.slug.clone(), raw_proxy_info: None },
        meta: ToolkitItemMeta {
            created_at: UNKNOWN_TIME,
            updated_at: UNKNOWN_TIME,
            description: integration.description.clone(),
            logo: integration.logo.clone().unwrap_or_default(),
            categories: integration.categories.iter().map(category).collect(),
            tools_count: integration.actions.len(),
            triggers_count: integration.events.len(),
            version: toolkit.version(),
            app_url: integration.url.clone(),
        },
    }
}

fn details(toolkit: &Toolkit, apps: &OAuthApps) -> ToolkitDetails {
    let ToolkitItem { slug, name, kind, is_local_toolkit, composio_managed_auth_schemes, deprecated, meta, .. } = item(toolkit, apps);
    let integration = &toolkit.integration;
    let managed = integration
        .schemes()
        .filter(|scheme| apps.has(integration, scheme))
        .map(|scheme| ManagedAuth { mode: schemes::word(scheme), scopes: ManagedScopes { available: scopes(scheme) } });
    ToolkitDetails {
        slug,
        name,
        kind,
        enabled: true,
        is_local_toolkit,
        base_url: integration.schemes().find_map(AuthScheme::base_url).filter(|url| !url.contains('{')).map(str::to_owned),
        composio_managed_auth: managed.collect(),
        composio_managed_auth_schemes,
        deprecated: DeprecatedToolkit { raw_proxy_info: Some(Vec::new()), ..deprecated },
        meta: ToolkitDetailsMeta {
            created_at: meta.created_at,
            updated_at: meta.updated_at,
            description: meta.description,
            logo: meta.logo,
            categories: meta.categories.into_iter().map(|CategoryById { id, name }| CategoryBySlug { slug: id, name }).collect(),
            tools_count: meta.tools_count,
            triggers_count: meta.triggers_count,
            available_versions: vec![meta.version.clone()],
            version: meta.version,
            app_url: meta.app_url,
        },
        auth_config_details: integration.schemes().map(|scheme| auth_config_details(integration, scheme)).collect(),
    }
}

fn auth_config_details(integration: &Integration, scheme: &AuthScheme) -> AuthConfigDetails {
    let mode = schemes::word(scheme);
    AuthConfigDetails {
        mode,
        name: format!("{} {mode}", integration.name),
        required_scopes: scopes(scheme),
        proxy: scheme.base_url().filter(|url| !url.contains('{')).map(|url| ProxyAddress { base_url: url.to_owned() }),
        fields: AuthConfigFields {
            auth_config_creation: AuthFields::of_auth_config(scheme),
            connected_account_initiation: AuthFields::of_account(scheme),
        },
    }
}

fn scopes(scheme: &AuthScheme) -> Vec<String> {
    match scheme {
        AuthScheme::OAuth2(oauth) => oauth.scopes.clone(),
        AuthScheme::ClientCredentials(client) => client.scopes.clone(),
        _ => Vec::new(),
    }
}
