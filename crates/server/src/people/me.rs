//! `GET /people/me`

use ::people::Membership;
use axum::extract::State;
use document::ToSchema;
use kernel::Id;
use serde::Serialize;
use uuid::Uuid;

use crate::App;
use crate::edge::session::{csrf_token, via_name};
use crate::edge::{ApiResult, Json, NoFilters, QueryOf, Signed};

/// A project that somebody who is signed in can act in.
#[derive(Debug, Serialize, ToSchema)]
pub struct MembershipBody {
    pub project_id: Uuid,
    pub project_slug: String,
    pub project_name: String,
    /// `viewer`, `annotator`, `editor` or `owner`. A pasted key has the highest role whose permissions it has all of.
    pub role: String,
}

impl From<Membership> for MembershipBody {
    fn from(membership: Membership) -> Self {
        Self {
            project_id: membership.project.uuid(),
            project_slug: membership.project_slug,
            project_name: membership.project_name,
            role: membership.role.name().to_owned(),
        }
    }
}

/// Who is signed in.
#[derive(Debug, Serialize, ToSchema)]
pub struct MeBody {
    pub session_id: Uuid,
    /// `person`, `key` (a project key was typed in) or `operator`.
    pub via: String,
    /// The person's name or address, the key's name, or `operator`.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    pub projects: Vec<MembershipBody>,
    /// For `X-Toolyard-Csrf`, which every request of this session that changes something carries.
    pub csrf_token: String,
}

/// Who is signed in in this browser
///
/// A script of a page of this server learns here which projects it can act in, and the token for what changes something. It names a project in
/// `X-Toolyard-Project`, by id or slug.
#[document::path(get, path = "/people/me", operation_id = "fetch_me", tag = "People", security(("session" = [])),
    responses((status = 200, body = MeBody)))]
pub(crate) async fn me(Signed(signed_in): Signed, State(app): State<App>, _: QueryOf<NoFilters>) -> ApiResult<Json<MeBody>> {
    let email = match signed_in.person {
        Some(user) => Some(app.accounts.user(user).await?.email),
        None => None,
    };
    let projects = app.people.projects(&signed_in).await?;
    Ok(Json(MeBody {
        session_id: signed_in.session.uuid(),
        via: via_name(signed_in.via).to_owned(),
        user_id: signed_in.person.map(Id::uuid),
        email,
        projects: projects.into_iter().map(MembershipBody::from).collect(),
        csrf_token: csrf_token(&app, &signed_in),
        name: signed_in.name,
    }))
}
