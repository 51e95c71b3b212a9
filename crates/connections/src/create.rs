//! Making a connection. Everything that can be refused is refused before the provider is asked and before a row is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::Integration;
use catalog::auth::{AuthScheme, Fields};
use kernel::key::random_text;
use kernel::schema::Schema;
use kernel::{AccountOwner, AppId, AuthConfigId, ConnectionId, ProjectId, Scope, Slug, suggest};
use serde_json::{Value, json};

use crate::apps::OAuthApp;
use crate::attempt::{ConnectionKey, Started};
use crate::grant::{Terms, not_checked, oauth_scheme};
use crate::life::ConnectResult;
use crate::{AccountsOf, Connection, ConnectionError, Connections, HookEvent, LinkOptions, MAX_OF_END_USER, NEWEST, ONLY};
use crate::{hosted, store};

const MAX_FIELD: usize = 16 << 10;
const ACCESS_TOKEN: &str = "access_token";
const REFRESH_TOKEN: &str = "refresh_token";

/// What a new connection shall be.
#[derive(Clone, Default)]
pub struct NewConnection {
    /// The id that it shall have, where somebody has to know it beforehand.
    pub id: Option<ConnectionId>,
    /// An end user's account may go without one; it is given one then.
    pub slug: String,
    /// What it is called among the accounts of the same owner.
    pub alias: Option<String>,
    pub provider: String,
    pub integration: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Option<Value>,
    pub meta: Option<Value>,
    /// A scheme of the catalog, or `oauth` or `api_key` for the first that fits.
    pub auth_scheme: Option<String>,
    /// By field. Of OAuth also an `access_token` that was granted elsewhere, perhaps with its `refresh_token`.
    pub credentials: BTreeMap<String, String>,
    /// Fields that are the same for many accounts, so that nobody is asked for them.
    pub known: BTreeMap<String, String>,
    pub scopes: Option<Vec<String>>,
    /// The auth config that it is made with.
    pub auth_config: Option<AuthConfigId>,
    /// The OAuth app to connect with, in place of the usual one.
    pub app: Option<AppId>,
    /// How the person is led who connects it.
    pub link: LinkOptions,
}

/// What beginning to connect came to.
#[derive(Default)]
struct Beginning {
    /// The attempt, where a person is needed.
    started: Option<Started>,
    note: Option<String>,
}

impl From<Started> for Beginning {
    fn from(started: Started) -> Self {
        Self { started: Some(started), note: None }
    }
}

impl NewConnection {
    /// What is known beforehand, and what was given in its place or beside it.
    fn all_fields(&self) -> BTreeMap<String, String> {
        self.known.iter().chain(&self.credentials).map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl std::fmt::Debug for NewConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewConnection").field("slug", &self.slug).field("integration", &self.integration).finish_non_exhaustive()
    }
}

impl Connections {
    /// Makes a connection: valid at once where the credential is there or none is needed, else waiting for a person at `redirect_url`.
    #[kernel::boxed]
    pub async fn create(&self, scope: Scope, new: NewConnection) -> Result<ConnectResult, ConnectionError> {
        let this = self.clone();
        // What is made at a provider has to find its row, also if the caller goes away.
        self.undisturbed(async move { this.create_now(scope, new).await }).await
    }

