//! Connections on the wire. The same rows are served at `/tools/connections` and `/triggers/connections`; only the permission differs.

use std::collections::BTreeMap;

use catalog::CatalogError;
use connections::{AccountsOf, ConnectResult, Connection, ConnectionEdit, ConnectionUser, LinkOptions, NewConnection, TextEdit};
use document::{IntoParams, ToSchema};
use http::StatusCode;
use kernel::{ConnectionId, Language, Scope};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::App;
use crate::edge::{ApiError, ApiResult, Code, Json, Unused, end_user};

/// A connection.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectionBody {
    pub id: Uuid,
    pub slug: String,
    /// The end user whose account it is; none where it is the project's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_user: Option<String>,
    /// What an end user's account is called among those of the same user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub provider_key: String,
    pub integration_key: String,
    pub flags: ConnectionFlags,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Value>,
    /// What the caller gave, and `account`: whose account it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Value>,
    /// `auth_scheme`, `no_auth`, and `redirect_url` in the answer that starts an authorization.
    #[schema(value_type = Object)]
    pub data: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ConnectionStatus>,
    /// When it was last used, to the hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// The OAuth scopes that were granted, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    pub created_at: String,
    pub updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_by_id: Option<Uuid>,
}

/// The state of a connection.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectionFlags {
    pub is_active: bool,
    pub is_valid: bool,
    /// Its service refused the credential at its last use; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_failing: Option<bool>,
}

/// What a person has to do or know.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectionStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One connection in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectionAnswer {
    pub count: usize,
    pub connection: ConnectionBody,
}

/// Connections in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectionsAnswer {
    pub count: usize,
    /// Leads to the next page, where a `limit` was given and there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub connections: Vec<ConnectionBody>,
}

/// How many consumers of each kind a connection has.
#[derive(Debug, Serialize, ToSchema)]
pub struct UsageAnswer {
    pub count: usize,
    pub usage: BTreeMap<String, i64>,
}

/// One of those who use a connection.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConsumerBody {
    /// `agent`, `subscription` or `workflow`.
    pub kind: &'static str,
    pub id: String,
    /// What people call it; of a subscription without a name its event, of a workflow without one its slug.
    pub name: String,
}

impl From<ConnectionUser> for ConsumerBody {
    fn from(user: ConnectionUser) -> Self {
        Self { kind: user.kind, id: user.id, name: user.name }
    }
}

/// Who uses a connection.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConsumersAnswer {
    pub count: usize,
    pub consumers: Vec<ConsumerBody>,
}

/// A request to change what a connection is called.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditConnection {
    pub connection: EditConnectionBody,
}

/// What is left out stays, and null clears.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditConnectionBody {
    #[serde(default, deserialize_with = "text_edit")]
    #[schema(value_type = Option<crate::shapes::LineText>)]
    pub name: TextEdit,
    #[serde(default, deserialize_with = "text_edit")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000, pattern = r"\S")]
    pub description: TextEdit,
}

/// A member that is there: null clears.
fn text_edit<'de, D: Deserializer<'de>>(member: D) -> Result<TextEdit, D::Error> {
    Ok(Option::deserialize(member)?.map_or(TextEdit::Clear, TextEdit::Set))
}

/// A request to make a connection.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateConnection {
    pub connection: NewConnectionBody,
}

