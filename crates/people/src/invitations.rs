//! Invitations: a link that makes whoever opens it a member, once.

use std::time::Duration;

use accounts::{Source, User, insert_user, normal_email, put_member};
use kernel::key::{KeyHash, PlainKey};
use kernel::{InvitationId, ProjectId, Role, Scope, Timestamp, UserId};
use secrecy::SecretString;
use store::{Page, PageSize, Row, StoreError, Tx, args, page_sql};
use uuid::Uuid;

use crate::sessions::Holder;
use crate::{OpenedSession, People, PeopleError, SignedIn, Visitor};

/// How long an invitation can be used.
const LIFE: Duration = Duration::from_hours(7 * 24);

macro_rules! columns {
    () => {
        "project_id, id, email, role, invited_by_id, created_at, expires_at, accepted_at, revoked_at"
    };
}

/// An invitation as it is listed; its link is shown once, when it is made.
#[derive(Clone, Debug)]
pub struct Invitation {
    pub id: InvitationId,
    pub project: ProjectId,
    /// When set, only the person with this address can use it.
    pub email: Option<String>,
    pub role: Role,
    /// The user or key that invited; nothing for the operator.
    pub invited_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub accepted_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// What somebody is invited to.
#[derive(Clone, Debug)]
pub struct Offer {
    pub invitation: Invitation,
    pub project_name: String,
}

/// Somebody who has no account yet.
#[derive(Debug)]
pub struct NewPerson {
    pub email: String,
    pub name: Option<String>,
    pub password: SecretString,
}

impl Invitation {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let role: String = row.get("role")?;
        Ok(Self {
            id: row.get("id")?,
            project: row.get("project_id")?,
            email: row.get("email")?,
            role: role.parse().map_err(|_| StoreError::Column("role".to_owned()))?,
            invited_by: row.get("invited_by_id")?,
            created_at: row.get("created_at")?,
            expires_at: row.get("expires_at")?,
            accepted_at: row.get("accepted_at")?,
            revoked_at: row.get("revoked_at")?,
        })
    }

    fn is_open(&self, now: Timestamp) -> bool {
        self.accepted_at.is_none() && self.revoked_at.is_none() && now < self.expires_at
    }

    /// `open`, `accepted`, `revoked` or `expired`.
    pub fn state(&self, now: Timestamp) -> &'static str {
        match (self.accepted_at, self.revoked_at) {
            (Some(_), _) => "accepted",
            (None, Some(_)) => "revoked",
            (None, None) if self.is_open(now) => "open",
            (None, None) => "expired",
        }
    }
}

impl People {
    /// Invites somebody in the name of a caller, who can give nothing that they do not have.
    #[kernel::boxed]
    pub async fn invite(&self, scope: &Scope, email: Option<&str>, role: Role) -> Result<(Invitation, PlainKey), PeopleError> {
        if !scope.permissions.covers(role.permissions()) {
            return Err(PeopleError::RoleTooHigh { role });
        }
        self.invite_to(scope.project, email, role, Some(scope.author())).await
    }

    /// Invites somebody in the name of the operator, or of somebody whose permissions were checked.
    #[kernel::boxed]
    pub async fn invite_to(
        &self,
        project: ProjectId,
        email: Option<&str>,
        role: Role,
        invited_by: Option<Uuid>,
    ) -> Result<(Invitation, PlainKey), PeopleError> {
        let email = email.map(normal_email).transpose()?;
        let project = self.0.accounts.find_project(&project.to_string()).await?.id;
        let (token, now) = (PlainKey::generate("tyi"), self.0.clock.now());
        let invitation = Invitation {
            id: InvitationId::new(),
            project,
            email,
            role,
            invited_by,
            created_at: now,
            expires_at: now.plus(LIFE),
            accepted_at: None,
            revoked_at: None,
        };
        let sql = "insert into invitations (project_id, id, email, role, hash, invited_by_id, created_at, expires_at) \
                   values ($1, $2, $3, $4, $5, $6, $7, $8)";
        let (email, hash) = (invitation.email.as_deref(), token.hash());
        let bound = args![project, invitation.id, email, role.name(), hash.as_bytes(), invited_by, now, invitation.expires_at];
        self.0.db.execute(sql, bound).await?;
        Ok((invitation, token))
    }

    /// The invitations of a project, the newest first.
    #[kernel::boxed]
    pub async fn invitations(
        &self,
        project: ProjectId,
        before: Option<InvitationId>,
        size: PageSize,
    ) -> Result<Page<Invitation>, PeopleError> {
        let sql = page_sql!(
            select columns!(),
            bytes "0",
            from "invitations",
            where "project_id = $1 and ($2 is null or id < $2)",
            by id "desc",
            limit "$3"
        );
        let rows = self.0.db.all(sql, args![project, before, size.rows()]).await?;
        Ok(size.read(&rows, Invitation::read)?)
    }

