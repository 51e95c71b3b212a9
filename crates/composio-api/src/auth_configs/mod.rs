//! Auth configs: how accounts of a toolkit are connected. A row names one scheme of one integration, perhaps with an OAuth app of its own and
//! fields that all of its accounts share.
//!
//! Accounts that were made without one belong to an implied config of their integration and scheme, which has an id and no row.
//! `api.auth_config(scope, id)` finds either; `api.config_of(connection)` is the one behind an account.

mod body;
mod find;
mod request;
mod rows;

use std::collections::BTreeMap;

use catalog::Integration;
use catalog::auth::AuthScheme;
use connections::{NewOAuthApp, Owner};
use kernel::{AuthConfigId, Scope, suggest};

use crate::names::{Names, Toolkit};
use crate::page::{Page, Window, commas};
use crate::{ApiError, ComposioApi, Refusal, ids, schemes};

pub(crate) use body::MASKED;
pub use body::{AuthConfigBody, AuthConfigChanged, CreatedAuthConfig};
pub(crate) use request::scalar;
use request::{AuthConfigChoice, read_scopes};
pub use request::{AuthConfigFilter, ChangeAuthConfig, CreateAuthConfig};
pub use rows::reseal;
pub(crate) use rows::{AuthConfig, ConfigCache, ToolAccess, cache};

/// How many a project may have.
const MOST: usize = 1000;
/// The most on a page.
const MOST_LISTED: usize = 1000;
/// The longest name, in characters.
const MAX_NAME: usize = 255;
const NO_DEFAULT: &str = "Auth_Config_DefaultAuthConfigNotFound";

fn not_found(id: &str) -> Refusal {
    let shown: String = id.chars().filter(|letter| !letter.is_control()).take(60).collect();
    Refusal::not_found("Auth_Config_NotFound", format!("There is no auth config `{shown}`."))
}

impl ComposioApi {
    /// Makes an auth config.
    #[kernel::boxed]
    pub async fn create_auth_config(&self, scope: Scope, request: CreateAuthConfig) -> Result<CreatedAuthConfig, ApiError> {
        let toolkit = self.toolkit(scope, &request.toolkit.slug).await?;
        let choice = request.auth_config.unwrap_or_default();
        choice.check()?;
        if self.auth_config_rows(scope).await?.len() >= MOST {
            return Err(Refusal::bad_request(format!("A project may have {MOST} auth configs. Delete some that you do not need.")).into());
        }
        let scheme = self.scheme_for(scope, &toolkit, &choice).await?;
        let names = self.names(scope).await?;
        let given = self.given(&toolkit, scheme, &choice.credentials, choice.shared_credentials.as_ref())?;
        let access = choice.access(&names)?;
        let given_name = name(choice.name.as_deref())?;
        let (id, now, is_managed) = (AuthConfigId::new(), self.parts().clock.now(), choice.is_managed());
        if is_managed && given.client.is_some() {
            return Err(Refusal::bad_request("A client id and secret are for `use_custom_auth`.").into());
        }
        let needs_client = matches!(scheme, AuthScheme::OAuth2(_) | AuthScheme::Hosted(_)) && scheme.name() == "oauth2" && !is_managed;
        let app = match given.client {
            Some((client_id, Some(client_secret))) => Some(self.keep_app(scope, id, &toolkit, client_id, client_secret, None).await?),
            Some(_) => return Err(client_missing(self, scope, &toolkit)),
            None if needs_client => return Err(client_missing(self, scope, &toolkit)),
            None => None,
        };
        let config = AuthConfig {
            id,
            provider: toolkit.integration.provider.to_owned(),
            integration: toolkit.integration.key.clone(),
            scheme: scheme.name().to_owned(),
            name: given_name.unwrap_or_else(|| format!("{} {}", toolkit.integration.name, schemes::word(scheme))),
            is_managed,
            is_enabled: true,
            app,
            scopes: given.scopes.or_else(|| access.scopes(&names, scheme)),
            fields: self.seal_fields(id, &given.fields),
            access,
            created_at: now,
            updated_at: now,
            created_by: Some(scope.author()),
            is_implied: false,
        };
        if let Err(error) = self.insert_auth_config(scope, &config).await {
            self.forget_app(scope, &config).await;
            return Err(error);
        }
        Ok(CreatedAuthConfig::of(&config, &toolkit.slug))
    }