/// What a new connection shall be. What a connection shows of itself, such as its flags, may be sent and is ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConnectionBody {
    /// What refs name it by; an account of an end user may go without, and is given one.
    #[schema(value_type = Option<crate::shapes::SlugText>)]
    pub slug: Option<String>,
    /// The end user whose account it shall be, by the name that you give them; left out, it is the project's own.
    #[schema(value_type = Option<crate::shapes::EndUserText>)]
    pub end_user: Option<String>,
    /// What an end user's account is called among those of the same user.
    #[schema(value_type = Option<crate::shapes::SlugText>)]
    pub alias: Option<String>,
    #[schema(example = "native")]
    pub provider_key: String,
    #[schema(example = "github")]
    pub integration_key: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub meta: Option<Map<String, Value>>,
    pub data: Option<NewConnectionData>,
    /// How the person is led who connects it.
    pub link: Option<ConnectLinkBody>,
    #[schema(ignore)]
    pub id: Unused,
    #[schema(ignore)]
    pub flags: Unused,
    #[schema(ignore)]
    pub status: Unused,
    #[schema(ignore)]
    pub created_at: Unused,
    #[schema(ignore)]
    pub updated_at: Unused,
    #[schema(ignore)]
    pub deleted_at: Unused,
    #[schema(ignore)]
    pub created_by_id: Unused,
    #[schema(ignore)]
    pub updated_by_id: Unused,
    #[schema(ignore)]
    pub deleted_by_id: Unused,
}

/// How a person is led who connects an account.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectLinkBody {
    /// The language of our pages; left out, the browser says which it likes.
    #[schema(value_type = Option<crate::shapes::LanguageWord>)]
    pub language: Option<String>,
    /// Where the browser goes in the end, however it ends, with `status` (`success` or `failed`) and `connection_id` added to its query. The project
    /// must allow the address at `/project/connect-links`.
    pub return_to: Option<String>,
}

/// How to connect.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConnectionData {
    /// `oauth`, `api_key`, or the name of one of the integration's schemes; left out, the best one that can be used here.
    pub auth_scheme: Option<String>,
    /// The credential, by field. Left out, a person types it at `redirect_url`. With OAuth, an `access_token` that was granted elsewhere is taken over, and
    /// its `refresh_token`.
    pub credentials: Option<BTreeMap<String, String>>,
    /// OAuth scopes to ask for, in place of the usual ones.
    pub scopes: Option<Vec<String>>,
    #[schema(ignore)]
    pub callback_url: Unused,
    #[schema(ignore)]
    pub connected_account_id: Unused,
    #[schema(ignore)]
    pub auth_config_id: Unused,
    #[schema(ignore)]
    pub redirect_url: Unused,
    #[schema(ignore)]
    pub project_id: Unused,
    #[schema(ignore)]
    pub no_auth: Unused,
}

impl std::fmt::Debug for NewConnectionData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewConnectionData").field("auth_scheme", &self.auth_scheme).finish_non_exhaustive()
    }
}

/// Which connections to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct QueryConnections {
    pub provider_key: Option<String>,
    pub integration_key: Option<String>,
    /// The accounts of one end user.
    #[param(inline, required = false, value_type = crate::shapes::EndUserText)]
    pub end_user: Option<String>,
    /// Whose accounts: `project` for its own, which is what is listed where neither this nor `end_user` is given, or `everybody` for those of all
    /// end users too.
    #[param(inline, required = false, value_type = crate::shapes::AccountsWord)]
    pub accounts: Option<String>,
    /// With `accounts=everybody`: 500 by default and at most.
    pub limit: Option<i64>,
    pub cursor: Option<Uuid>,
}

/// How to refresh.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RefreshConnection {
    /// Ask a person again even if the tokens can be renewed.
    pub force: Option<bool>,
    /// Of the pages, if a person is asked.
    #[param(inline, required = false, value_type = crate::shapes::LanguageWord)]
    pub language: Option<String>,
    /// Where a person who is asked goes in the end; the project must allow the address.
    pub return_to: Option<String>,
}

impl From<ConnectResult> for ConnectionBody {
    fn from(ConnectResult { connection, redirect_url, note }: ConnectResult) -> Self {
        let mut body = Self::from(connection);
        if note.is_some() {
            body.status.get_or_insert(ConnectionStatus { redirect_url: None, message: None }).message = note;
        }
        if let Some(url) = redirect_url {
            body.data["redirect_url"] = json!(url);
            body.status.get_or_insert(ConnectionStatus { redirect_url: None, message: None }).redirect_url = Some(url);
        }
        body
    }
}

