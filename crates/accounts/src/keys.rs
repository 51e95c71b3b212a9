//! Keys: made once, shown once, kept as a hash, revoked for good.

use std::collections::HashMap;

use kernel::key::PlainKey;
use kernel::{AccountOwner, KeyId, Permission, PermissionSet, ProjectId, Role, Scope, Timestamp, UserId};
use serde_json::Value;
use store::{Page, PageSize, Row, StoreError, Tx, args, page_sql};

use crate::delegates::Delegate;
use crate::{AccountError, Accounts};

const PREFIX: &str = "tyk";
/// The most keys that a project may have in force when one of its own makes another; the operator may make more.
pub const MOST_KEYS: i64 = 1000;
/// The longest name, in characters.
const LONGEST_NAME: usize = 255;

macro_rules! columns {
    () => {
        "id, project_id, user_id, name, role, permissions, is_for_agents, hint, created_at, revoked_at, last_used_at"
    };
}
pub(crate) use columns;

/// A key as it is listed: everything but the key itself.
#[derive(Clone, Debug)]
pub struct Key {
    pub id: KeyId,
    pub project: ProjectId,
    pub user: Option<UserId>,
    pub name: String,
    pub role: Role,
    /// When set, the key may do only these of its role's permissions, and those of them that no role has.
    pub only: Option<PermissionSet>,
    /// The key acts for certain agents and for nothing else.
    pub is_for_agents: bool,
    pub hint: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
}

/// What a new key shall be.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    pub role: Role,
    pub only: Option<Vec<Permission>>,
    pub is_for_agents: bool,
}

impl NewKey {
    /// What the key will be able to do.
    fn permissions(&self) -> PermissionSet {
        permissions(self.role, self.only.as_ref().map(|only| only.iter().copied().collect()))
    }
}

/// What a role may do, narrowed to some permissions.
fn permissions(role: Role, only: Option<PermissionSet>) -> PermissionSet {
    only.map_or_else(|| role.permissions(), |only| only.named_for(role))
}

impl Key {
    pub(crate) fn read(row: &Row) -> Result<Self, StoreError> {
        let role: String = row.get("role")?;
        Ok(Self {
            id: row.get("id")?,
            project: row.get("project_id")?,
            user: row.get("user_id")?,
            name: row.get("name")?,
            role: role.parse().map_err(|_| StoreError::Column("role".to_owned()))?,
            only: row.get::<Option<Value>>("permissions")?.map(|names| read_permissions(&names)),
            is_for_agents: row.get("is_for_agents")?,
            hint: row.get("hint")?,
            created_at: row.get("created_at")?,
            revoked_at: row.get("revoked_at")?,
            last_used_at: row.get("last_used_at")?,
        })
    }

    /// What the key may do: its role, narrowed to `only`.
    pub fn permissions(&self) -> PermissionSet {
        permissions(self.role, self.only)
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope {
            project: self.project,
            key: self.id,
            user: self.user,
            permissions: self.permissions(),
            is_for_agents: self.is_for_agents,
            acts_for: AccountOwner::Project,
        }
    }
}

fn read_permissions(names: &Value) -> PermissionSet {
    names.as_array().into_iter().flatten().filter_map(|name| name.as_str()?.parse::<Permission>().ok()).collect()
}

/// Whose a key, a membership or a grant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The name of the key; nothing for a person who signed in.
    pub key: Option<String>,
    pub user: Option<UserId>,
    pub person: Option<String>,
    /// The name of the client that they let act for them.
    pub client: Option<String>,
}

impl Accounts {
    #[kernel::boxed]
    pub async fn create_key(&self, project: ProjectId, new: NewKey) -> Result<(Key, PlainKey), AccountError> {
        let mut tx = self.db.begin().await?;
        if tx.optional("select id from projects where id = $1", args![project]).await?.is_none() {
            return Err(AccountError::ProjectNotFound);
        }
        let made = insert_key(&mut tx, project, None, new, self.clock.now()).await?;
        tx.commit().await?;
        Ok(made)
    }

    /// The keys of one project, or of all of them.
    #[kernel::boxed]
    pub async fn list_keys(&self, project: Option<ProjectId>) -> Result<Vec<Key>, AccountError> {
        let sql = concat!("select ", columns!(), " from api_keys where $1 is null or project_id = $1 order by created_at, id");
        self.authenticator.noted().await;
        let rows = self.db.all(sql, args![project]).await?;
        Ok(rows.iter().map(Key::read).collect::<Result<_, _>>()?)
    }

    /// The keys of a project, the newest first. The index by project finds the few that there are, and they are sorted as they are read.
    #[kernel::boxed]
    pub async fn project_keys(&self, project: ProjectId, before: Option<KeyId>, size: PageSize) -> Result<Page<Key>, AccountError> {
        let sql = page_sql!(
            select columns!(),
            bytes "0",
            from "api_keys",
            where "project_id = $1 and ($2 is null or id < $2)",
            by id "desc",
            limit "$3"
        );
        self.authenticator.noted().await;
        let rows = self.db.all(sql, args![project, before, size.rows()]).await?;
        Ok(size.read(&rows, Key::read)?)
    }

    /// Makes a key in the name of a caller, who can give nothing that they do not have.
    #[kernel::boxed]
    pub async fn give_key(&self, scope: &Scope, new: NewKey) -> Result<(Key, PlainKey), AccountError> {
        check_name(&new.name)?;
        let missing: Vec<String> = new.permissions().iter().filter(|given| !scope.may(*given)).map(|given| format!("`{given}`")).collect();
        if !missing.is_empty() {
            return Err(AccountError::MoreThanHeld(missing.join(", ")));
        }
        let mut tx = self.db.begin().await?;
        let sql = "select count(*) as held from api_keys where project_id = $1 and revoked_at is null";
        let held: i64 = tx.optional(sql, args![scope.project]).await?.map_or(Ok(0), |row| row.get("held"))?;
        if held >= MOST_KEYS {
            return Err(AccountError::TooManyKeys);
        }
        let made = insert_key(&mut tx, scope.project, None, new, self.clock.now()).await?;
        tx.commit().await?;
        Ok(made)
    }