    /// The scheme that a new config is of.
    async fn scheme_for<'a>(&self, scope: Scope, toolkit: &'a Toolkit, choice: &AuthConfigChoice) -> Result<&'a AuthScheme, ApiError> {
        let integration = &toolkit.integration;
        if !choice.is_managed() {
            let wanted = choice.auth_scheme.as_deref().ok_or_else(|| Refusal::bad_request("`authScheme` is missing."))?;
            let known = schemes::words(integration).join("`, `");
            let unknown = || {
                let shown: String = wanted.chars().filter(|letter| !letter.is_control()).take(40).collect();
                Refusal::bad_request(format!("Toolkit `{}` cannot be connected with `{shown}`; there is `{known}`.", toolkit.slug))
            };
            return Ok(schemes::find(integration, wanted).ok_or_else(unknown)?);
        }
        if let Some(oauth) = integration.schemes().find(|scheme| scheme.name() == "oauth2")
            && self.parts().connections.has_app(scope.project, integration).await?
        {
            return Ok(oauth);
        }
        let typed = integration.schemes().find(|scheme| !matches!(scheme.name(), "oauth2" | "none"));
        let open = || integration.schemes().find(|_| integration.is_no_auth());
        typed.or_else(open).ok_or_else(|| {
            let message = format!("Toolkit `{}` has no OAuth app here that accounts could be connected with.", toolkit.slug);
            let redirect = self.redirect_url(scope, integration);
            let fix = format!(
                "Save one with `toolyard oauth-app set`, or make an auth config with `use_custom_auth`. Its redirect URL is {redirect}"
            );
            Refusal::of_status(400, NO_DEFAULT, message).fix(fix).into()
        })
    }

    /// The address that people come back to with an app of this project.
    fn redirect_url(&self, scope: Scope, integration: &Integration) -> String {
        self.parts().connections.redirect_url(Owner::Project(scope.project), integration.provider, &integration.key)
    }

    /// What credentials mean: a client, scopes, and fields that all accounts share.
    fn given(
        &self,
        toolkit: &Toolkit,
        scheme: &AuthScheme,
        credentials: &serde_json::Map<String, serde_json::Value>,
        shared: Option<&serde_json::Map<String, serde_json::Value>>,
    ) -> Result<Given, ApiError> {
        let fields: Vec<String> = scheme.fields().into_iter().map(|(name, _)| name).collect();
        let takes_client = scheme.name() == "oauth2";
        let mut given = Given::default();
        let (mut client_id, mut client_secret) = (None, None);
        for (name, value) in credentials.iter().chain(shared.into_iter().flatten()) {
            if name == "scopes" {
                given.scopes = read_scopes(value)?;
                continue;
            }
            let Some(text) = scalar(name, value)? else { continue };
            match name.as_str() {
                "client_id" if takes_client => client_id = Some(text),
                "client_secret" if takes_client => client_secret = Some(text),
                "oauth_redirect_uri" | "redirect_uri" | "redirect_url" if takes_client => {
                    self.check_redirect(toolkit, &text)?;
                }
                _ if fields.contains(name) => {
                    given.fields.insert(name.clone(), text);
                }
                _ => {
                    let own = if takes_client { &["client_id", "client_secret", "scopes"][..] } else { &[] };
                    let known = || fields.iter().map(String::as_str).chain(own.iter().copied());
                    let shown: String = name.chars().filter(|letter| !letter.is_control()).take(40).collect();
                    let (nearest, known) = (suggest::did_you_mean(&shown, known()), known().collect::<Vec<_>>().join("`, `"));
                    let message =
                        format!("`credentials.{shown}` means nothing for {} here; there is `{known}`.{nearest}", schemes::word(scheme));
                    return Err(Refusal::bad_request(message).into());
                }
            }
        }
        given.client = match (client_id, client_secret) {
            (Some(id), secret) => Some((id, secret)),
            (None, Some(_)) => {
                given.secret_alone = true;
                None
            }
            (None, None) => None,
        };
        Ok(given)
    }

    /// People come back to an address of ours, so another one cannot be taken.
    fn check_redirect(&self, toolkit: &Toolkit, given: &str) -> Result<(), Refusal> {
        let ours = self.parts().connections.callback_url();
        if given == ours || given.strip_prefix(&ours).is_some_and(|rest| rest.starts_with('/')) {
            return Ok(());
        }
        let message = format!(
            "People who connect `{}` come back to an address of this server, so another redirect URL cannot be used.",
            toolkit.slug
        );
        Err(Refusal::bad_request(message).fix("Leave the redirect URL out, and register the one that `toolyard oauth-app` shows."))
    }

    async fn keep_app(
        &self,
        scope: Scope,
        id: AuthConfigId,
        toolkit: &Toolkit,
        client_id: String,
        client_secret: String,
        scopes: Option<Vec<String>>,
    ) -> Result<kernel::AppId, ApiError> {
        let Integration { provider, key, .. } = &*toolkit.integration;
        let new = NewOAuthApp { provider: (*provider).to_owned(), integration: key.clone(), client_id, client_secret, scopes };
        Ok(self.parts().connections.set_app(Owner::AuthConfig(scope.project, id), new).await?.id)
    }

    async fn forget_app(&self, scope: Scope, config: &AuthConfig) {
        let Some(app) = config.app else { return };
        if let Err(error) = self.parts().connections.delete_app(Owner::AuthConfig(scope.project, config.id), app).await {
            tracing::warn!(%error, "the OAuth app of an auth config that is gone could not be removed");
        }
    }

    /// Auth configs, newest first.
    #[kernel::boxed]
    pub async fn auth_configs(
        &self,
        scope: Scope,
        filter: &AuthConfigFilter,
        limit: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<AuthConfigBody>, ApiError> {
        let window = Window::read(limit, cursor, MOST_LISTED)?;
        let names = self.names(scope).await?;
        let (toolkits, search) = (commas(filter.toolkit_slug.as_deref()), filter.search.as_deref().map(str::to_lowercase));
        let mut rows = self.auth_config_rows(scope).await?;
        rows.retain(|config| {
            let slug = slug_of(&names, config);
            (filter.show_disabled || config.is_enabled)
                && filter.is_managed.is_none_or(|wanted| config.is_managed == wanted)
                && (toolkits.is_empty() || toolkits.iter().any(|wanted| wanted.eq_ignore_ascii_case(slug)))
                && search.as_deref().is_none_or(|text| {
                    config.name.to_lowercase().contains(text) || ids::AUTH_CONFIG.show(config.id).to_lowercase().contains(text)
                })
        });
        let page = window.cut(rows);
        let mut bodies = Vec::new();
        for config in &page.items {
            bodies.push(self.auth_config_body(scope, &names, config).await?);
        }
        let Page { next_cursor, total_pages, current_page, total_items, .. } = page;
        Ok(Page { items: bodies, next_cursor, total_pages, current_page, total_items })
    }

    /// One auth config, with its secrets masked.
    #[kernel::boxed]
    pub async fn show_auth_config(&self, scope: Scope, id: &str) -> Result<AuthConfigBody, ApiError> {
        let config = self.auth_config(scope, id).await?;
        let names = self.names(scope).await?;
        self.auth_config_body(scope, &names, &config).await
    }

    async fn auth_config_body(&self, scope: Scope, names: &Names, config: &AuthConfig) -> Result<AuthConfigBody, ApiError> {
        let connections = &self.parts().connections;
        let many = if config.is_implied {
            let filter = connections::AccountFilter { made_with: Some(vec![config.made_with()]), ..connections::AccountFilter::default() };
            connections.list(scope, &filter, 0, 1).await?.total
        } else {
            connections.count_made_with(scope.project, config.id).await?
        };
        let app = match config.app {
            Some(_) => connections.list_apps(Owner::AuthConfig(scope.project, config.id)).await?.into_iter().next(),
            None => None,
        };
        let fields = self.open_fields(config)?;
        let toolkit = names.toolkit_of(&config.provider, &config.integration);
        Ok(AuthConfigBody::of(config, toolkit.map(|toolkit| &**toolkit), many, app.map(|app| app.client_id), &fields))
    }

    /// Changes an auth config. What is not named stays.
    #[kernel::boxed]
    pub async fn change_auth_config(&self, scope: Scope, id: &str, change: ChangeAuthConfig) -> Result<AuthConfigChanged, ApiError> {
        let mut config = self.own_auth_config(scope, id).await?;
        change.check(config.is_managed)?;
        let names = self.names(scope).await?;
        let integration = self.parts().catalog.reach_integration(scope.project, &config.provider, &config.integration).await?;
        let toolkit = names.toolkit_of(&config.provider, &config.integration).ok_or_else(|| not_found(id))?;
        let scheme = integration.schemes().find(|scheme| scheme.name() == config.scheme);
        let gone = || Refusal::unusable("Auth_Config_SchemeGone", "The toolkit cannot be connected this way any more.");
        let scheme = scheme.ok_or_else(gone)?;
        let given = self.given(toolkit, scheme, &change.credentials, change.shared_credentials.as_ref())?;
        if config.is_managed && (given.client.is_some() || given.secret_alone) {
            return Err(Refusal::bad_request("A client id and secret are for auth configs of your own.").into());
        }
        if given.client.is_some() || given.secret_alone {
            config.app = Some(self.changed_app(scope, &config, toolkit, given.client.clone(), &change).await?);
        }
        if !given.fields.is_empty() {
            let mut fields = self.open_fields(&config)?;
            fields.extend(given.fields);
            config.fields = self.seal_fields(config.id, &fields);
        }
        if let Some(access) = change.access(&names, &config.access)? {
            if access.creation != config.access.creation {
                config.scopes = access.scopes(&names, scheme);
            }
            config.access = access;
        }
        if let Some(scopes) = change.scopes()?.or(given.scopes) {
            config.scopes = Some(scopes).filter(|scopes| !scopes.is_empty());
        }
        if let Some(name) = name(change.name.as_deref())? {
            config.name = name;
        }
        config.updated_at = self.parts().clock.now();
        self.update_auth_config(scope, &config).await?;
        Ok(AuthConfigChanged::done("The auth config was changed."))
    }

    /// Another client, or another secret of the same.
    async fn changed_app(
        &self,
        scope: Scope,
        config: &AuthConfig,
        toolkit: &Toolkit,
        client: Option<(String, Option<String>)>,
        change: &ChangeAuthConfig,
    ) -> Result<kernel::AppId, ApiError> {
        let (client_id, client_secret) = match client {
            Some((id, Some(secret))) => (id, secret),
            Some((_, None)) => return Err(client_missing(self, scope, toolkit)),
            None => {
                let apps = self.parts().connections.list_apps(Owner::AuthConfig(scope.project, config.id)).await?;
                let app = apps.into_iter().next().ok_or_else(|| client_missing(self, scope, toolkit))?;
                let secret = change.credentials.get("client_secret").and_then(serde_json::Value::as_str).unwrap_or_default();
                (app.client_id, secret.to_owned())
            }
        };
        self.keep_app(scope, config.id, toolkit, client_id, client_secret, None).await
    }

    /// Lets accounts be connected and used with a config, or stops that.
    #[kernel::boxed]
    pub async fn enable_auth_config(&self, scope: Scope, id: &str, status: &str) -> Result<AuthConfigChanged, ApiError> {
        let is_enabled = match status {
            "ENABLED" => true,
            "DISABLED" => false,
            _ => return Err(Refusal::bad_request("The status must be `ENABLED` or `DISABLED`.").into()),
        };
        let mut config = self.own_auth_config(scope, id).await?;
        (config.is_enabled, config.updated_at) = (is_enabled, self.parts().clock.now());
        self.update_auth_config(scope, &config).await?;
        Ok(AuthConfigChanged::done(if is_enabled { "The auth config is enabled." } else { "The auth config is disabled." }))
    }

    /// Deletes an auth config with all accounts that were made with it.
    #[kernel::boxed]
    pub async fn delete_auth_config(&self, scope: Scope, id: &str) -> Result<AuthConfigChanged, ApiError> {
        let mut config = self.own_auth_config(scope, id).await?;
        // Nothing more is connected while its accounts go.
        config.is_enabled = false;
        self.update_auth_config(scope, &config).await?;
        let gone = self.parts().connections.delete_made_with(scope, config.id).await?;
        self.forget_app(scope, &config).await;
        self.remove_auth_config(scope, config.id).await?;
        Ok(AuthConfigChanged::done(format!("The auth config was deleted, and {gone} accounts that were made with it.")))
    }
}