impl From<Connection> for ConnectionBody {
    fn from(connection: Connection) -> Self {
        let scheme = match connection.auth_scheme.as_deref() {
            Some("oauth2") => json!("oauth"),
            Some("none") | None => Value::Null,
            Some(_) => json!("api_key"),
        };
        let mut data = json!({"auth_scheme": scheme});
        if connection.is_no_auth() {
            data["no_auth"] = json!(true);
        }
        let mut meta = connection.meta;
        if let Some(account) = connection.account {
            meta.get_or_insert_with(|| json!({}))["account"] = account;
        }
        Self {
            id: connection.id.uuid(),
            slug: connection.slug,
            end_user: None,
            alias: connection.alias,
            name: connection.name,
            description: connection.description,
            provider_key: connection.provider,
            integration_key: connection.integration,
            flags: ConnectionFlags {
                is_active: connection.is_active,
                is_valid: connection.is_valid,
                is_failing: connection.failing_since.map(|_| true),
            },
            tags: connection.tags,
            meta,
            data,
            status: connection.reason.or(connection.failure).map(|reason| ConnectionStatus { redirect_url: None, message: Some(reason) }),
            last_used_at: connection.last_used_at.map(|time| time.to_string()),
            scopes: connection.granted,
            created_at: connection.created_at.to_string(),
            updated_at: connection.updated_at.to_string(),
            created_by_id: connection.created_by,
            updated_by_id: connection.updated_by,
        }
    }
}

/// How many connections of everybody are listed at once.
const MOST_LISTED: i64 = 500;

/// A connection with the name of whose it is.
async fn named(app: &App, connection: Connection) -> ApiResult<ConnectionBody> {
    Ok(all_named(app, vec![connection]).await?.remove(0))
}

pub(crate) async fn all_named(app: &App, connections: Vec<Connection>) -> ApiResult<Vec<ConnectionBody>> {
    let Some(project) = connections.first().map(|connection| connection.project) else { return Ok(Vec::new()) };
    let names = app.end_users.names(project, connections.iter().filter_map(|connection| connection.owner.end_user()).collect()).await?;
    let body = |connection: Connection| {
        let end_user = connection.owner.end_user().and_then(|end_user| names.get(&end_user).cloned());
        ConnectionBody { end_user, ..connection.into() }
    };
    Ok(connections.into_iter().map(body).collect())
}

async fn begun(app: &App, result: ConnectResult) -> ApiResult<Json<ConnectionAnswer>> {
    let end_user = named(app, result.connection.clone()).await?.end_user;
    Ok(Json(ConnectionAnswer { count: 1, connection: ConnectionBody { end_user, ..result.into() } }))
}

pub(crate) async fn query(app: &App, scope: Scope, filter: QueryConnections) -> ApiResult<Json<ConnectionsAnswer>> {
    let (provider, integration) = (filter.provider_key.as_deref(), filter.integration_key.as_deref());
    let end_user = end_user::wanted(app, scope, filter.end_user.as_deref()).await?;
    let mut cursor = None;
    let found = match (end_user, filter.accounts.as_deref()) {
        (_, Some(other)) if !["project", "everybody"].contains(&other) => {
            return Err(ApiError::unknown_value("accounts", other, &["project", "everybody"]));
        }
        // None of a user's accounts is the project's own.
        (Some(_), Some("project")) => Vec::new(),
        (Some(end_user), _) => app.connections.query(AccountsOf::end_user(scope.project, end_user), provider, integration).await?,
        (None, Some("everybody")) => {
            let limit = filter.limit.unwrap_or(MOST_LISTED).clamp(1, MOST_LISTED);
            let after = filter.cursor.map(ConnectionId::from);
            let mut page = app.connections.everybody(scope.project, provider, integration, after, limit + 1).await?;
            if page.len() > usize::try_from(limit).unwrap_or(usize::MAX) {
                page.pop();
                cursor = page.last().map(|last| last.id.uuid());
            }
            page
        }
        (None, _) => app.connections.query(AccountsOf::project(scope.project), provider, integration).await?,
    };
    if found.is_empty() {
        check_names(app, scope, &filter).await?;
    }
    let connections = all_named(app, found).await?;
    Ok(Json(ConnectionsAnswer { count: connections.len(), cursor, connections }))
}