    /// Removes a key that could not be finished, before anybody was shown it.
    #[kernel::boxed]
    pub async fn discard_key(&self, project: ProjectId, id: KeyId) -> Result<(), AccountError> {
        self.db.execute("delete from api_keys where project_id = $1 and id = $2", args![project, id]).await?;
        self.authenticator.forget();
        Ok(())
    }

    /// Whose keys, memberships and grants a project has, or had: for records that name them.
    #[kernel::boxed]
    pub async fn holders(&self, project: ProjectId) -> Result<HashMap<KeyId, Holder>, StoreError> {
        let sql = "select k.id, k.name, k.user_id, coalesce(u.name, u.email) as person, null as client from api_keys k \
                   left join users u on u.id = k.user_id where k.project_id = $1 union all \
                   select m.id, null, m.user_id, coalesce(u.name, u.email), null from members m join users u on u.id = m.user_id where m.project_id = $1 union all \
                   select g.id, k.name, coalesce(g.user_id, k.user_id), coalesce(u.name, u.email), g.client_name from oauth_grants g left join api_keys k on k.id = g.key_id \
                   left join users u on u.id = coalesce(g.user_id, k.user_id) where g.project_id = $1";
        let rows = self.db.all(sql, args![project]).await?;
        let holder = |row: &Row| {
            let (user, person) = (row.get("user_id")?, row.get("person")?);
            Ok::<_, StoreError>(Holder { key: row.get("name")?, user, person, client: row.get("client")? })
        };
        rows.iter().map(|row| Ok((row.get("id")?, holder(row)?))).collect()
    }

    /// What somebody may do now who did something with this key before: by the same key, by the newest other key of the same user, or as a
    /// member. What a client began for somebody is held to what it was granted.
    #[kernel::boxed]
    pub async fn acting(&self, project: ProjectId, key: KeyId, user: Option<UserId>) -> Result<Option<Scope>, StoreError> {
        self.acting.or_find((project, key, user), || self.read_acting(project, key, user)).await
    }

    async fn read_acting(&self, project: ProjectId, key: KeyId, user: Option<UserId>) -> Result<Option<Scope>, StoreError> {
        match self.delegate(project, key).await? {
            Delegate::None => {}
            Delegate::Stolen => return Ok(None),
            Delegate::Acting(scope) => return Ok(scope),
        }
        let sql = concat!(
            "select ",
            columns!(),
            " from api_keys where project_id = $1 and revoked_at is null and (id = $2 or user_id = $3) \
             order by case when id = $2 then 0 else 1 end, id desc limit 1"
        );
        match self.db.optional(sql, args![project, key, user]).await? {
            Some(row) => Ok(Some(Key::read(&row)?.scope())),
            None if key == KeyId::nil() => Ok(Some(Scope::operator(project))),
            None => match user {
                Some(user) => self.member_scope(project, user).await,
                None => Ok(None),
            },
        }
    }

    /// Revokes a key; revoking it again changes nothing.
    #[kernel::boxed]
    pub async fn revoke_key(&self, id: KeyId) -> Result<Key, AccountError> {
        let sql = concat!("update api_keys set revoked_at = coalesce(revoked_at, $2) where id = $1 returning ", columns!());
        let row = self.db.returning(sql, args![id, self.clock.now()]).await?.ok_or(AccountError::KeyNotFound)?;
        self.authenticator.forget();
        Ok(Key::read(&row)?)
    }

    /// Revokes a key of a project; revoking it again changes nothing.
    #[kernel::boxed]
    pub async fn revoke_project_key(&self, project: ProjectId, id: KeyId) -> Result<(), AccountError> {
        let sql = "update api_keys set revoked_at = coalesce(revoked_at, $3) where project_id = $1 and id = $2";
        if self.db.execute(sql, args![project, id, self.clock.now()]).await? == 0 {
            return Err(AccountError::KeyNotFound);
        }
        self.authenticator.forget();
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), AccountError> {
    let is_usable = !name.trim().is_empty() && name.chars().count() <= LONGEST_NAME && !name.contains(char::is_control);
    if is_usable { Ok(()) } else { Err(AccountError::Invalid(name.chars().take(LONGEST_NAME).collect(), "name of a key")) }
}

pub(crate) async fn insert_key(
    tx: &mut Tx,
    project: ProjectId,
    user: Option<UserId>,
    new: NewKey,
    now: Timestamp,
) -> Result<(Key, PlainKey), AccountError> {
    let plain = PlainKey::generate(PREFIX);
    let key = Key {
        id: KeyId::new(),
        project,
        user,
        name: new.name,
        role: new.role,
        only: new.only.as_ref().map(|only| only.iter().copied().collect()),
        is_for_agents: new.is_for_agents,
        hint: plain.hint(),
        created_at: now,
        revoked_at: None,
        last_used_at: None,
    };
    let only = key.only.map(|only| only.iter().map(Permission::name).collect::<Value>());
    let sql = "insert into api_keys (project_id, id, user_id, name, role, permissions, is_for_agents, hint, hash, created_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let (name, role, hint) = (key.name.as_str(), key.role.name(), key.hint.as_str());
    let hash = plain.hash();
    tx.execute(sql, args![project, key.id, user, name, role, only.as_ref(), key.is_for_agents, hint, hash.as_bytes(), now]).await?;
    Ok((key, plain))
}
