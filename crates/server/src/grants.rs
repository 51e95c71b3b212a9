//! `/grants`: what people let clients do in a project, and what somebody let clients do anywhere.

use ::grants::{EndedWhy, Grant, GrantError, GrantFilter, Granter};
use accounts::Holder;
use axum::extract::State;
use document::{IntoParams, ToSchema};
use kernel::{GrantId, Id, KeyId, Permission, Timestamp};
use people::{SignedIn, Via};
use serde::{Deserialize, Serialize};
use store::PageSize;
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditMembers, ViewMembers};
use crate::edge::{ApiResult, Json, NoFilters, PathOf, QueryOf, Scoped, Signed};
use crate::oauth::resource_url;

/// What somebody let a client do.
#[derive(Debug, Serialize, ToSchema)]
pub struct GrantBody {
    pub id: Uuid,
    pub project_id: Uuid,
    pub client_id: String,
    pub client_name: String,
    /// The person who let it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// The key that somebody signed in with who let it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// The address that it opens.
    pub resource: String,
    pub permissions: Vec<&'static str>,
    /// `active`, `expired`, `revoked`, `refresh_reused` or `code_reused` (somebody else had its tokens too), or `granter_gone`.
    pub state: String,
    pub created_at: String,
    pub expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

impl GrantBody {
    fn new(app: &App, grant: Grant, holder: Option<&Holder>) -> Self {
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
        Self {
            id: grant.id.uuid(),
            project_id: grant.project.uuid(),
            user_id: grant.granter.user().map(Id::uuid),
            user_name: holder.and_then(|holder| holder.person.clone()),
            key_id: grant.granter.key().map(Id::uuid),
            key_name: holder.and_then(|holder| holder.key.clone()),
            resource: resource_url(app, &grant.surface),
            permissions: grant.permissions.iter().map(Permission::name).collect(),
            state: grant.state(app.clock.now()).to_owned(),
            created_at: grant.created_at.to_string(),
            expires_at: grant.expires_at.to_string(),
            last_used_at: time(grant.last_used_at),
            ended_at: time(grant.ended_at),
            client_id: grant.client_id,
            client_name: grant.client_name,
        }
    }
}

/// A grant in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct GrantAnswer {
    pub grant: GrantBody,
}

/// A page of grants, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct GrantsAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub grants: Vec<GrantBody>,
}

/// Which grants to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListGrants {
    /// Only those that are in force.
    pub active: Option<bool>,
    pub user_id: Option<Uuid>,
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    pub cursor: Option<Uuid>,
}

/// List what people let clients do in the project, newest first
#[document::path(get, path = "/grants", operation_id = "list_grants", tag = "Grants", security(("key" = ["view_members"])), params(ListGrants),
    responses((status = 200, body = GrantsAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewMembers>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListGrants>,
) -> ApiResult<Json<GrantsAnswer>> {
    let filter = GrantFilter {
        granter: list.user_id.map(|user| Granter::User(user.into())),
        is_active: list.active.unwrap_or_default(),
        cursor: list.cursor.map(GrantId::from),
        size: PageSize::asked(list.limit),
    };
    let page = app.grants.list(scope.project, filter).await?;
    let cursor = page.cursor(|grant| grant.id.uuid());
    let holders = app.accounts.holders(scope.project).await?;
    let body = |grant: Grant| {
        let holder = holders.get(&KeyId::from(grant.id.uuid()));
        GrantBody::new(&app, grant, holder)
    };
    let grants: Vec<GrantBody> = page.rows.into_iter().map(body).collect();
    Ok(Json(GrantsAnswer { count: grants.len(), cursor, grants }))
}

/// Fetch a grant
#[document::path(get, path = "/grants/{grant_id}", operation_id = "fetch_grant", tag = "Grants", security(("key" = ["view_members"])), params(("grant_id" = Uuid, Path)),
    responses((status = 200, body = GrantAnswer)))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewMembers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
    _: QueryOf<NoFilters>,
) -> ApiResult<Json<GrantAnswer>> {
    let grant = app.grants.read(scope.project, id.into()).await?;
    let holders = app.accounts.holders(scope.project).await?;
    Ok(Json(GrantAnswer { grant: GrantBody::new(&app, grant, holders.get(&KeyId::from(id))) }))
}

/// Revoke a grant with all its tokens
///
/// Revoking it again changes nothing. People revoke their own at `/people/grants`.
#[document::path(delete, path = "/grants/{grant_id}", operation_id = "revoke_grant", tag = "Grants", security(("key" = ["edit_members"])), params(("grant_id" = Uuid, Path)),
    responses((status = 200, body = GrantAnswer)))]
pub(crate) async fn revoke(
    Scoped(scope, _): Scoped<EditMembers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
    _: QueryOf<NoFilters>,
) -> ApiResult<Json<GrantAnswer>> {
    let grant = app.grants.end(scope.project, id.into(), EndedWhy::Revoked).await?;
    let holders = app.accounts.holders(scope.project).await?;
    Ok(Json(GrantAnswer { grant: GrantBody::new(&app, grant, holders.get(&KeyId::from(id))) }))
}

/// Whose grants somebody who is signed in sees as their own. The operator lets no client in.
fn granter(signed_in: &SignedIn) -> Option<Granter> {
    match (signed_in.via, signed_in.person) {
        (Via::Person, Some(user)) => Some(Granter::User(user)),
        (Via::Key(key), _) => Some(Granter::Key(key)),
        _ => None,
    }
}

/// What somebody who is signed in let clients do.
pub(crate) async fn own_grants(app: &App, signed_in: &SignedIn) -> ApiResult<Vec<GrantBody>> {
    let Some(granter) = granter(signed_in) else { return Ok(Vec::new()) };
    let found = app.grants.given_by(granter).await?;
    Ok(found.into_iter().map(|grant| GrantBody::new(app, grant, None)).collect())
}

/// Ends a grant of their own, for the page; what to say about it.
pub(crate) async fn end_own_grant(app: &App, signed_in: &SignedIn, id: &str) -> ApiResult<&'static str> {
    let (Some(granter), Ok(id)) = (granter(signed_in), id.parse::<GrantId>()) else { return Ok("There is no such client.") };
    match app.grants.end_own(granter, id).await {
        Ok(_) => Ok("The client is turned away."),
        Err(GrantError::NotFound) => Ok("There is no such client."),
        Err(error) => Err(error.into()),
    }
}

/// List what you let clients do, in all your projects
#[document::path(get, path = "/people/grants", operation_id = "list_own_grants", tag = "People", security(("session" = [])),
    responses((status = 200, body = GrantsAnswer)))]
pub(crate) async fn own(Signed(signed_in): Signed, State(app): State<App>, _: QueryOf<NoFilters>) -> ApiResult<Json<GrantsAnswer>> {
    let grants = own_grants(&app, &signed_in).await?;
    Ok(Json(GrantsAnswer { count: grants.len(), cursor: None, grants }))
}

/// Revoke a grant of your own
#[document::path(delete, path = "/people/grants/{grant_id}", operation_id = "revoke_own_grant", tag = "People", security(("session" = [])), params(("grant_id" = Uuid, Path)),
    responses((status = 200, body = GrantAnswer)))]
pub(crate) async fn revoke_own(
    Signed(signed_in): Signed,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
    _: QueryOf<NoFilters>,
) -> ApiResult<Json<GrantAnswer>> {
    let granter = granter(&signed_in).ok_or(GrantError::NotFound)?;
    let grant = app.grants.end_own(granter, id.into()).await?;
    Ok(Json(GrantAnswer { grant: GrantBody::new(&app, grant, None) }))
}
