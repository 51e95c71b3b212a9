//! Members: which people belong to a project, in which role, and what they may do there at this moment.

use std::fmt;

use kernel::{AccountOwner, KeyId, MemberId, ProjectId, Role, Scope, Timestamp, UserId};
use store::{Arg, Page, PageSize, Row, StoreError, Tx, args, page_sql};

use crate::delegates::end_former_grants;
use crate::{AccountError, Accounts};

/// How somebody became a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// With the account that the project was made for.
    Account,
    /// By an invitation or by the operator.
    Invited,
    /// By the rules of an identity provider, which also take the membership away again.
    Provider(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account => f.write_str("account"),
            Self::Invited => f.write_str("invited"),
            Self::Provider(name) => write!(f, "provider:{name}"),
        }
    }
}

impl From<&str> for Source {
    fn from(text: &str) -> Self {
        match text.strip_prefix("provider:") {
            Some(name) => Self::Provider(name.to_owned()),
            None if text == "account" => Self::Account,
            None => Self::Invited,
        }
    }
}

/// One member of a project.
#[derive(Clone, Debug)]
pub struct Member {
    pub id: MemberId,
    pub project: ProjectId,
    pub user: UserId,
    pub email: String,
    pub name: Option<String>,
    pub is_disabled: bool,
    pub role: Role,
    pub source: Source,
    pub created_at: Timestamp,
}

/// A project that somebody belongs to.
#[derive(Clone, Debug)]
pub struct Membership {
    pub project: ProjectId,
    pub project_slug: String,
    pub project_name: String,
    pub role: Role,
    pub source: Source,
}

macro_rules! columns {
    () => {
        "project_id, id, user_id, role, source, members.created_at, \
         (select email from users where users.id = members.user_id) as email, \
         (select name from users where users.id = members.user_id) as name, \
         (select disabled_at from users where users.id = members.user_id) as disabled_at"
    };
}

fn role(row: &Row) -> Result<Role, StoreError> {
    row.get::<String>("role")?.parse().map_err(|_| StoreError::Column("role".to_owned()))
}

impl Member {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            project: row.get("project_id")?,
            user: row.get("user_id")?,
            email: row.get("email")?,
            name: row.get("name")?,
            is_disabled: row.get::<Option<Timestamp>>("disabled_at")?.is_some(),
            role: role(row)?,
            source: row.get::<String>("source")?.as_str().into(),
            created_at: row.get("created_at")?,
        })
    }
}

impl Accounts {
    /// What a person may do in a project at this moment, if they belong to it and are not disabled.
    #[kernel::boxed]
    pub async fn member_scope(&self, project: ProjectId, user: UserId) -> Result<Option<Scope>, StoreError> {
        let sql = "select m.id, m.role from members m join users u on u.id = m.user_id \
                   where m.project_id = $1 and m.user_id = $2 and m.removed_at is null and u.disabled_at is null";
        let Some(row) = self.db.optional(sql, args![project, user]).await? else { return Ok(None) };
        let member: MemberId = row.get("id")?;
        let permissions = role(&row)?.permissions();
        Ok(Some(Scope {
            project,
            key: KeyId::from(member.uuid()),
            user: Some(user),
            permissions,
            is_for_agents: false,
            acts_for: AccountOwner::Project,
        }))
    }

    /// The projects that a person belongs to.
    #[kernel::boxed]
    pub async fn memberships(&self, user: UserId) -> Result<Vec<Membership>, StoreError> {
        let sql = "select m.project_id, p.slug, p.name, m.role, m.source from members m join projects p on p.id = m.project_id \
                   where m.user_id = $1 and m.removed_at is null order by p.name, p.id limit 1000";
        let rows = self.db.all(sql, args![user]).await?;
        let read = |row: &Row| {
            Ok(Membership {
                project: row.get("project_id")?,
                project_slug: row.get("slug")?,
                project_name: row.get("name")?,
                role: role(row)?,
                source: row.get::<String>("source")?.as_str().into(),
            })
        };
        rows.iter().map(read).collect()
    }

    /// The members of a project, the first first.
    #[kernel::boxed]
    pub async fn members(&self, project: ProjectId, after: Option<MemberId>, size: PageSize) -> Result<Page<Member>, StoreError> {
        let sql = page_sql!(
            select columns!(),
            bytes "0",
            from "members",
            where "project_id = $1 and removed_at is null and ($2 is null or id > $2)",
            by id "asc",
            limit "$3"
        );
        let rows = self.db.all(sql, args![project, after, size.rows()]).await?;
        size.read(&rows, Member::read)
    }

    #[kernel::boxed]
    pub async fn member(&self, project: ProjectId, id: MemberId) -> Result<Member, AccountError> {
        let sql = concat!("select ", columns!(), " from members where project_id = $1 and id = $2 and removed_at is null");
        let row = self.db.optional(sql, args![project, id]).await?.ok_or(AccountError::MemberNotFound)?;
        Ok(Member::read(&row)?)
    }