/// A filter by a name that nothing has is a mistake. A provider that is not configured or does not answer has no connections, but is known.
async fn check_names(app: &App, scope: Scope, filter: &QueryConnections) -> ApiResult<()> {
    let checked = match (&filter.provider_key, &filter.integration_key) {
        (Some(provider), Some(key)) => app.catalog.reach_integration(scope.project, provider, key).await.map(|_| ()),
        (Some(provider), None) => app.catalog.source(provider).map(|_| ()),
        (None, Some(key)) => app.catalog.check_integration(scope.project, key),
        (None, None) => Ok(()),
    };
    match checked {
        Err(error @ (CatalogError::UnknownProvider(_) | CatalogError::UnknownIntegration(_))) => Err(error.into()),
        _ => Ok(()),
    }
}

pub(crate) async fn create(app: &App, scope: Scope, body: CreateConnection) -> ApiResult<Json<ConnectionAnswer>> {
    let new = body.connection;
    let scope = end_user::acting_for(app, scope, new.end_user.as_deref()).await?;
    if new.slug.is_none() && scope.end_user().is_none() {
        return Err(ApiError::unprocessable("`slug` is required, except for an account of an end user."));
    }
    let link = link_options(app, scope, new.link.unwrap_or_default()).await?;
    let data = new.data.unwrap_or_default();
    let new = NewConnection {
        slug: new.slug.unwrap_or_default(),
        alias: new.alias,
        provider: new.provider_key,
        integration: new.integration_key,
        name: new.name,
        description: new.description,
        tags: new.tags,
        meta: new.meta.map(Value::Object),
        auth_scheme: data.auth_scheme,
        credentials: data.credentials.unwrap_or_default(),
        scopes: data.scopes,
        link,
        ..NewConnection::default()
    };
    begun(app, app.connections.create(scope, new).await?).await
}

/// How a person is led, as far as the project allows it.
pub(crate) async fn link_options(app: &App, scope: Scope, body: ConnectLinkBody) -> ApiResult<LinkOptions> {
    let language = body.language.as_deref().map(Language::of_code).transpose();
    let language = language.map_err(|error| ApiError::unprocessable(format!("`language`: {error}")))?;
    let return_to = match body.return_to.as_deref() {
        None => None,
        Some(address) => Some(app.accounts.connect_links(scope.project).await?.return_address(address)?),
    };
    Ok(LinkOptions { language, return_to, named: None })
}

pub(crate) async fn fetch(app: &App, scope: Scope, id: ConnectionId) -> ApiResult<Json<ConnectionAnswer>> {
    let connection = app.connections.seen(scope, id).await?;
    Ok(Json(ConnectionAnswer { count: 1, connection: named(app, connection).await? }))
}

pub(crate) async fn edit(app: &App, scope: Scope, id: ConnectionId, body: EditConnection) -> ApiResult<Json<ConnectionAnswer>> {
    let EditConnectionBody { name, description } = body.connection;
    let connection = app.connections.edit(scope, id, ConnectionEdit { name, description }).await?;
    Ok(Json(ConnectionAnswer { count: 1, connection: named(app, connection).await? }))
}

pub(crate) async fn consumers(app: &App, scope: Scope, id: ConnectionId) -> ApiResult<Json<ConsumersAnswer>> {
    let users = app.connections.users(scope, id).await?;
    let consumers: Vec<ConsumerBody> = users.into_iter().map(ConsumerBody::from).collect();
    Ok(Json(ConsumersAnswer { count: consumers.len(), consumers }))
}