/// What credentials of a config came to.
#[derive(Default)]
struct Given {
    client: Option<(String, Option<String>)>,
    /// A secret without its client id.
    secret_alone: bool,
    scopes: Option<Vec<String>>,
    fields: BTreeMap<String, String>,
}

fn client_missing(api: &ComposioApi, scope: Scope, toolkit: &Toolkit) -> ApiError {
    let redirect = api.redirect_url(scope, &toolkit.integration);
    let message = format!("OAUTH2 of `{}` needs `credentials.client_id` and `credentials.client_secret`.", toolkit.slug);
    Refusal::bad_request(message).fix(format!("Register an OAuth app with the redirect URL {redirect}")).into()
}

fn name(name: Option<&str>) -> Result<Option<String>, Refusal> {
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    match name {
        Some(name) if name.chars().count() > MAX_NAME || name.contains(char::is_control) => {
            Err(Refusal::bad_request(format!("`name` may have {MAX_NAME} characters that can be shown.")))
        }
        name => Ok(name.map(str::to_owned)),
    }
}

/// The toolkit of a config; one that is gone goes by its key.
pub(crate) fn slug_of<'a>(names: &'a Names, config: &'a AuthConfig) -> &'a str {
    names.toolkit_of(&config.provider, &config.integration).map_or(config.integration.as_str(), |toolkit| toolkit.slug.as_str())
}

fn slug_of_toolkit(toolkit: Option<&Toolkit>, config: &AuthConfig) -> String {
    toolkit.map_or_else(|| config.integration.clone(), |toolkit| toolkit.slug.clone())
}