    async fn create_now(&self, scope: Scope, new: NewConnection) -> Result<ConnectResult, ConnectionError> {
        let (slug, alias) = names(scope, &new)?;
        let project = scope.project;
        let integration = self.0.catalog.reach_integration(project, &new.provider, &new.integration).await?;
        let taken =
            || ConnectionError::Taken { provider: new.provider.clone(), integration: new.integration.clone(), slug: slug.to_string() };
        if store::is_taken(&self.0.db, project, &new.provider, &new.integration, slug.as_str()).await? {
            return Err(taken());
        }
        if let Some(alias) = &alias
            && self
                .query(scope, Some(&new.provider), Some(&new.integration))
                .await?
                .iter()
                .any(|row| row.alias.as_deref() == Some(alias.as_str()))
        {
            return Err(ConnectionError::AliasTaken(alias.to_string()));
        }
        self.check_room(scope, &new).await?;
        let scheme = self.choose(project, &integration, &new).await?;
        let now = self.0.clock.now();
        let mut connection = Connection {
            id: new.id.unwrap_or_default(),
            project,
            owner: scope.acts_for,
            slug: slug.to_string(),
            alias: alias.as_ref().map(ToString::to_string),
            name: new.name.clone(),
            description: new.description.clone(),
            provider: new.provider.clone(),
            integration: new.integration.clone(),
            tags: new.tags.clone(),
            meta: new.meta.clone(),
            is_active: true,
            is_valid: false,
            auth_scheme: Some(scheme.name().to_owned()),
            account: None,
            reason: None,
            failing_since: None,
            failure: None,
            last_used_at: None,
            granted: None,
            auth_config: new.auth_config,
            created_at: now,
            updated_at: now,
            created_by: Some(scope.author()),
            updated_by: None,
            asked: asked(scheme, &new.all_fields()),
            scopes: new.scopes.clone(),
            app: None,
            remote: None,
            credentials: None,
            refresh_at: None,
            expires_at: None,
            generation: 1,
            attempt_until: None,
            opened: Arc::default(),
        };
        let Beginning { started, note } = self.begin(&mut connection, &integration, scheme, &new).await?;
        connection.attempt_until = started.as_ref().map(|started| started.stored.until);
        let inserted = store::insert(&self.0.db, &connection, started.as_ref().map(|started| &started.stored)).await;
        if let Err(error) = inserted {
            self.forget_later(&new.provider, started.and_then(|started| started.stored.account));
            return Err(match error {
                ::store::StoreError::Conflict if alias.is_some() => {
                    ConnectionError::AliasTaken(alias.map(|alias| alias.to_string()).unwrap_or_default())
                }
                ::store::StoreError::Conflict => taken(),
                other => other.into(),
            });
        }
        if connection.is_usable() {
            self.announce(&connection, HookEvent::Connected, None).await;
        }
        Ok(ConnectResult { connection, redirect_url: started.map(|started| started.redirect_url), note })
    }

    /// Refuses a connection for which its owner has no room beside the others.
    async fn check_room(&self, scope: Scope, new: &NewConnection) -> Result<(), ConnectionError> {
        let texts = [&new.name, &new.description].into_iter().flatten().map(String::len);
        let values = [&new.tags, &new.meta].into_iter().flatten().map(|value| kernel::json::size(value, usize::MAX));
        let typed = new.known.iter().chain(&new.credentials).map(|(name, value)| name.len() + value.len());
        let scopes = new.scopes.iter().flatten().map(String::len);
        let more = ::store::Usage::row(texts.chain(values).chain(typed).chain(scopes).sum());
        self.admit(scope.into(), more).await
    }

    /// Whether an owner may keep this much more.
    pub(crate) async fn admit(&self, of: AccountsOf, more: ::store::Usage) -> Result<(), ConnectionError> {
        let usage = store::usage(&self.0.db, of).await?;
        match of.owner {
            AccountOwner::Project => Ok(self.0.quota.admit(usage, more)?),
            AccountOwner::EndUser(_) => {
                let is_full = usage.rows + more.rows > MAX_OF_END_USER.0 || usage.bytes.saturating_add(more.bytes) > MAX_OF_END_USER.1;
                if is_full { Err(ConnectionError::TooManyOfUser(MAX_OF_END_USER.0)) } else { Ok(()) }
            }
        }
    }

    /// Fills in the credential, or starts the attempt that will bring it.
    async fn begin(
        &self,
        connection: &mut Connection,
        integration: &Integration,
        scheme: &AuthScheme,
        new: &NewConnection,
    ) -> Result<Beginning, ConnectionError> {
        let target = ConnectionKey { project: connection.project, id: connection.id };
        let (credentials, scopes) = (new.all_fields(), new.scopes.as_deref());
        match scheme {
            AuthScheme::None(_) => {
                connection.is_valid = true;
                Ok(Beginning::default())
            }
            AuthScheme::OAuth2(oauth) => {
                let app = match new.app {
                    None => self.app_for(connection.project, integration, !oauth.trusts_the_connection()).await?,
                    named => self.app_used(connection.project, named).await?,
                };
                connection.app = app.as_ref().map(|app| app.id);
                if credentials.contains_key(ACCESS_TOKEN) {
                    return self.take_over(connection, integration, scheme, credentials, app.as_ref()).await;
                }
                let fields = check_fields(scheme, credentials)?;
                let app = app.ok_or_else(|| self.no_app(connection.project, integration, oauth))?;
                self.start_oauth(target, oauth, &app, &fields, scopes, &new.link).map(Beginning::from)
            }
            AuthScheme::Hosted(hosted) => {
                if !new.credentials.is_empty() {
                    let reason = format!("{} asks for the credential on its own page; leave `credentials` out", integration.name);
                    return Err(ConnectionError::Field(reason));
                }
                let app = match new.app {
                    None => self.app_for_hosted(connection.project, integration, hosted).await?,
                    named => self.app_used(connection.project, named).await?,
                };
                connection.app = app.as_ref().map(|app| app.id);
                self.start_hosted(target, integration, hosted, app.as_ref(), scopes, &new.link).await.map(Beginning::from)
            }
            _ if new.credentials.is_empty() => Ok(self.start_form(target, scheme, new.known.clone(), &new.link).into()),
            _ => {
                let mut fields = check_fields(scheme, credentials)?;
                let Terms { refresh_at, expires_at, scopes } = self.acquire(integration, scheme, &mut fields).await?;
                let identity = self.prove(integration, scheme, &fields).await?;
                let note = not_checked(integration, scheme, &identity);
                connection.account = identity.account();
                identity.fields.into_iter().for_each(|(name, value)| fields.set(name, value));
                connection.credentials = Some(store::seal_fields(&self.0.sealer, connection.id, &fields));
                (connection.refresh_at, connection.expires_at, connection.granted) = (refresh_at, expires_at, scopes);
                connection.is_valid = true;
                Ok(Beginning { started: None, note })
            }
        }
    }

