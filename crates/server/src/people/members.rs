//! `/people/members`: who belongs to a project.

use ::people::{Member, PeopleError};
use axum::extract::State;
use document::{IntoParams, ToSchema};
use http::StatusCode;
use kernel::{MemberId, Role, Scope};
use serde::{Deserialize, Serialize};
use store::PageSize;
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditMembers, ViewMembers};
use crate::edge::{ApiResult, Json, PathOf, Payload, QueryOf, Scoped};

/// A member of the project.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemberBody {
    pub id: Uuid,
    pub user_id: Uuid,
    pub email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `viewer`, `annotator`, `editor` or `owner`.
    pub role: String,
    /// How they became one: `account` (the project was made for them), `invited`, or `provider:NAME`, whose rules decide at each sign-in.
    pub source: String,
    /// A disabled person cannot sign in.
    pub is_disabled: bool,
    pub created_at: String,
}

impl From<Member> for MemberBody {
    fn from(member: Member) -> Self {
        Self {
            id: member.id.uuid(),
            user_id: member.user.uuid(),
            email: member.email,
            name: member.name,
            role: member.role.name().to_owned(),
            source: member.source.to_string(),
            is_disabled: member.is_disabled,
            created_at: member.created_at.to_string(),
        }
    }
}

/// One member in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemberAnswer {
    pub count: usize,
    pub member: MemberBody,
}

/// A page of members, the first first.
#[derive(Debug, Serialize, ToSchema)]
pub struct MembersAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub members: Vec<MemberBody>,
}

/// Which part of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListPage {
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    /// The `cursor` of the page before.
    pub cursor: Option<Uuid>,
}

/// What shall be changed of a member.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditMember {
    pub member: EditMemberBody,
}

/// The new role.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditMemberBody {
    #[schema(value_type = crate::shapes::RoleWord)]
    pub role: Role,
}

/// List members
#[document::path(get, path = "/people/members", operation_id = "list_members", tag = "People", security(("key" = ["view_members"])), params(ListPage),
    responses((status = 200, body = MembersAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewMembers>,
    State(app): State<App>,
    QueryOf(page): QueryOf<ListPage>,
) -> ApiResult<Json<MembersAnswer>> {
    let page = app.accounts.members(scope.project, page.cursor.map(MemberId::from), PageSize::asked(page.limit)).await?;
    let cursor = page.cursor(|member| member.id.uuid());
    let members: Vec<MemberBody> = page.rows.into_iter().map(MemberBody::from).collect();
    Ok(Json(MembersAnswer { count: members.len(), cursor, members }))
}

/// Give a member another role
///
/// Nobody gives a role that has more permissions than they have, and a project keeps an owner.
#[document::path(put, path = "/people/members/{member_id}", operation_id = "edit_member", tag = "People", security(("key" = ["edit_members"])),
    params(("member_id" = Uuid, Path)), request_body = EditMember, responses((status = 200, body = MemberAnswer)))]
pub(crate) async fn edit(
    Scoped(scope, _): Scoped<EditMembers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
    Payload(edit): Payload<EditMember>,
) -> ApiResult<Json<MemberAnswer>> {
    let (id, role) = (MemberId::from(id), edit.member.role);
    covers(&scope, role)?;
    covers(&scope, app.accounts.member(scope.project, id).await?.role)?;
    let member = app.accounts.set_role(scope.project, id, role).await?;
    Ok(Json(MemberAnswer { count: 1, member: member.into() }))
}

/// Remove a member
///
/// What they are signed in with stops working in this project at once.
#[document::path(delete, path = "/people/members/{member_id}", operation_id = "remove_member", tag = "People", security(("key" = ["edit_members"])),
    params(("member_id" = Uuid, Path)), responses((status = 204, description = "Removed")))]
pub(crate) async fn remove(
    Scoped(scope, _): Scoped<EditMembers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<StatusCode> {
    let id = MemberId::from(id);
    covers(&scope, app.accounts.member(scope.project, id).await?.role)?;
    app.accounts.remove_member(scope.project, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A key that was narrowed can neither give nor take what it does not have.
fn covers(scope: &Scope, role: Role) -> Result<(), PeopleError> {
    if scope.permissions.covers(role.permissions()) { Ok(()) } else { Err(PeopleError::RoleTooHigh { role }) }
}
