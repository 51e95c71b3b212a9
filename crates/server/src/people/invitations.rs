//! `/people/invitations`: links that make somebody a member.

use ::people::Invitation;
use axum::extract::State;
use document::ToSchema;
use kernel::{InvitationId, Role, Timestamp};
use serde::{Deserialize, Serialize};
use store::PageSize;
use uuid::Uuid;

use super::members::ListPage;
use crate::App;
use crate::addresses;
use crate::edge::auth::{EditMembers, ViewMembers};
use crate::edge::{ApiResult, Json, PathOf, Payload, QueryOf, Scoped};

/// An invitation.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvitationBody {
    pub id: Uuid,
    /// When set, only the person with this address can accept it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// `viewer`, `annotator`, `editor` or `owner`.
    pub role: String,
    /// `open`, `accepted`, `revoked` or `expired`.
    pub state: String,
    /// The user or key that invited; nothing for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invited_by_id: Option<Uuid>,
    pub created_at: String,
    pub expires_at: String,
}

impl InvitationBody {
    fn new(invitation: Invitation, now: Timestamp) -> Self {
        Self {
            id: invitation.id.uuid(),
            role: invitation.role.name().to_owned(),
            state: invitation.state(now).to_owned(),
            email: invitation.email,
            invited_by_id: invitation.invited_by,
            created_at: invitation.created_at.to_string(),
            expires_at: invitation.expires_at.to_string(),
        }
    }
}

/// One invitation in an answer. `link` is there once, when it is made.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvitationAnswer {
    pub count: usize,
    pub invitation: InvitationBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// A page of invitations, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvitationsAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub invitations: Vec<InvitationBody>,
}

/// Whom to invite.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvitation {
    pub invitation: NewInvitationBody,
}

/// The role, and for whom.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvitationBody {
    /// When given, only the person with this address can accept it; else whoever has the link.
    pub email: Option<String>,
    #[schema(value_type = crate::shapes::RoleWord)]
    pub role: Role,
}

/// Invite somebody
///
/// Answers with a link that is good once and for a week; hand it to the person. Nobody gives a role that has more permissions than they have.
#[document::path(post, path = "/people/invitations", operation_id = "create_invitation", tag = "People", security(("key" = ["edit_members"])),
    request_body = NewInvitation, responses((status = 200, body = InvitationAnswer)))]
pub(crate) async fn create(
    Scoped(scope, _): Scoped<EditMembers>,
    State(app): State<App>,
    Payload(new): Payload<NewInvitation>,
) -> ApiResult<Json<InvitationAnswer>> {
    let (invitation, token) = app.people.invite(&scope, new.invitation.email.as_deref(), new.invitation.role).await?;
    let link = Some(addresses::invitation(app.options.public_url(), token.expose()));
    Ok(Json(InvitationAnswer { count: 1, invitation: InvitationBody::new(invitation, app.clock.now()), link }))
}

/// List invitations
#[document::path(get, path = "/people/invitations", operation_id = "list_invitations", tag = "People", security(("key" = ["view_members"])), params(ListPage),
    responses((status = 200, body = InvitationsAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewMembers>,
    State(app): State<App>,
    QueryOf(page): QueryOf<ListPage>,
) -> ApiResult<Json<InvitationsAnswer>> {
    let page = app.people.invitations(scope.project, page.cursor.map(InvitationId::from), PageSize::asked(page.limit)).await?;
    let (cursor, now) = (page.cursor(|invitation| invitation.id.uuid()), app.clock.now());
    let invitations: Vec<InvitationBody> = page.rows.into_iter().map(|invitation| InvitationBody::new(invitation, now)).collect();
    Ok(Json(InvitationsAnswer { count: invitations.len(), cursor, invitations }))
}

/// Take an invitation back
///
/// One that was accepted stays so; remove the member instead.
#[document::path(delete, path = "/people/invitations/{invitation_id}", operation_id = "revoke_invitation", tag = "People", security(("key" = ["edit_members"])),
    params(("invitation_id" = Uuid, Path)), responses((status = 200, body = InvitationAnswer)))]
pub(crate) async fn revoke(
    Scoped(scope, _): Scoped<EditMembers>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<InvitationAnswer>> {
    let invitation = app.people.revoke_invitation(scope.project, InvitationId::from(id)).await?;
    Ok(Json(InvitationAnswer { count: 1, invitation: InvitationBody::new(invitation, app.clock.now()), link: None }))
}