pub(crate) async fn delete(app: &App, scope: Scope, id: ConnectionId) -> ApiResult<StatusCode> {
    app.connections.delete(scope, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn refresh(app: &App, scope: Scope, id: ConnectionId, options: RefreshConnection) -> ApiResult<Json<ConnectionAnswer>> {
    let RefreshConnection { force, language, return_to } = options;
    let link = link_options(app, scope, ConnectLinkBody { language, return_to }).await?;
    let refreshed = app.connections.refresh_by(scope, id, force.unwrap_or(false), link).await.map_err(|error| match error {
        connections::ConnectionError::Inactive(_) => {
            ApiError::conflict(Code::ConnectionRevoked, error.to_string(), json!({"connection_id": id}))
        }
        other => other.into(),
    })?;
    begun(app, refreshed).await
}

pub(crate) async fn revoke(app: &App, scope: Scope, id: ConnectionId) -> ApiResult<Json<ConnectionAnswer>> {
    let connection = app.connections.revoke(scope, id, "The connection was revoked.").await?;
    Ok(Json(ConnectionAnswer { count: 1, connection: named(app, connection).await? }))
}

pub(crate) async fn usage(app: &App, scope: Scope, id: ConnectionId) -> ApiResult<Json<UsageAnswer>> {
    let usage = app.connections.usage(scope, id).await?;
    Ok(Json(UsageAnswer { count: 1, usage: usage.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect() }))
}

/// The routes of one mount: the same handlers under another prefix, permission and operation id.
macro_rules! connection_routes {
    ($tag:literal, $root:literal, $query:literal, $one:literal, $refresh:literal, $revoke:literal, $usage:literal, $consumers:literal,
     $view_scope:literal, $edit_scope:literal, $view:ty, $edit:ty,
     [$id_query:literal, $id_create:literal, $id_fetch:literal, $id_delete:literal, $id_refresh:literal, $id_revoke:literal, $id_usage:literal,
      $id_edit:literal, $id_consumers:literal]) => {
        use crate::edge::Json;
        use axum::extract::State;
        use http::StatusCode;
        use kernel::ConnectionId;

        use crate::App;
        use crate::connections::{
            self as shared, ConnectionAnswer, ConnectionsAnswer, ConsumersAnswer, CreateConnection, EditConnection, QueryConnections,
            RefreshConnection, UsageAnswer,
        };
        use crate::edge::{ApiResult, PathOf, Payload, QueryOf, Scoped};

        /// List active connections, newest first
        #[document::path(post, path = $query, operation_id = $id_query, tag = $tag, security(("key" = [$view_scope])),
            params(QueryConnections), responses((status = 200, body = ConnectionsAnswer)))]
        pub(crate) async fn query(Scoped(scope, _): Scoped<$view>, State(app): State<App>, QueryOf(filter): QueryOf<QueryConnections>) -> ApiResult<Json<ConnectionsAnswer>> {
            shared::query(&app, scope, filter).await
        }

        /// Connect an account
        #[document::path(post, path = $root, operation_id = $id_create, tag = $tag, security(("key" = [$edit_scope])),
            request_body = CreateConnection, responses((status = 200, body = ConnectionAnswer), (status = 409, description = "The slug is taken, or the project has as many connections as it may")))]
        pub(crate) async fn create(Scoped(scope, _): Scoped<$edit>, State(app): State<App>, Payload(body): Payload<CreateConnection>) -> ApiResult<Json<ConnectionAnswer>> {
            shared::create(&app, scope, body).await
        }

        /// Read a connection
        #[document::path(get, path = $one, operation_id = $id_fetch, tag = $tag, security(("key" = [$view_scope])),
            params(("connection_id" = Uuid, Path)), responses((status = 200, body = ConnectionAnswer), (status = 404, description = "No such connection")))]
        pub(crate) async fn fetch(Scoped(scope, _): Scoped<$view>, State(app): State<App>, PathOf(id): PathOf<ConnectionId>) -> ApiResult<Json<ConnectionAnswer>> {
            shared::fetch(&app, scope, id).await
        }

        /// Delete a connection
        #[document::path(delete, path = $one, operation_id = $id_delete, tag = $tag, security(("key" = [$edit_scope])),
            params(("connection_id" = Uuid, Path)), responses((status = 204), (status = 404, description = "No such connection")))]
        pub(crate) async fn delete(Scoped(scope, _): Scoped<$edit>, State(app): State<App>, PathOf(id): PathOf<ConnectionId>) -> ApiResult<StatusCode> {
            shared::delete(&app, scope, id).await
        }

        /// Renew a connection's credential, or start over where a person is needed
        #[document::path(post, path = $refresh, operation_id = $id_refresh, tag = $tag, security(("key" = [$edit_scope])),
            params(("connection_id" = Uuid, Path), RefreshConnection), responses((status = 200, body = ConnectionAnswer), (status = 404, description = "No such connection")))]
        pub(crate) async fn refresh(
            Scoped(scope, _): Scoped<$edit>,
            State(app): State<App>,
            PathOf(id): PathOf<ConnectionId>,
            QueryOf(options): QueryOf<RefreshConnection>,
        ) -> ApiResult<Json<ConnectionAnswer>> {
            shared::refresh(&app, scope, id, options).await
        }

        /// Make a connection unusable
        #[document::path(post, path = $revoke, operation_id = $id_revoke, tag = $tag, security(("key" = [$edit_scope])),
            params(("connection_id" = Uuid, Path)), responses((status = 200, body = ConnectionAnswer), (status = 404, description = "No such connection")))]
        pub(crate) async fn revoke(Scoped(scope, _): Scoped<$edit>, State(app): State<App>, PathOf(id): PathOf<ConnectionId>) -> ApiResult<Json<ConnectionAnswer>> {
            shared::revoke(&app, scope, id).await
        }

        /// See who uses a connection
        #[document::path(get, path = $usage, operation_id = $id_usage, tag = $tag, security(("key" = [$view_scope])),
            params(("connection_id" = Uuid, Path)), responses((status = 200, body = UsageAnswer), (status = 404, description = "No such connection")))]
        pub(crate) async fn usage(Scoped(scope, _): Scoped<$view>, State(app): State<App>, PathOf(id): PathOf<ConnectionId>) -> ApiResult<Json<UsageAnswer>> {
            shared::usage(&app, scope, id).await
        }

        /// Change what a connection is called
        ///
        /// What is left out stays, and null clears. The slug, which refs name it by, cannot be changed.
        #[document::path(patch, path = $one, operation_id = $id_edit, tag = $tag, security(("key" = [$edit_scope])),
            params(("connection_id" = Uuid, Path)), request_body = EditConnection,
            responses((status = 200, body = ConnectionAnswer), (status = 404, description = "No such connection")))]
        pub(crate) async fn edit(
            Scoped(scope, _): Scoped<$edit>,
            State(app): State<App>,
            PathOf(id): PathOf<ConnectionId>,
            Payload(body): Payload<EditConnection>,
        ) -> ApiResult<Json<ConnectionAnswer>> {
            shared::edit(&app, scope, id, body).await
        }

        /// List who uses a connection
        ///
        /// Agents that its app is assigned to, subscriptions, and workflows whose newest revision has a step that calls through it.
        #[document::path(get, path = $consumers, operation_id = $id_consumers, tag = $tag, security(("key" = [$view_scope])),
            params(("connection_id" = Uuid, Path)), responses((status = 200, body = ConsumersAnswer), (status = 404, description = "No such connection")))]
        pub(crate) async fn consumers(Scoped(scope, _): Scoped<$view>, State(app): State<App>, PathOf(id): PathOf<ConnectionId>) -> ApiResult<Json<ConsumersAnswer>> {
            shared::consumers(&app, scope, id).await
        }
    };
}

pub(crate) use connection_routes;