    /// Takes an invitation back. One that was accepted stays so; its member can be removed.
    #[kernel::boxed]
    pub async fn revoke_invitation(&self, project: ProjectId, id: InvitationId) -> Result<Invitation, PeopleError> {
        let sql = concat!(
            "update invitations set revoked_at = case when accepted_at is null then coalesce(revoked_at, $3) end \
             where project_id = $1 and id = $2 returning ",
            columns!()
        );
        let row = self.0.db.returning(sql, args![project, id, self.0.clock.now()]).await?.ok_or(PeopleError::InvitationNotFound)?;
        Ok(Invitation::read(&row)?)
    }

    /// What a link invites to. Looking does not use it up.
    #[kernel::boxed]
    pub async fn offer(&self, token: &str) -> Result<Offer, PeopleError> {
        let sql = concat!("select ", columns!(), " from invitations where hash = $1");
        let row = self.0.db.optional(sql, args![KeyHash::of(token).as_bytes()]).await?.ok_or(PeopleError::LinkInvalid)?;
        let invitation = Invitation::read(&row)?;
        if !invitation.is_open(self.0.clock.now()) {
            return Err(PeopleError::LinkInvalid);
        }
        let project_name = self.0.accounts.find_project(&invitation.project.to_string()).await?.name;
        Ok(Offer { invitation, project_name })
    }

    /// Makes whoever is signed in a member.
    #[kernel::boxed]
    pub async fn accept(&self, token: &str, signed_in: &SignedIn) -> Result<(), PeopleError> {
        let user = signed_in.person.ok_or(PeopleError::Refused)?;
        let user = self.0.accounts.user(user).await?;
        let mut tx = self.0.db.begin().await?;
        self.use_up(&mut tx, token, &user).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes an account and a member of somebody new, and signs them in: all of it or nothing.
    #[kernel::boxed]
    pub async fn accept_as_new(&self, token: &str, new: NewPerson, visitor: &Visitor) -> Result<OpenedSession, PeopleError> {
        self.count_address(visitor).await?;
        let offer = self.offer(token).await?;
        let email = offer.invitation.email.unwrap_or(new.email);
        let hash = self.hash_new(&new.password, &normal_email(&email)?).await?;
        let now = self.0.clock.now();
        let mut tx = self.0.db.begin().await?;
        let user = match insert_user(&mut tx, &email, new.name.filter(|name| !name.trim().is_empty()), now).await {
            Err(accounts::AccountError::EmailTaken(_)) => return Err(PeopleError::AlreadyHere),
            other => other?,
        };
        let sql = "update users set password = $2, password_changed_at = $3 where id = $1";
        tx.execute(sql, args![user.id, hash, now]).await?;
        self.use_up(&mut tx, token, &user).await?;
        tx.commit().await?;
        self.open_session(Holder::Person(user.id), "invitation", visitor).await
    }

    /// Uses an invitation up with one conditional update, so that it makes one member however often it is used at once.
    async fn use_up(&self, tx: &mut Tx, token: &str, user: &User) -> Result<(), PeopleError> {
        let now = self.0.clock.now();
        let sql = concat!(
            "update invitations set accepted_at = $2, accepted_by_id = $3 \
             where hash = $1 and accepted_at is null and revoked_at is null and expires_at > $2 returning ",
            columns!()
        );
        let row = tx.optional(sql, args![KeyHash::of(token).as_bytes(), now, user.id]).await?.ok_or(PeopleError::LinkInvalid)?;
        let invitation = Invitation::read(&row)?;
        if invitation.email.as_ref().is_some_and(|email| *email != user.email) {
            return Err(PeopleError::InvitationForAnother);
        }
        if held_role(tx, invitation.project, user.id).await?.is_none_or(|held| held < invitation.role) {
            put_member(tx, invitation.project, user.id, invitation.role, &Source::Invited, now).await?;
        }
        Ok(())
    }
}

/// An invitation takes nothing away from somebody who has more already.
async fn held_role(tx: &mut Tx, project: ProjectId, user: UserId) -> Result<Option<Role>, PeopleError> {
    let sql = "select role from members where project_id = $1 and user_id = $2 and removed_at is null";
    let row = tx.optional(sql, args![project, user]).await?;
    Ok(row.map(|row| row.get::<String>("role")).transpose()?.and_then(|role| role.parse().ok()))
}