    /// Takes over tokens that were granted elsewhere. They are proven like any other credential; without an app they last as long as they do.
    async fn take_over(
        &self,
        connection: &mut Connection,
        integration: &Integration,
        scheme: &AuthScheme,
        mut credentials: BTreeMap<String, String>,
        app: Option<&OAuthApp>,
    ) -> Result<Beginning, ConnectionError> {
        let mut tokens = Vec::new();
        for name in [ACCESS_TOKEN, REFRESH_TOKEN] {
            let token = credentials.remove(name).map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
            if token.as_ref().is_some_and(|token| token.len() > MAX_FIELD || token.contains(char::is_control)) {
                return Err(ConnectionError::Field(format!("`{name}` is too long or holds control characters")));
            }
            tokens.push((name, token));
        }
        let mut fields = check_fields(scheme, credentials)?;
        for (name, token) in tokens {
            match token {
                // Nobody could use it without the app that it was granted to.
                Some(_) if name == REFRESH_TOKEN && app.is_none() => {}
                Some(token) => fields.set(name, token),
                None if name == ACCESS_TOKEN => return Err(ConnectionError::Field("`access_token` is empty".to_owned())),
                None => {}
            }
        }
        let identity = self.prove(integration, scheme, &fields).await?;
        connection.account = identity.account();
        identity.fields.into_iter().for_each(|(name, value)| fields.set(name, value));
        connection.credentials = Some(store::seal_fields(&self.0.sealer, connection.id, &fields));
        connection.is_valid = true;
        Ok(Beginning::default())
    }

    async fn choose<'a>(
        &self,
        project: ProjectId,
        integration: &'a Integration,
        new: &NewConnection,
    ) -> Result<&'a AuthScheme, ConnectionError> {
        let unknown = |scheme: &str| ConnectionError::UnknownScheme {
            integration: integration.key.clone(),
            scheme: scheme.chars().take(40).collect(),
            known: integration.schemes().map(AuthScheme::name).collect::<Vec<_>>().join(", "),
        };
        if let Some(wanted) = new.auth_scheme.as_deref() {
            return named(integration, wanted, &new.credentials).ok_or_else(|| unknown(wanted));
        }
        if self.0.hosts.contains_key(integration.provider) && !integration.is_no_auth() {
            let has_app = self.app_for(project, integration, true).await?.is_some();
            return hosted::preferred(integration, has_app).ok_or_else(|| unknown(""));
        }
        let oauth = oauth_scheme(integration);
        if let Some((scheme, settings)) = oauth
            && self.app_for(project, integration, !settings.trusts_the_connection()).await?.is_some()
            && (new.credentials.is_empty() || fits(scheme, &new.credentials))
        {
            return Ok(scheme);
        }
        let oauth = oauth.map(|(scheme, _)| scheme);
        typed(integration, &new.credentials).or(oauth).or(integration.schemes().next()).ok_or_else(|| unknown(""))
    }
}

/// The scheme that is meant. `api_key` is the name of one and stands for all that are typed: what was given decides, then the name.
fn named<'a>(integration: &'a Integration, wanted: &str, given: &BTreeMap<String, String>) -> Option<&'a AuthScheme> {
    let mut meant = integration.schemes().filter(|scheme| scheme.wire_name() == Some(wanted));
    let exact = || integration.schemes().find(|scheme| scheme.name() == wanted);
    let fitting = || meant.clone().find(|scheme| wanted == "api_key" && !given.is_empty() && fits(scheme, given));
    fitting().or_else(exact).or_else(|| meant.next())
}