    /// Makes somebody a member, or gives a member another role.
    #[kernel::boxed]
    pub async fn set_member(&self, project: ProjectId, user: UserId, role: Role, source: &Source) -> Result<(), AccountError> {
        let mut tx = self.db.begin().await?;
        let owners = Owners::hold(&mut tx, project).await?;
        put_member(&mut tx, project, user, role, source, self.clock.now()).await?;
        owners.keep(&mut tx, project).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Gives a member another role. One that a provider's rules gave is the project's own from now on.
    #[kernel::boxed]
    pub async fn set_role(&self, project: ProjectId, id: MemberId, role: Role) -> Result<Member, AccountError> {
        let sql = "update members set role = $3, source = case when source like 'provider:%' then 'invited' else source end \
                   where project_id = $1 and id = $2 and removed_at is null";
        self.change(project, sql, args![project, id, role.name()]).await?;
        self.member(project, id).await
    }

    /// Takes a member out of a project; whatever they are signed in with stops working there.
    #[kernel::boxed]
    pub async fn remove_member(&self, project: ProjectId, id: MemberId) -> Result<(), AccountError> {
        let sql = "update members set removed_at = $3 where project_id = $1 and id = $2 and removed_at is null";
        self.change(project, sql, args![project, id, self.clock.now()]).await
    }

    /// Changes one member, unless that leaves the project without an owner.
    async fn change(&self, project: ProjectId, sql: &'static str, args: [Arg<'_>; 3]) -> Result<(), AccountError> {
        let mut tx = self.db.begin().await?;
        let owners = Owners::hold(&mut tx, project).await?;
        if tx.execute(sql, args).await? == 0 {
            return Err(AccountError::MemberNotFound);
        }
        owners.keep(&mut tx, project).await?;
        tx.commit().await?;
        self.authenticator.forget();
        Ok(())
    }

    /// Brings the memberships that one provider gives a person to what it says now; those that came in another way stay as they are.
    #[kernel::boxed]
    pub async fn follow_provider(&self, user: UserId, provider: &str, wanted: &[(ProjectId, Role)]) -> Result<(), AccountError> {
        let (now, source) = (self.clock.now(), Source::Provider(provider.to_owned()));
        let mut tx = self.db.begin().await?;
        let sql = "select project_id, id, removed_at, source from members where user_id = $1";
        let held = tx.all(sql, args![user]).await?;
        for row in &held {
            let (project, id): (ProjectId, MemberId) = (row.get("project_id")?, row.get("id")?);
            let is_ours = row.get::<String>("source")? == source.to_string();
            if is_ours && !wanted.iter().any(|(named, _)| *named == project) {
                let sql = "update members set removed_at = $3 where project_id = $1 and id = $2 and removed_at is null";
                tx.execute(sql, args![project, id, now]).await?;
            }
        }
        for (project, role) in wanted {
            let other = held.iter().find(|row| row.get::<ProjectId>("project_id").is_ok_and(|held| held == *project));
            let stays = match other {
                Some(row) => row.get::<Option<Timestamp>>("removed_at")?.is_none() && row.get::<String>("source")? != source.to_string(),
                None => false,
            };
            if !stays {
                put_member(&mut tx, *project, user, *role, &source, now).await?;
            }
        }
        tx.commit().await?;
        self.authenticator.forget();
        Ok(())
    }
}

/// How many owners a project had before a change. A project that had one keeps one, so that somebody can go on inviting.
struct Owners(i64);

impl Owners {
    /// Counts them, while nobody else changes the members.
    async fn hold(tx: &mut Tx, project: ProjectId) -> Result<Self, AccountError> {
        if tx.execute("update projects set slug = slug where id = $1", args![project]).await? == 0 {
            return Err(AccountError::ProjectNotFound);
        }
        Ok(Self(Self::count(tx, project).await?))
    }

    async fn count(tx: &mut Tx, project: ProjectId) -> Result<i64, AccountError> {
        let sql = "select count(*) as owners from members where project_id = $1 and role = 'owner' and removed_at is null";
        Ok(tx.optional(sql, args![project]).await?.map_or(Ok(0), |row| row.get("owners"))?)
    }

    async fn keep(self, tx: &mut Tx, project: ProjectId) -> Result<(), AccountError> {
        if self.0 > 0 && Self::count(tx, project).await? == 0 { Err(AccountError::LastOwner) } else { Ok(()) }
    }
}

/// Makes somebody a member as part of something larger, or gives a member another role.
#[kernel::boxed]
pub async fn put_member(
    tx: &mut Tx,
    project: ProjectId,
    user: UserId,
    role: Role,
    source: &Source,
    now: Timestamp,
) -> Result<(), AccountError> {
    end_former_grants(tx, project, user, now).await?;
    let sql = "insert into members (project_id, id, user_id, role, source, created_at) values ($1, $2, $3, $4, $5, $6) \
               on conflict (project_id, user_id) do update set role = excluded.role, source = excluded.source, removed_at = null";
    tx.execute(sql, args![project, MemberId::new(), user, role.name(), source.to_string(), now]).await?;
    Ok(())
}