/// What a connection is called by. An end user's may go without a slug; one that nobody else has is made up then.
fn names(scope: Scope, new: &NewConnection) -> Result<(Slug, Option<Slug>), ConnectionError> {
    let is_end_users = scope.end_user().is_some();
    let slug = match new.slug.as_str() {
        "" if is_end_users => made_up(&new.integration).parse()?,
        slug => slug.parse::<Slug>()?,
    };
    let alias = new.alias.as_deref().map(alias).transpose()?;
    // A connection of the project may have had such a slug before it meant something.
    let chosen = [Some(&slug).filter(|_| is_end_users), alias.as_ref()];
    chosen.into_iter().flatten().try_for_each(not_a_word)?;
    Ok((slug, alias))
}

/// What a caller calls an account, if it can be one.
pub(crate) fn alias(text: &str) -> Result<Slug, ConnectionError> {
    let alias = text.parse::<Slug>().map_err(|error| ConnectionError::Words(format!("`alias` {error}")))?;
    not_a_word(&alias)?;
    Ok(alias)
}

fn not_a_word(name: &Slug) -> Result<(), ConnectionError> {
    if matches!(name.as_str(), NEWEST | ONLY) {
        return Err(ConnectionError::Words(format!("`{name}` means another thing where an account is chosen; take another name")));
    }
    Ok(())
}

/// A slug that no other connection has.
fn made_up(integration: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let stem: String = integration.chars().take(60).map(safe).collect();
    format!("{}-{}", stem.trim_matches('-'), random_text(16).to_ascii_lowercase())
}

/// The first scheme that takes exactly what was given, else the first that can be typed.
fn typed<'a>(integration: &'a Integration, given: &BTreeMap<String, String>) -> Option<&'a AuthScheme> {
    let mut typed = integration.schemes().filter(|scheme| scheme.wire_name() != Some("oauth"));
    typed.clone().find(|scheme| !given.is_empty() && fits(scheme, given)).or_else(|| typed.next())
}

fn fits(scheme: &AuthScheme, given: &BTreeMap<String, String>) -> bool {
    let fields = scheme.fields();
    let known = given.keys().all(|name| fields.iter().any(|(field, _)| field == name));
    known && fields.iter().all(|(name, field)| field.optional || field.default.is_some() || given.contains_key(name))
}

/// The fields that are no secret, to find the provider again by.
pub(crate) fn asked(scheme: &AuthScheme, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let open = scheme.fields().into_iter().filter(|(_, field)| !field.secret);
    open.filter_map(|(name, _)| given.get(&name).map(|value| (name, value.trim().to_owned()))).collect()
}

/// The fields of a scheme from what was given: complete, known and well-formed.
pub(crate) fn check_fields(scheme: &AuthScheme, mut given: BTreeMap<String, String>) -> Result<Fields, ConnectionError> {
    let known: Vec<String> = scheme.fields().into_iter().map(|(name, _)| name).collect();
    if let Some(unknown) = given.keys().find(|name| !known.contains(name)) {
        let shown: String = unknown.chars().take(40).collect();
        let hint = suggest::did_you_mean(&shown, known.iter().map(String::as_str));
        return Err(ConnectionError::Field(format!("`{shown}` is not a field of scheme `{}`.{hint}", scheme.name())));
    }
    let mut fields = Fields::default();
    for (name, field) in scheme.fields() {
        let value = given.remove(&name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()).or(field.default);
        let Some(value) = value else {
            if field.optional {
                continue;
            }
            return Err(ConnectionError::Field(format!("`{name}` is required ({})", field.label.as_deref().unwrap_or(&name))));
        };
        if value.len() > MAX_FIELD || value.contains(char::is_control) {
            return Err(ConnectionError::Field(format!("`{name}` is too long or holds control characters")));
        }
        if let Some(pattern) = &field.pattern
            && !whole_match(pattern, &value)
        {
            return Err(ConnectionError::Field(format!("`{name}` does not have the expected form `{pattern}`")));
        }
        fields.set(name, value);
    }
    Ok(fields)
}

fn whole_match(pattern: &str, value: &str) -> bool {
    let schema = json!({"type": "string", "pattern": format!("^(?:{pattern})$")});
    Schema::compile(&schema).is_ok_and(|schema| schema.check(&Value::from(value)).is_ok())
}
